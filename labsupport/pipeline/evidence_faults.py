"""The self-test of the evidence check: known faults it must notice, each an explicit error or an honest "not covered".

Every fault starts from the same sound cases and spoils one thing. tests/test_evidence.py removes the checks one by one
and sees this self-test fail, so a check cannot be lost unnoticed.
"""

from collections.abc import Callable
from copy import deepcopy

from labsupport.pipeline import LabError
from labsupport.pipeline import evidence as ev
from labsupport.pipeline import evidence_cases as reading
from labsupport.pipeline import evidence_context as context

RULE = "The workshop lends one pump per customer."
EXCEPTION = "Trade customers may borrow a second pump for a week."
SOUND = {
    "documents": [
        {"id": "loans", "title": "Loans", "country": "FR", "status": "current", "text": f"{RULE}\n\n{EXCEPTION}"},
        {"id": "hours", "title": "Hours", "country": "FR", "status": "current", "text": "The workshop closes at six."},
    ],
    "questions": [
        {
            "id": "pumps",
            "text": "workshop pump lends",
            "answerable": True,
            "facts": [
                {"id": "rule", "document": "loans", "quotation": RULE},
                {"id": "exception", "document": "loans", "quotation": EXCEPTION},
            ],
        },
        {"id": "kites", "text": "workshop kites", "answerable": False, "facts": []},
    ],
}
FAULTS: dict[str, Callable[[], str]] = {}  # name -> what went wrong; empty: the fault was noticed


def fault(name: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
    def register(test: Callable[[], str]) -> Callable[[], str]:
        FAULTS[name] = test
        return test

    return register


def spoil(change: Callable[[dict], object]) -> dict:
    data = deepcopy(SOUND)
    change(data)
    return data


def refused(work: Callable[[], object], reason: str) -> str:
    try:
        work()
    except LabError as error:
        return "" if reason in str(error) else f"refused, but for another reason: {error}"
    return "accepted"


def refused_cases(change: Callable[[dict], object], reason: str) -> str:
    return refused(lambda: reading.cases_from(spoil(change)), reason)


def one_fact(data: dict, budget: int, number: int = 0) -> tuple[dict, dict]:
    """The first question under paragraphs, and one of its facts."""
    result = ev.check(reading.cases_from(data), ["paragraphs"], budget)["cuts"]["paragraphs"][0]
    return result, result["facts"][number]


@fault("sound cases pass")
def _() -> str:  # without this one, refusing everything would pass the rest
    report = ev.check(reading.cases_from(SOUND))
    first, second = report["cuts"]["paragraphs"]
    return "" if first["all_required_covered"] is True and second["all_required_covered"] is None else str(report)


@fault("duplicate id")
def _() -> str:
    return refused_cases(lambda data: data["documents"][1].update(id="loans"), "'loans' is used 2 times")


@fault("unknown id")
def _() -> str:
    return refused_cases(
        lambda data: data["questions"][0]["facts"][0].update(document="lost"), "unknown document 'lost'"
    )


@fault("absent quotation")
def _() -> str:
    change = {"quotation": "The workshop lends two pumps."}
    return refused_cases(lambda data: data["questions"][0]["facts"][0].update(change), "quotation absent from loans")


@fault("quotation found twice")
def _() -> str:
    change = {"text": f"{RULE}\n\n{EXCEPTION} {RULE}"}
    return refused_cases(lambda data: data["documents"][0].update(change), "quotation found 2 times in loans")


@fault("incoherent references")
def _() -> str:
    answerable = refused_cases(
        lambda data: data["questions"][1].update(answerable=True), "answerable but names no fact"
    )
    return answerable or refused_cases(
        lambda data: data["questions"][0].update(answerable=False), "not answerable but names facts"
    )


@fault("empty document")
def _() -> str:
    return refused_cases(lambda data: data["documents"][1].update(text=" \n "), '"text" is empty')


@fault("rule present, its exception absent")
def _() -> str:
    result, exception = one_fact(SOUND, budget=7, number=1)  # the rule alone has seven words
    if result["facts"][0]["covered"] and result["all_required_covered"] is False and exception["cause"] == ev.BUDGET:
        return ""
    return f"complete: {result['all_required_covered']}, exception: {exception['cause']}"


@fault("truncated quotation")
def _() -> str:
    result, rule = one_fact(SOUND, budget=6)  # all of the rule but its last word
    return "" if not rule["covered"] and rule["kept_words"] == 6 else f"covered with {rule['kept_words']} of 7 words"


@fault("right words from the wrong document")
def _() -> str:
    change = {"text": f"{RULE} It lends a workshop pump."}
    result, rule = one_fact(spoil(lambda data: data["documents"][1].update(change)), budget=7)
    return "" if not rule["covered"] and rule["cause"] == ev.REFERENCE else f"{rule['cause'] or 'covered'}"


@fault("unknown passage")
def _() -> str:
    return refused(lambda: context.keep(["loans:0900-0948"], {}), "Unknown passage 'loans:0900-0948'")


@fault("overlap not smaller than the size")
def _() -> str:
    return refused(lambda: context.windows(100, 8, 8), "overlap of 8 words") or refused(
        lambda: context.windows(100, 8, 9), "overlap of 9 words"
    )


@fault("non-positive size")
def _() -> str:
    return refused(lambda: context.windows(100, 0, 0), "passage of 0 words") or refused(
        lambda: context.windows(100, -8, -9), "passage of -8 words"
    )


@fault("malformed JSON")
def _() -> str:
    return refused(lambda: reading.parse_json('{"documents": [}', "cases.json"), "malformed JSON at line 1, column 16")


@fault("key written twice")
def _() -> str:
    return refused(lambda: reading.parse_json('{"id": "a", "id": "b"}', "cases.json"), "'id' is written twice")


@fault("document not indexed")
def _() -> str:
    _, rule = one_fact(spoil(lambda data: data["documents"][0].update(status="withdrawn")), budget=120)
    return "" if rule["cause"] == ev.ABSENT else f"{rule['cause'] or 'covered'}"


@fault("budget not respected")
def _() -> str:
    result, _ = one_fact(SOUND, budget=10)
    return "" if result["words_sent"] == 10 else f"{result['words_sent']} words sent of 10"


def self_test() -> list[dict]:
    """Every fault with what was seen. A crash counts as not noticed."""
    rows = []
    for name, test in FAULTS.items():
        try:
            seen = test()
        except Exception as error:  # whatever a broken check lets through
            seen = f"crashed: {type(error).__name__}: {error}"
        rows.append({"fault": name, "noticed": not seen, "seen": seen})
    return rows


def lines(rows: list[dict]) -> list[str]:
    text = [
        f"{'ok  ' if row['noticed'] else 'FAIL'} {row['fault']}{': ' + row['seen'] if row['seen'] else ''}"
        for row in rows
    ]
    return [*text, f"{sum(row['noticed'] for row in rows)} of {len(rows)} as they should be"]
