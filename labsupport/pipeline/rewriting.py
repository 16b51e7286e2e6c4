"""A question is reformulated before the search where that helps, and what was searched is shown.

- A follow-up ("And how long does it take?") gets the topic of the question before it.
- A product code is written as the documents write it: PW2400, pw-2400 and PW 2400 all find PW-2400.
- A question in two parts becomes two searches, each with the sentences that introduce it.
- The glossary gives a word-by-word translation, for documents in the other language.
- A day of delivery decides which version of a document counts.

All of it is rules, no model: the same question is always rewritten the same way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from labsupport.pipeline.delivery_dates import delivery_day
from labsupport.pipeline.terms import (
    MAX_CHARACTERS,
    STOP_WORDS,
    clean,
    content_words,
    fold,
    keyword_terms,
    language_of,
    product_codes,
    translate,
    words,
)  # fmt: skip

_PRONOUN = re.compile(
    r"\b(?:it|they|them|that|this|those|these|one|ones|there|il|elle|ils|elles|celui-ci|celle-ci|ça|cela)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"^(?:and|also|or|but|so|what about|how about|what if|et|ou|mais|aussi|alors)\b", re.IGNORECASE)
_AND = re.compile(r"^(?:and|but|so|also|et|mais|alors)\s+", re.IGNORECASE)
_ASK = (
    r"(?:what|which|who|whom|whose|when|where|why|how|can|could|may|must|should|do|does|did|is|are|will|would|has|have"
    r"|combien|comment|quand|où|quel(?:le)?s?|puis-je|peut-on|faut-il|est-ce)"
)
_BEFORE_ASK = r"(?:after|from|at|to|in|for|by|with|until|within|pendant|avec|à|de)\s+"
_TWO_PARTS = re.compile(rf",?\s+(?:and|et)\s+(?=(?:{_BEFORE_ASK})?{_ASK}\b)", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=\S)")
MAX_PARTS = 3


@dataclass(frozen=True)
class Query:
    """One search. `translated` is its word-by-word translation; `concepts` holds, for each word or product code in it,
    the forms of which a passage in the other language must contain one. Both are empty if too little is translated.
    """

    text: str
    language: str
    terms: tuple[str, ...]
    translated: str = ""
    concepts: tuple[tuple[str, ...], ...] = ()

    @property
    def translated_terms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(form for forms in self.concepts for form in forms))

    @property
    def other_language(self) -> str:
        return "fr" if self.language == "en" else "en"

    def in_one_of(self, languages: Sequence[str]) -> str:
        """The query in a language out of `languages`: as it is, else translated, else empty."""
        if self.language in languages:
            return self.text
        return self.translated if self.other_language in languages else ""


NOTHING = Query("", "en", ())
EMPTY = "The question is empty: no keyword can match, and which vectors lie nearest means little."


@dataclass(frozen=True)
class Rewriting:
    """What is searched instead of the question: at least one query."""

    queries: tuple[Query, ...]
    notes: tuple[str, ...]
    as_of: str | None = None  # the day of delivery, if the question names one


def rewrite(
    question: str,
    history: Sequence[str] = (),
    asked: str | None = None,
    known: Callable[[str], bool] | None = None,
) -> Rewriting:
    """Reformulate `question`. `history`: the earlier questions of the conversation, oldest first.

    `asked` is the ISO date of asking (today in UTC if None). `known(term)` tells whether the keyword index holds a
    term; without it, product codes are written with a hyphen.
    """
    text, cut = clean(question)
    notes = [f"Only the first {MAX_CHARACTERS} characters of the question are searched."] if cut else []
    if not text:
        return Rewriting((NOTHING,), (EMPTY,))
    whole = _with_topic(text, history)
    if whole != text:
        notes.append(f"Follow-up, searched as: {whole}")
    spelled = _spell(whole, known)
    if spelled != whole:
        notes.append(f"Product codes written as in the documents: {spelled}")
    as_of = None
    if delivery := delivery_day(spelled, asked or datetime.now(UTC).date().isoformat()):
        as_of, spelled = delivery
        notes.append(f"Delivered on {as_of}: searched as of that day, with: {spelled}")
    queries = tuple(_query(part) for part in split(spelled))
    if len(queries) > 1:
        notes.append("Searched in parts: " + " / ".join(query.text for query in queries))
    return Rewriting(queries, tuple(notes), as_of)


def as_it_stands(question: str) -> Rewriting:
    """The question with no rewriting but what makes it legal: for comparison."""
    text, cut = clean(question)
    notes = (f"Only the first {MAX_CHARACTERS} characters of the question are searched.",) if cut else ()
    if not text:
        return Rewriting((NOTHING,), (EMPTY,))
    return Rewriting((Query(text, language_of(text), tuple(keyword_terms(text))),), notes)


def _with_topic(text: str, history: Sequence[str]) -> str:
    """A follow-up with the topic words of the question before it; any other question as it is."""
    before = [line for line, _ in map(clean, history) if line]
    if not before or not _is_follow_up(text):
        return text
    earlier = _with_topic(before[-1], before[:-1])
    # "And for the PW-2200?" asks the same of another machine.
    own_code = bool(product_codes(text))
    for code in reversed(product_codes(earlier) if own_code else []):
        earlier = earlier[: code.start] + earlier[code.end :]
    return _add_topic(text, earlier)


def follows_up(question: str) -> bool:
    """Does a question lean on the one before it: “and how long …”, a pronoun in a short one, no word of its own?"""
    return _is_follow_up(clean(question)[0])


def _is_follow_up(text: str) -> bool:
    if _GOES_ON.search(text) or not content_words(text):
        return True
    # A pronoun in a longer question mostly stands for something in the question itself.
    return bool(_PRONOUN.search(text)) and len(content_words(text)) <= 5 and not product_codes(text)


def _add_topic(text: str, source: str) -> str:
    own = {fold(word) for word in words(text)}
    topic = re.findall(r"[^\W_]+(?:-\d[^\W_]*)*", source)  # LM-400 stays one word
    topic = [word for word in dict.fromkeys(topic) if fold(word) not in own | STOP_WORDS]
    return f"{' '.join(topic)}: {_AND.sub('', text)}" if topic else text


def _spell(text: str, known: Callable[[str], bool] | None) -> str:
    for code in reversed(product_codes(text)):
        apart, joined = code.terms
        one_word = known is not None and known(joined) and not known(apart)
        text = text[: code.start] + (code.joined if one_word else code.hyphenated) + text[code.end :]
    return text


def split(text: str) -> list[str]:
    """The parts of a question that can be asked apart, at most three; a part with a pronoun gets the first one's topic.

    Sentences that ask nothing introduce every part. "The PW-2200 and the PW-2400" is no second question.
    """
    sentences = _SENTENCE.split(text)
    asked = [sentence for sentence in sentences if sentence.endswith("?")] or sentences[-1:]
    lead = " ".join(sentence for sentence in sentences if sentence not in asked)
    parts = [part.strip(" ?") for sentence in asked for part in _TWO_PARTS.split(sentence)]
    if not 1 < len(parts) <= MAX_PARTS or not content_words(f"{lead} {parts[0]}"):
        return [text]
    first, *others = parts
    if not lead:
        others = [_add_topic(p, first) if _PRONOUN.search(p) or not content_words(p) else p for p in others]
    return [f"{lead} {part}?".strip() for part in (first, *others)]


def _query(text: str) -> Query:
    language = language_of(text)
    codes = product_codes(text)
    concepts, shown = [code.terms for code in codes], [text[code.start : code.end] for code in codes]
    for _, forms in translate(text, language):
        useful = tuple(form for form in forms if not all(fold(word) in STOP_WORDS for word in words(form)))
        if useful:
            concepts.append(useful)
        shown.append(forms[0])
    terms = tuple(keyword_terms(text))
    if len(concepts) < 2 or len(concepts) == len(codes):  # one translated word alone says too little
        return Query(text, language, terms)
    return Query(text, language, terms, " ".join(shown), tuple(concepts))
