"""The evidence check: the reference table, the causes, the faults of a file, and the checks that must not be lost."""

import json
import os
import sqlite3
import subprocess
import sys
import types
import venv
from copy import deepcopy
from html import unescape
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labsupport.pipeline as pipeline
from labsupport.pipeline import LabError
from labsupport.pipeline import evidence as ev
from labsupport.pipeline import evidence_context as context
from labsupport.pipeline import evidence_faults as faults
from labsupport.pipeline.evidence_cases import CasesError, cases_from, read_cases
from labsupport.pipeline.evidence_report import each_fact

ROOT = Path(__file__).parents[1]
CASES = ROOT / "corpus" / "evidence" / "cases.json"
SCHEMA = json.loads((ROOT / "corpus/evidence/schema.json").read_text(encoding="utf-8"))
FIGURES = json.loads((ROOT / "tests/figures.json").read_text(encoding="utf-8"))["evidence"]


@pytest.fixture(scope="module")
def cases():
    return read_cases(CASES)


@pytest.fixture(scope="module")
def report(cases):
    return ev.check(cases)


def result(report: dict, cut: str, question: str) -> dict:
    return next(entry for entry in report["cuts"][cut] if entry["id"] == question)


def words(cases, place: dict) -> str:
    return " ".join(cases.documents[place["document"]].words[place["start"] : place["end"]])


# The reference result


def test_the_documents_and_questions_are_the_ones_described(cases):
    documents = cases.documents.values()
    assert (len(documents), sum(len(d.words) for d in documents)) == (FIGURES["documents"], FIGURES["words"])
    assert [len(d.paragraphs) for d in documents] == [2, 2, 2]
    assert {(d.country, d.status) for d in documents} == {("FR", "current")}
    assert [len(q.facts) for q in cases.questions] == [2, 2, 2, 2, 2, 0]
    assert (len(cases.questions), sum(q.answerable for q in cases.questions)) == (
        FIGURES["questions"],
        FIGURES["answerable"],
    )


def test_the_reference_table(report):
    assert (report["budget_words"], report["top"]) == (FIGURES["budget_words"], FIGURES["top"])
    assert [document["words"] for document in report["documents"]] == [131, 168, 133]
    assert report["table"] == FIGURES["table"]


def test_every_context_fills_the_budget(report):
    assert {entry["words_sent"] for results in report["cuts"].values() for entry in results} == {120}


def test_hotel_needs_no_larger_passages(cases, report):
    hotel = result(report, "fixed_48_0", "hotel")
    ordinary, exception = (words(cases, hit) for hit in hotel["hits_before_budget"][:2])
    assert "À Paris, le plafond" in ordinary and "140 €" in ordinary
    assert (
        "salon professionnel" in exception and "190 €" in exception and "accord écrit avant la réservation" in exception
    )
    assert [fact["covered"] for fact in hotel["facts"]] == [True, True] and hotel["all_required_covered"] is True


def test_train_loses_its_exception_to_the_budget(cases, report):
    train = result(report, "fixed_96_0", "train")
    exception = train["facts"][1]
    assert exception["words"] == len(words(cases, exception).split()) == 22
    assert words(cases, exception) in words(cases, train["hits_before_budget"][1])
    assert [piece["words"] for piece in train["context"]] == [96, 24]
    assert (exception["kept_words"], exception["cause"]) == (0, ev.BUDGET)
    assert train["all_required_covered"] is False


def test_train_is_complete_with_overlap_and_pays_for_it(report):
    train = result(report, "fixed_48_16", "train")
    assert (train["all_required_covered"], train["redundant_words"], train["words_sent"]) == (True, 32, 120)


@pytest.mark.parametrize("cut", ev.CUTS)
def test_absent_brings_passages_back_by_one_word(cases, report, cut):
    absent = result(report, cut, "absent")
    assert absent["all_required_covered"] is None and absent["facts"] == []
    assert {word for hit in absent["hits_before_budget"] for word in hit["matched"]} == {"remboursement"}
    assert len(absent["hits_before_budget"]) == 3
    assert not any("satellite" in words(cases, hit) for hit in absent["hits_before_budget"])


def test_the_other_two_lost_facts_have_other_causes(report):
    causes = {(cut, entry["id"], fact["id"]): fact["cause"] for cut, entry, fact in each_fact(report)}
    assert {place: cause for place, cause in causes.items() if cause} == {
        ("fixed_48_0", "car", "tolls"): ev.BORDER,
        ("fixed_96_0", "train", "first_class_exception"): ev.BUDGET,
        ("fixed_96_0", "claim", "lost_receipt"): ev.LOW,
    }


def test_the_ranking_does_not_hang_on_the_last_digit(cases):
    """Another SQLite may round otherwise, so neighbours in the first four ranks differ by more than that."""
    for how in ev.CUTS:
        passages = {p.id: p for d in cases.documents.values() for p in context.cut(d, how)}
        index = context.Index(passages.values(), cases.documents)
        for question in cases.questions:
            scores = [hit.score for hit in index.rank(question.text)[:4]]
            assert all(a - b > 1e-3 * a for a, b in zip(scores, scores[1:], strict=False)), (how, question.id, scores)
        index.close()


# Cutting, ranking, keeping


@given(st.integers(1, 300), st.integers(1, 60), st.integers(0, 59))
def test_windows_cover_every_word_and_overlap_as_asked(length, size, overlap):
    overlap %= size
    spans = context.windows(length, size, overlap)
    assert spans[0][0] == 0 and spans[-1][1] == length
    assert all(end - start == size for start, end in spans[:-1]) and 0 < spans[-1][1] - spans[-1][0] <= size
    assert all(before[1] - after[0] == overlap for before, after in zip(spans, spans[1:], strict=False))


def test_ties_are_broken_by_id_and_diacritics_do_not_matter():
    cases = small("Le même texte.\n\nLe même texte.\n\nAutre chose ici.")
    passages = context.cut(cases.documents["one"], "paragraphs")
    index = context.Index(reversed(passages), cases.documents)
    assert [hit.passage for hit in index.rank("TEXTE meme ?")] == ["one:0000-0003", "one:0003-0006"]
    assert [hit.matched for hit in index.rank("MEME")] == [("même",), ("même",)]
    index.close()


@pytest.mark.parametrize(
    "question", ["", "le la les", '"', "a OR", "NEAR(texte, 2) AND *", "texte'; DROP TABLE p", "x" * 100_000]
)
def test_any_string_is_a_legal_question(question):
    cases = small("Un texte simple.")
    index = context.Index(context.cut(cases.documents["one"], "paragraphs"), cases.documents)
    assert len(index.rank(question)) == ("texte" in question)
    index.close()


def test_the_budget_is_strict_and_the_last_passage_is_cut_at_a_word():
    passages = {
        name: context.Passage(name, "one", start, end) for name, start, end in [("a", 0, 4), ("b", 4, 9), ("c", 9, 12)]
    }
    kept = context.keep(["c", "b", "a"], passages, budget=5)
    assert [(p.id, p.start, p.end) for p in kept] == [("c", 9, 12), ("b", 4, 6)]


def test_a_sqlite_without_fts5_has_its_own_error(monkeypatch, capsys):
    class Old:
        def execute(self, statement):
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self):
            pass

    monkeypatch.setattr(context.sqlite3, "connect", lambda path: Old())
    assert ev.main(["--cases", str(CASES)]) == 2
    said = capsys.readouterr()
    assert "FTS5" in said.err and "no such module: fts5" in said.err and said.out == ""


# Causes


def small(text: str, *facts: tuple[str, str], question: str = "texte", others: tuple[dict, ...] = ()):
    """Cases with one document "one" and one question; `facts` are (document, quotation)."""
    first = {"id": "one", "title": "One", "country": "FR", "status": "current", "text": text}
    entries = [{"id": f"f{n}", "document": name, "quotation": quotation} for n, (name, quotation) in enumerate(facts)]
    asked = {"id": "q", "text": question, "answerable": bool(entries), "facts": entries}
    return cases_from({"documents": [first, *others], "questions": [asked]})


def other(**fields) -> dict:
    return {"id": "two", "title": "Two", "country": "FR", "status": "current", "text": "Rien."} | fields


def cause(cases, cut: str, **limits) -> str | None:
    return ev.check(cases, [cut], **limits)["cuts"][cut][0]["facts"][0]["cause"]


def test_each_cause_is_named():
    rule = "La règle tient en six mots."
    assert cause(small(f"Un texte. {rule}", ("one", rule)), "paragraphs") is None
    assert cause(small(f"Un texte. {rule}", ("one", rule)), "paragraphs", budget=7) == ev.BUDGET
    assert cause(small(f"Un texte.\n\n{rule}", ("one", rule)), "paragraphs") == ev.LOW  # no word of the question
    assert cause(small(f"texte texte\n\ntexte seul\n\n{rule} texte", ("one", rule)), "paragraphs", top=2) == ev.LOW
    assert cause(small(f"Un texte ici. {rule}", ("one", rule)), "fixed_6_0") == ev.BORDER
    withdrawn = other(status="withdrawn", text=rule)
    assert cause(small("Un texte.", ("two", rule), others=(withdrawn,)), "paragraphs") == ev.ABSENT
    copied = small(f"Un texte. {rule}", ("two", rule), others=(other(text=rule),))
    assert cause(copied, "paragraphs") == ev.REFERENCE


def test_a_word_missing_from_the_passages_is_absent_from_the_index(cases):
    fact = cases.questions[0].facts[0]
    holder = context.Passage("p", fact.document, fact.start, fact.end - 1)
    assert ev.judge(fact, cases.documents, {"p": holder}, ["p"], [holder])["cause"] == ev.ABSENT


def test_a_fact_may_be_covered_by_two_passages_together():
    rule = "La règle du texte tient en huit mots."
    assert cause(small(f"Un texte ici. {rule}", ("one", rule)), "fixed_6_0") is None


# Reading cases


def spoiled(change) -> dict:
    data = deepcopy(faults.SOUND)
    change(data)
    return data


def test_every_fault_of_a_file_is_reported_at_once(tmp_path):
    data = spoiled(lambda data: data["documents"][0].update(country="fr", status="old", extra=1))
    data["documents"].append({"id": "hours", "title": "", "country": "FR", "status": "current", "file": "none.txt"})
    data["questions"][0]["facts"][0]["quotation"] = "The workshop lends"
    data["questions"][0]["facts"][1]["document"] = "nowhere"
    data["questions"][1].update(answerable="no")
    data["questions"].append({"id": "no spaces", "text": "x", "answerable": True, "facts": []})
    data["questions"].append(7)
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(CasesError) as raised:
        read_cases(path)
    text = str(raised.value)
    for part in (
        'document 1: unknown key "extra"',
        '"country" must be a code of two capitals',
        '"status" must be one of current, withdrawn',
        'document 3: "title" is empty',
        "none.txt cannot be read: No such file or directory",
        "document id 'hours' is used 2 times",
        "unknown document 'nowhere'",
        '"answerable" must be true or false',
        "the id 'no spaces' may hold",
        "answerable but names no fact",
        "question 4 must be an object",
    ):
        assert part in text, part
    assert len(raised.value.faults) == len(text.splitlines()) == 11
    assert all(line.startswith(path.as_posix()) for line in text.splitlines())


@pytest.mark.parametrize(
    ("quotation", "fault"),
    [
        ("The workshop lends one pump per customer", "as whole words; quote each word with its punctuation"),
        ("he workshop lends one", "as whole words"),
        ("The workshop closes at six.", "it stands in hours: a wrong reference"),
        ("the workshop lends one pump", "quotation absent from loans"),
    ],
)
def test_a_quotation_that_is_not_there_is_explained(quotation, fault):
    with pytest.raises(CasesError, match=fault):
        cases_from(spoiled(lambda data: data["questions"][0]["facts"][0].update(quotation=quotation)))


def test_two_facts_with_the_same_words_are_refused():
    same = {"quotation": faults.RULE}
    with pytest.raises(CasesError, match="two facts quote the same words"):
        cases_from(spoiled(lambda data: data["questions"][0]["facts"][1].update(same)))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"\xff{}", "is not UTF-8 (byte 0)"),
        (b"", "malformed JSON at line 1, column 1"),
        (b"[]", "the file must be an object"),
        (b"{}", '"documents" is missing'),
        (b'{"documents": [], "questions": []}', '"documents" is empty'),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' + b"1" * 5000 + b"}", "malformed JSON"),
    ],
)
def test_a_file_that_holds_no_cases_is_refused(tmp_path, content, fault):
    path = tmp_path / "cases.json"
    path.write_bytes(content)
    with pytest.raises(CasesError) as raised:
        read_cases(path)
    assert fault in str(raised.value)


def test_text_files_with_bom_crlf_and_decomposed_letters_read_the_same(tmp_path):
    data = {
        "documents": [{"id": "one", "title": "One", "country": "FR", "status": "current", "file": "one.txt"}],
        "questions": [
            {
                "id": "q",
                "text": "été",
                "answerable": True,
                "facts": [{"id": "f", "document": "one", "quotation": "L'été à 20 €."}],
            }
        ],
    }
    (tmp_path / "one.txt").write_bytes(
        b"\xef\xbb\xbf" + "Un mot.\r\n \r\nL'e\u0301te\u0301 a\u0300\u00a020\u202f€.\r\n".encode()
    )
    path = tmp_path / "cases.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(data).encode())
    cases = read_cases(path)
    assert cases.documents["one"].paragraphs == ((0, 2), (2, 6))
    assert ev.check(cases)["table"]["paragraphs"]["facts"] == 1


# The schema and the reader agree


def schema_accepts(data: object) -> bool:
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(data)


def test_the_schema_accepts_the_cases_of_the_course():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads(CASES.read_text(encoding="utf-8")), SCHEMA)
    assert schema_accepts(faults.SOUND)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("questions"),
        lambda data: data.update(more=1),
        lambda data: data.update(documents=[]),
        lambda data: data["documents"][0].update(id="a b"),
        lambda data: data["documents"][0].update(title=" "),
        lambda data: data["documents"][0].update(title=3),
        lambda data: data["documents"][0].update(country="FRA"),
        lambda data: data["documents"][0].update(status="draft"),
        lambda data: data["documents"][0].update(file="x.txt"),
        lambda data: data["documents"][0].pop("text"),
        lambda data: data["questions"][0].update(answerable=False),
        lambda data: data["questions"][1].update(answerable=True),
        lambda data: data["questions"][1].update(answerable=0),
        lambda data: data["questions"][0]["facts"][0].pop("quotation"),
        lambda data: data["questions"][0]["facts"][0].update(section="x"),
    ],
)
def test_schema_and_reader_refuse_the_same_files(change):
    data = spoiled(change)
    assert not schema_accepts(data)
    with pytest.raises(CasesError):
        cases_from(data)


# The command


def test_the_report_is_written_as_json(tmp_path, capsys, report):
    out = tmp_path / "report.json"
    assert ev.main(["--cases", str(CASES), "--output", str(out)]) == 0
    written = json.loads(out.read_text(encoding="utf-8"))
    assert written == report | {"cases": CASES.as_posix()}
    said = capsys.readouterr().out
    assert "fixed_48_16        13           592        5    10        600             101" in said
    assert "evidence cut at a border: 9 of 12 words kept" in said and "came back for: remboursement" in said
    assert ev.main(["--corpus", str(ROOT / "corpus"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"] == FIGURES["table"]


def test_bad_usage_and_bad_input_exit_with_2_and_change_nothing(tmp_path, capsys):
    copy = tmp_path / "evidence"
    copy.mkdir()
    for source in CASES.parent.iterdir():
        (copy / source.name).write_bytes(source.read_bytes())
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    file = str(copy / "cases.json")
    for argv in (
        ["--cases", file, "--output", file],
        ["--cases", file, "--output", str(copy / "transport.txt")],
        ["--cases", file, "--output", str(copy / "none" / "report.json")],
        ["--cases", file, "--output", str(copy)],
        ["--cases", str(copy / "missing.json")],
        ["--nonsense"],
    ):
        assert ev.main(argv) == 2, argv
        assert capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


def test_the_tables(report):
    table = ev.cuts_table(report)
    assert table.to_dict(orient="index") == FIGURES["table"]
    facts = ev.facts_table(report)
    assert len(facts) == 40 and set(facts.loc[~facts["covered"], "cause"]) == {ev.BORDER, ev.BUDGET, ev.LOW}
    assert set(facts.loc[facts["covered"], "cause"]) == {""}
    kept = ev.passages_table(report)
    assert kept.groupby(["cut", "question"])["words"].sum().eq(120).all()
    assert ev.passages_table(report, "hits_before_budget")["words"].sum() > kept["words"].sum()
    with pytest.raises(LabError, match="Unknown stage"):
        ev.passages_table(report, "hits")


@pytest.mark.parametrize("cut", ["fixed_48", "words", "fixed_0_0", "fixed_8_8"])
def test_an_impossible_cut_is_refused(cases, cut):
    with pytest.raises(LabError):
        ev.check(cases, [cut])


# Nothing but the standard library


BARE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from labsupport.pipeline.evidence import main
code = main([]) or main(["--self-test"])
loaded = {{name.partition(".")[0] for name in sys.modules}}
print(sorted(loaded - set(sys.stdlib_module_names) - {{"__main__", "labsupport"}}))
sys.exit(code)
"""


def test_it_runs_where_nothing_is_installed_and_loads_nothing_else():
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", BARE], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_command_runs_in_an_empty_environment(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=os.name != "nt")
    python = tmp_path / "bare" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    missing = subprocess.run([python, "-c", "import pandas"], cwd=ROOT, env=clean, capture_output=True, text=True)
    assert "ModuleNotFoundError" in missing.stderr
    for command in ("labsupport.pipeline.evidence", "labsupport evidence"):
        argv = [python, "-m", *command.split(), "--json"]
        done = subprocess.run(argv, cwd=ROOT, env=clean, capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["table"] == FIGURES["table"]


# Checks that must not be lost: each is removed, and something must fail


MODULES = ("evidence_cases", "evidence_context", "evidence_report", "evidence", "evidence_faults")


def reload_with(monkeypatch, name: str, old: str, new: str) -> types.SimpleNamespace:
    """The modules of the check, loaded anew with one piece of one module's source replaced."""
    loaded = {}
    for each in MODULES:
        path = ROOT / "labsupport" / "pipeline" / f"{each}.py"
        source = path.read_text(encoding="utf-8")
        if each == name:
            assert source.count(old) == 1, f"{old!r} stands {source.count(old)} times in {name}.py; update this test"
            source = source.replace(old, new)
        module = types.ModuleType(f"labsupport.pipeline.{each}")
        module.__file__ = str(path)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(pipeline, each, module, raising=False)
        exec(compile(source, str(path), "exec"), vars(module))
        loaded[each] = module
    return types.SimpleNamespace(**loaded)


READ, CONTEXT, CHECK = "evidence_cases", "evidence_context", "evidence"
ALL_FACTS = 'all(fact["covered"] for fact in facts) if'
REMOVED = {  # fault of the self-test -> where its check stands, the check, and what is left without it
    "sound cases pass": (READ, "if faults:\n        raise CasesError(name", "if True:\n        raise CasesError(name"),
    "duplicate id": (READ, "if count > 1]", "if False]"),
    "unknown id": (READ, "if document_id and document is None:", "if False:"),
    "absent quotation": (READ, "        if not starts:", "        if False:"),
    "quotation found twice": (READ, "if len(starts) > 1:", "if False:"),
    "incoherent references": (READ, 'good["answerable"] != bool(entries)', "False"),
    "empty document": (READ, "if not text.split():", "if False:"),
    "rule present, its exception absent": (CHECK, ALL_FACTS, ALL_FACTS.replace("all", "any")),
    "truncated quotation": (CHECK, "covered = seen == wanted", "covered = len(seen) + 1 >= len(wanted)"),
    "right words from the wrong document": (
        CHECK,
        "covered = seen == wanted",
        "covered = seen == wanted or bool(same_words_elsewhere(fact, documents, kept))",
    ),
    "unknown passage": (
        CONTEXT,
        'raise LabError(f"Unknown passage',
        'continue\n            LabError(f"Unknown passage',
    ),
    "overlap not smaller than the size": (CONTEXT, "if not 0 <= overlap < size:", "if False:"),
    "non-positive size": (CONTEXT, "if size < 1:", "if False:"),
    "malformed JSON": (READ, "    raise CasesError(where, [fault])", "    return {}"),
    "key written twice": (READ, "if twice := sorted(", "if False and sorted("),
    "document not indexed": (CHECK, ' if document.status == "current"]', "]"),
    "budget not respected": (CONTEXT, "min(passage.end, passage.start + left)", "passage.end"),
}


def test_the_self_test_notices_at_least_thirteen_faults(capsys):
    assert len(faults.FAULTS) - 1 >= 13  # the first one is that sound cases pass
    assert ev.main(["--self-test"]) == 0
    assert f"{len(faults.FAULTS)} of {len(faults.FAULTS)} as they should be" in capsys.readouterr().out
    assert set(REMOVED) == set(faults.FAULTS)


@pytest.mark.parametrize("name", REMOVED)
def test_the_self_test_fails_when_its_check_is_removed(monkeypatch, capsys, name):
    check = reload_with(monkeypatch, *REMOVED[name])
    rows = {row["fault"]: row for row in check.evidence_faults.self_test()}
    assert not rows[name]["noticed"], "the check was removed and the self-test did not see it"
    assert check.evidence.main(["--self-test"]) == 1
    assert f"FAIL {name}" in capsys.readouterr().out


BROKEN = {  # what is broken -> where, the sound source, the broken one
    "cut: overlap forgotten": (CONTEXT, "size - overlap)]", "size)]"),
    "cut: last window lost": (CONTEXT, "max(length - overlap, 1)", "max(length - size, 1)"),
    "cut: a word short": (CONTEXT, "min(start + size, length)", "min(start + size - 1, length)"),
    "budget: one word more": (CONTEXT, "passage.start + left)", "passage.start + left + 1)"),
    "budget: never used up": (CONTEXT, "left -= kept[-1].words", "left -= 0"),
    "budget: whole passages only": (CONTEXT, "if end > passage.start:", "if end == passage.end:"),
    "coverage: some words are enough": (CHECK, "covered = seen == wanted", "covered = bool(seen)"),
    "coverage: found is enough": (CHECK, "seen = held(kept)", "seen = held(passages[hit] for hit in ranking[:top])"),
    "coverage: one fact is enough": (CHECK, ALL_FACTS, ALL_FACTS.replace("all", "any")),
    "stop words: kept": (CONTEXT, " if word not in STOP_WORDS]", "]"),
    "ranking: by id": (CONTEXT, "ORDER BY bm25(p), id", "ORDER BY id"),
    "ranking: worst first": (CONTEXT, "ORDER BY bm25(p), id", "ORDER BY bm25(p) DESC, id"),
    "ranking: two passages": (CHECK, "keep(names[:top]", "keep(names[:2]"),
    "redundancy: not counted": (CHECK, "len(sent) - len(set(sent))", "0"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_the_reference_table_fails_when_a_step_is_broken(monkeypatch, name):
    check = reload_with(monkeypatch, *BROKEN[name])
    report = check.evidence.check(check.evidence_cases.read_cases(CASES))
    assert report["table"] != FIGURES["table"], f"{name}, and the reference table did not change"


def test_reloading_alone_changes_nothing(monkeypatch):
    check = reload_with(monkeypatch, "no module", "", "")
    assert check.evidence.check(check.evidence_cases.read_cases(CASES))["table"] == FIGURES["table"]


# The panel


def test_the_panel_and_the_plain_function_show_the_same():
    from labsupport.lab.panels import evidence_panel, evidence_view

    panel = evidence_panel()
    assert repr(panel) == "EvidencePanel: hotel × fixed_48_0, 2 of 2 facts, 120 of 120 words, 0 repeated"
    panel.question.value, panel.cut.value = "train", "fixed_96_0"
    view = evidence_view("train", "fixed_96_0")
    assert panel.view.value == view.html and view.text in unescape(panel.alternative.value)
    assert repr(view) == "EvidencePanel: train × fixed_96_0, 1 of 2 facts, 120 of 120 words, 0 repeated"
    assert "| not sent: souvent. [first_class_exception: La première classe" in view.text
    panel.number.value = 143  # the exception ends at word 143: 96 words, then 47
    assert repr(panel) == "EvidencePanel: train × fixed_96_0, 2 of 2 facts, 143 of 143 words, 0 repeated"


def test_the_panel_shows_what_a_border_cut_off_and_what_is_repeated():
    from labsupport.lab.panels import evidence_panel, evidence_view

    car = evidence_view("car", "fixed_48_0")
    assert "| cut off at the border: [tolls: des tickets datés,]" in car.text and "cut off at the border" in car.html
    assert "<missing: des tickets datés,>" in car.text and "✗" in car.html
    assert "(again: Un billet pris en gare" in evidence_view("train", "fixed_48_16").text
    assert "hold no answer" in evidence_view("absent", "paragraphs").text
    for show in (evidence_view, lambda name: evidence_panel(question=name)):
        with pytest.raises(LabError, match="Unknown question 'x'; use one of hotel, meals"):
            show("x")


def test_the_panel_takes_cases_and_cuts_of_ones_own():
    from labsupport.lab.panels import evidence_panel

    panel = evidence_panel(small("Un mot ici.", ("one", "Un mot"), question="Rien ?"), cut="fixed_2_1")
    assert repr(panel) == "EvidencePanel: q × fixed_2_1, 0 of 1 facts, 0 of 120 words, 0 repeated"
    assert "No passage holds a word of the question." in panel.shown.text and ev.LOW in panel.view.value


def test_markup_in_the_documents_is_shown_not_run():
    from labsupport.lab.panels import evidence_view

    cases = small("Un <script>alert(1)</script> texte & plus.", ("one", "<script>alert(1)</script> texte"))
    html = evidence_view("q", "paragraphs", cases).html
    assert "<script>" not in html and "&lt;script&gt;alert(1)&lt;/script&gt; texte" in html


# The documentation


def test_the_documented_example_is_a_valid_cases_file():
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    data = json.loads(text.split("```json\n")[1].split("```")[0])
    data["documents"][0].pop("file")
    data["documents"][0]["text"] = faults.RULE
    assert schema_accepts(data)
    assert ev.check(cases_from(data))["table"]["paragraphs"]["complete"] == 1


def test_the_documentation_names_every_cause_and_holds_the_table(report):
    text = " ".join((ROOT / "docs" / "evidence.md").read_text(encoding="utf-8").split())
    assert all(f"`{cause}`" in text for cause in ev.CAUSES)
    for cut, row in report["table"].items():
        line = f"| `{cut}` | {row['passages']} | {row['words_indexed']} | {row['complete']} of 5 | {row['facts']} of 10"
        assert f"{line} | {row['words_sent']} | {row['redundant_words']} |" in text
