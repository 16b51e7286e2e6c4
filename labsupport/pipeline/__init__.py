"""The pipeline: one module, one concept. READING_ORDER lists them so that each comes after what it needs."""

READING_ORDER = """
folder front_matter corpus commonmark markdown fitting sections chunking weights embedding other_embedders index
memory rows sqlite_file store index_file plan report updates naive running reranking glossary terms
delivery_dates rewriting search narrowing context intents prompting answering sentences rating extractive replies
chat_client endpoint citations ask rendering recordings recorder replay auditing lifecycle scoring
terminal evidence_cases evidence_context evidence_report evidence evidence_faults evaluation costs
"""


class LabError(Exception):
    """Something the user can mend. Its text is one clear sentence: what, where, what to do.

    The command line prints the text and exits with 2; nothing has been changed when it is raised.
    """
