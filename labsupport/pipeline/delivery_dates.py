"""The day of delivery a question names: "My order was delivered on 20 October" is answered by what held on that day."""

from __future__ import annotations

import re
from datetime import date

_MONTHS = {
    "january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8, "september": 9,
    "october": 10, "november": 11, "december": 12, "jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7,
    "aug": 8, "sep": 9, "sept": 9, "oct": 10, "nov": 11, "dec": 12, "janvier": 1, "février": 2, "fevrier": 2,
    "mars": 3, "avril": 4, "mai": 5, "juin": 6, "juillet": 7, "août": 8, "aout": 8, "septembre": 9, "octobre": 10,
    "novembre": 11, "décembre": 12, "decembre": 12,
}  # fmt: skip
_MONTH = "(?:" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b(?:\.(?=\s*\d))?"
_DATE = (
    r"(?P<date>(?P<iso>\d{4}-\d{2}-\d{2})"
    rf"|(?P<d1>\d{{1,2}})(?:st|nd|rd|th|er)?\s+(?:of\s+)?(?P<m1>{_MONTH})(?:,?\s+(?P<y1>\d{{4}}))?"
    rf"|(?P<m2>{_MONTH})\s+(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<y2>\d{{4}}))?)"
)
_VERB = r"(?:delivered|delivery|arrived|arrives|received|came|livrée?s?|livraison|reçue?s?|arrivée?s?)"
_BEFORE = r"(?P<before>(?:[\w'’]+\s+){0,3})"
_PATTERNS = [
    re.compile(rf"{_BEFORE}\b{_VERB}\b(?:\W+[^\W\d]+){{0,4}}?\W+{_DATE}(?!\d)", re.IGNORECASE),
    re.compile(rf"^(?:on|le)\s+(?:the\s+)?{_DATE}(?P<before>)(?:\W+\w+){{0,6}}?\W+{_VERB}\b", re.IGNORECASE),
]
_NEVER = re.compile(r"\b(?:not|never|pas|jamais)\b|n['’]t\b", re.IGNORECASE)
_AHEAD = re.compile(r"\b(?:will|is|to|sera|seront|doit)\b", re.IGNORECASE)


_ON = re.compile(r"[\s,]*(?:\b(?:on|le|du)\b)?(?:\s+the)?[\s,]*$", re.IGNORECASE)


def delivery_day(question: str, asked: str) -> tuple[str, str] | None:
    """The ISO date of the delivery that `question` names and the question without it, or None.

    `asked` is the ISO date of asking. A date without a year is the latest one that is not after it; for a delivery
    still to come ("will be delivered on …"), the next one.
    """
    for pattern in _PATTERNS:
        for match in pattern.finditer(question):
            if _NEVER.search(match["before"]):
                continue
            ahead = bool(_AHEAD.search(match["before"])) or "arrives" in match[0].lower()
            if day := _resolve(match, date.fromisoformat(asked), ahead):
                before = _ON.sub("", question[: match.start("date")])
                return day.isoformat(), (before + question[match.end("date") :]).strip(" ,")
    return None


def _resolve(match: re.Match, asked: date, ahead: bool) -> date | None:
    if match["iso"]:
        return _date(*map(int, match["iso"].split("-")))
    day = int(match["d1"] or match["d2"])
    month = _MONTHS[(match["m1"] or match["m2"]).rstrip(".").lower()]
    if year := match["y1"] or match["y2"]:
        return _date(int(year), month, day)
    for years in range(9):  # 29 February may lie eight years away
        found = _date(asked.year + (years if ahead else -years), month, day)
        if found and (found >= asked if ahead else found <= asked):
            return found
    return None


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
