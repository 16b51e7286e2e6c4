"""Grounded Answers Lab: the index and the pipeline that the notebooks teach.

Every public name can be imported from here; its module loads on first use, so that `import labsupport` stays instant.
"""

from importlib import import_module

_HOMES = {
    "corpus": "Document Question read_document read_documents read_inventory read_questions course_defaults",
    "markdown": "Block PlainText to_plain headings",
    "chunking": "Chunk StructureChunker FixedChunker ParagraphChunker chunk_id make_chunker",
    "embedding": "Embedder load_embedder",
    "store": "Filters Store",
    "updates": "ingest",
    "search": "Result Results Retriever",
    "rewriting": "Rewriting rewrite",
    "reranking": "Reranker load_reranker",
    "context": "Context assemble estimate_tokens format_passage jaccard",
}
_MODULES = {name: f"labsupport.pipeline.{module}" for module, names in _HOMES.items() for name in names.split()}
_MODULES["LabError"] = "labsupport.pipeline"

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'labsupport' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
