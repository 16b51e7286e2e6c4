"""The pipeline: one module, one concept. Read them in the order corpus, markdown, chunking, embedding, store, updates,
search, rewriting, reranking, context, prompting, answering, citations, recordings, evidence, evaluation, costs."""


class LabError(Exception):
    """Something the user can mend. Its text is one clear sentence: what, where, what to do.

    The command line prints the text and exits with 2; nothing has been changed when it is raised.
    """
