"""The words of a question: what the keyword index is asked for, its product codes, its language, its translation."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from labsupport.pipeline.glossary import GLOSSARY, STOP_EN, STOP_FR, fold

MAX_CHARACTERS = 2000  # of a question: what follows is left out, with a note
MAX_TERMS = 64
STOP_WORDS = STOP_EN | STOP_FR

_WORD = re.compile(r"[^\W_]+")
# Letters and digits that name a product: PW-2400, pw2400, PW 2400. With a space between, a code is harder to tell from
# "top 10" or "call 0800": few letters and many digits.
_CODE = re.compile(
    r"(?<![\w-])(?:(?P<letters>[A-Za-z]{1,4})-?(?P<digits>\d{2,5})|(?P<word>[A-Za-z]{2,3})\s(?P<number>\d{3,5}))(?!\w)"
)
_NO_CODES = STOP_WORDS | {"max", "min", "top", "usd", "cad", "eur"}
_ACCENTS = re.compile(r"[àâäçéèêëîïôöùûüÿœæ]", re.IGNORECASE)


@dataclass(frozen=True)
class Code:
    """A product code as it stands in a question, at `start` to `end`."""

    letters: str
    digits: str
    start: int
    end: int

    @property
    def hyphenated(self) -> str:
        return f"{self.letters.upper()}-{self.digits}"

    @property
    def joined(self) -> str:
        return f"{self.letters.upper()}{self.digits}"

    @property
    def terms(self) -> tuple[str, str]:
        """The two ways in which the keyword index may hold it: as neighbouring words, or as one."""
        return f"{self.letters} {self.digits}".lower(), self.joined.lower()


def clean(question: str) -> tuple[str, bool]:
    """One line of legal Unicode (NFC) without control characters, and whether it was cut at MAX_CHARACTERS."""
    text = question[: 4 * MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")
    text = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return text[:MAX_CHARACTERS].rstrip(), len(text) > MAX_CHARACTERS or len(question) > 4 * MAX_CHARACTERS


def words(text: str) -> list[str]:
    """The words of `text` in lower case, cut as the keyword index cuts: at everything but letters and digits."""
    return [word.lower() for word in _WORD.findall(text)]


def content_words(text: str) -> list[str]:
    """The distinct words of `text` that are no stop words, in order."""
    return list(dict.fromkeys(word for word in words(text) if fold(word) not in STOP_WORDS))


def product_codes(text: str) -> list[Code]:
    found = []
    for match in _CODE.finditer(text):
        letters, digits = match["letters"] or match["word"], match["digits"] or match["number"]
        if letters.lower() not in _NO_CODES:
            found.append(Code(letters, digits, *match.span()))
    return found


def keyword_terms(text: str) -> list[str]:
    """What to ask the keyword index for, at most 64 terms; any of them may match. A term of two words is a phrase.

    Empty for a question of stop words or signs only: "everything" would be no answer to it.
    """
    codes = [term for code in product_codes(text) for term in code.terms]
    return list(dict.fromkeys([*codes, *content_words(text)]))[:MAX_TERMS]


def language_of(text: str) -> str:
    """"fr" or "en", by the small words only one of the two languages has. In doubt "en"."""
    folded = [fold(word) for word in words(text)]
    french = sum(word in STOP_FR and word not in STOP_EN for word in folded) + len(_ACCENTS.findall(text))
    english = sum(word in STOP_EN and word not in STOP_FR for word in folded)
    if french == english:
        french, english = len(translate(text, "fr")), len(translate(text, "en"))
    return "fr" if french > english else "en"


def translate(text: str, language: str) -> list[tuple[str, tuple[str, ...]]]:
    """The glossary's words in `text` with their forms in the other language, in the order of the text.

    A longer entry wins over a shorter one inside it: "gift card" is not also a "card".
    """
    other = "fr" if language == "en" else "en"
    folded = [fold(word) for word in words(text)]
    forms = [(tuple(words(fold(form))), entry[other]) for entry in GLOSSARY for form in entry[language]]
    forms.sort(key=lambda form: -len(form[0]))
    found: dict[int, tuple[str, tuple[str, ...]]] = {}
    taken: set[int] = set()
    for form, translations in forms:
        for at in range(len(folded) - len(form) + 1):
            span = range(at, at + len(form))
            if tuple(folded[at : at + len(form)]) == form and not taken.intersection(span):
                taken.update(span)
                found[at] = (" ".join(form), translations)
    return [found[at] for at in sorted(found)]


def holds(text: str, forms: tuple[str, ...]) -> bool:
    """Whether `text` contains one of `forms` (words or phrases), whatever case and accents."""
    line = f" {' '.join(words(fold(text)))} "
    return any(f" {' '.join(words(fold(form)))} " in line for form in forms)
