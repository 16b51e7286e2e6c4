"""Reading documents: what is well formed is read the same however it is saved, what is not is refused by name."""

import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from garden import front_matter, write
from hypothesis import given, settings
from hypothesis import strategies as st

from labsupport.pipeline import LabError
from labsupport.pipeline.corpus import (
    KEYS,
    CorpusError,
    course_defaults,
    document_paths,
    read_document,
    read_documents,
    read_inventory,
    read_questions,
)

BODY = "# Hedge trimmers\n\nOil the blades after each use.\n"


def read(corpus, content, name="trimmers.md"):
    return read_document(write(corpus, name, content), corpus)


def faults(corpus, content, name="trimmers.md"):
    with pytest.raises(CorpusError) as caught:
        read(corpus, content, name)
    return caught.value.faults


def test_a_document_with_all_its_fields(tmp_path):
    found = read(tmp_path, front_matter(audience="staff", effective_to="2026-12-31") + BODY)
    assert (found.doc_id, found.version, found.title) == ("hedge-trimmers", "2", "Hedge trimmers")
    assert (found.doc_type, found.audience, found.language, found.owner) == ("guide", "staff", "en", "Product Care")
    assert (found.effective_from, found.effective_to) == ("2026-01-01", "2026-12-31")
    assert (found.path, found.source, found.label) == ("documents/trimmers.md", BODY, "hedge-trimmers v2")


PLAIN = front_matter(audience="staff") + BODY


@pytest.mark.parametrize("twin", [
    b"\xef\xbb\xbf" + PLAIN.encode(),
    PLAIN.replace("\n", "\r\n").encode(),
    PLAIN.replace("\n", "\r").encode(),
    PLAIN.replace("---\n", "--- \t\n").encode(),
    PLAIN.replace("---\n# ", "...\n# ").encode(),
    b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r\n").encode(),
], ids=["byte order mark", "CRLF", "CR", "spaces after ---", "closed by ...", "byte order mark and CRLF"])
def test_however_it_is_saved_it_reads_as_its_plain_twin(tmp_path, twin):
    found, plain = read(tmp_path, twin), read(tmp_path, PLAIN, "plain.md")
    assert found.audience == "staff"
    assert {**vars(found), "sha256": "", "path": ""} == {**vars(plain), "sha256": "", "path": ""}


def test_front_matter_that_ends_the_file_without_a_line_end(tmp_path):
    found = read(tmp_path, front_matter(audience="staff").rstrip("\n"))
    assert (found.audience, found.source) == ("staff", "")


def test_text_is_normalised_to_nfc(tmp_path):
    found = read(tmp_path, front_matter(title="De\u0301broussailleuse") + "La lame est use\u0301e.\n")
    assert (found.title, found.source) == ("D\u00e9broussailleuse", "La lame est us\u00e9e.\n")


@pytest.mark.parametrize(("written", "read_as"), [
    ("1.10", "1.10"), ("010", "010"), ("2.0", "2.0"), ('"3"', "3"), ("1e3", "1e3"), ("0x1F", "0x1F"),
    ("2026-01-01", "2026-01-01"),
])
def test_a_version_is_the_text_that_stands_there(tmp_path, written, read_as):
    assert read(tmp_path, front_matter(version=written)).version == read_as


@pytest.mark.parametrize("title", ["No", "on", "null", "12", "~", "2026-01-01", "1_000"])
def test_a_title_stays_text(tmp_path, title):
    assert read(tmp_path, front_matter(title=title)).title == title


def test_dates_are_text_whether_quoted_or_not(tmp_path):
    found = read(tmp_path, front_matter(effective_from="2026-03-01", effective_to='"2026-09-30"'))
    assert (found.effective_from, found.effective_to) == ("2026-03-01", "2026-09-30")


@pytest.mark.parametrize("written", ["", '""', "''", "   "])
def test_an_empty_last_day_means_no_end_date(tmp_path, written):
    assert read(tmp_path, front_matter(effective_to=written)).effective_to is None


@pytest.mark.parametrize(("change", "line", "said"), [
    ({"effective_from": "2026-02-30"}, 8, 'effective_from is "2026-02-30"; write the first day as YYYY-MM-DD'),
    ({"effective_from": "2026-03-01T23:30:00-05:00"}, 8, "effective_from is"),
    ({"effective_from": ""}, 8, "effective_from is empty"),
    ({"effective_to": "31/12/2026"}, 9, 'effective_to is "31/12/2026"; write the last day as YYYY-MM-DD'),
    ({"effective_to": "2026-09-30 00:00:00"}, 9, "effective_to is"),
    ({"effective_to": "null"}, 9, 'effective_to is "null"'),
    ({"effective_to": "2025-12-31"}, 9, "effective_to 2025-12-31 lies before effective_from 2026-01-01"),
    ({"audience": "no"}, 6, 'audience is "no"; write public or staff'),
    ({"audience": "all"}, 6, 'audience is "all"'),
    ({"audience": "Staff"}, 6, 'audience is "Staff"'),
    ({"audience": ""}, 6, "audience is empty"),
    ({"language": "de"}, 7, "write en or fr"),
    ({"doc_type": "memo"}, 5, "write policy, procedure, help article, guide, vendor content or screen guide"),
    ({"doc_id": "a/b"}, 2, 'doc_id is "a/b"'),
    ({"doc_id": "a|b"}, 2, "doc_id is"),
    ({"doc_id": "é"}, 2, "doc_id is"),
    ({"doc_id": ".."}, 2, "doc_id is"),
    ({"version": "1 of 2"}, 3, "version is"),
    ({"title": '""'}, 4, "title is empty"),
    ({"title": '"two\\nlines"'}, 4, "title is"),
    ({"title": '"bell\\a"'}, 4, "title is"),
    ({"title": "x" * 201}, 4, "at most 200 characters"),
    ({"owner": ""}, 10, "owner is empty"),
    ({"colour": "green"}, 11, 'unknown key "colour"'),
    ({"title": "Safety: the short version"}, 4, "not valid YAML"),
    ({"title": "\tHedge\n\tversion: 3"}, 5, "begins with a tab"),
    ({"title": '!!python/object/apply:os.system ["touch made-by-yaml"]'}, 4, "a tag"),
    ({"title": "!!str Hedge"}, 4, "a tag"),
    ({"title": "&a Hedge"}, 4, "an anchor"),
    ({"title": "[Hedge, trimmers]"}, 4, "a list or mapping"),
    ({"title": "{a: b}"}, 4, "a list or mapping"),
    ({"title": '"never closed'}, 4, "not valid YAML"),
    ({"owner": "\x07"}, 10, "a control character"),
])
def test_a_doubtful_value_is_refused_with_file_line_and_advice(tmp_path, change, line, said):
    found = faults(tmp_path, front_matter(**change) + BODY)
    assert len(found) == 1
    assert found[0].startswith(f"documents/trimmers.md, line {line}: ")
    assert said in found[0]


@pytest.mark.parametrize("key", ["doc_id", "version", "title", "doc_type", "audience", "language", "effective_from",
                                 "effective_to", "owner"])
def test_every_key_is_required(tmp_path, key):
    found = faults(tmp_path, front_matter(**{key: None}) + BODY)
    assert len(found) == 1
    assert found[0].startswith(f"documents/trimmers.md, line 1: {key} is missing; add the key and write")


def test_a_key_given_twice_is_refused_not_the_last_taken(tmp_path):
    text = front_matter(audience="staff").replace("owner:", "audience: public\nowner:") + BODY
    assert faults(tmp_path, text) == [
        "documents/trimmers.md, line 10: audience is given twice (first in line 6); keep one."]


def test_all_faults_of_a_file_are_named_in_the_order_of_its_lines(tmp_path):
    found = faults(tmp_path, front_matter(audience="no", effective_from="soon", owner="", colour="red", language=None))
    assert [re.search(r"line (\d+): (\S+)", fault).groups() for fault in found] == [
        ("1", "language"), ("6", "audience"), ("7", "effective_from"), ("9", "owner"), ("10", "unknown")]


@pytest.mark.parametrize(("text", "line", "said"), [
    ("", 1, "the file is empty"),
    (b"\xef\xbb\xbf", 1, "the file is empty"),
    (" \n\t\n", 1, "the file is empty"),
    (BODY, 1, "no front matter"),
    ("\n" + PLAIN, 1, "no front matter"),
    ("---\n\nA thematic break opens this file.\n\n---\n\nMore.\n", 1, "no front matter"),
    ("---\n- oil\n- grease\n---\n" + BODY, 2, "not made of key: value lines"),
    ("---\nhedge\n---\n" + BODY, 2, "not made of key: value lines"),
    (front_matter().removesuffix("---\n"), 11, "never closed"),
    (front_matter().removesuffix("---\n") + "\n" + BODY + "\n---\n\nAfter a break.\n", 11, "never closed"),
    (front_matter().removesuffix("---\n") + "\n# Only headings\n\n## follow here\n\n---\n", 11, "never closed"),
    ("---\n---\n" + BODY, 1, "is missing"),
])
def test_front_matter_of_another_shape_is_refused(tmp_path, text, line, said):
    found = faults(tmp_path, text)
    assert found[0].startswith(f"documents/trimmers.md, line {line}: ")
    assert said in found[0]


@pytest.mark.parametrize("text", [BODY, "---\nhedge\n---\n" + BODY])
def test_the_first_error_names_every_key_and_its_values_so_that_the_second_try_is_right(tmp_path, text):
    (fault,) = faults(tmp_path, text)
    for key in KEYS:
        assert re.search(rf"\b{key}\b", fault), key
    for key in ("doc_type (policy, procedure, help article, guide, vendor content or screen guide)",
                "audience (public or staff)", "language (en or fr)", "effective_to (YYYY-MM-DD or nothing)"):
        assert key in fault
    assert len(re.findall(r"[.](?= |$)", fault)) == 1  # one sentence


@pytest.mark.parametrize(("data", "said"), [
    ((front_matter() + "Débroussailleuse\n").encode("latin-1"), "line 12: not UTF-8 (byte 0xe9 at offset 173)"),
    ((front_matter() + BODY).encode("utf-16"), "line 1: not UTF-8 (byte 0xff at offset 0)"),
    (b"\xef\xbb\xbf---\n\xff", "line 2: not UTF-8 (byte 0xff at offset 7)"),
    ((front_matter() + "Oil\0the blades\n").encode(), "line 12: contains a NUL character"),
])
def test_bytes_that_are_not_clean_utf8_are_refused(tmp_path, data, said):
    [fault] = faults(tmp_path, data)
    assert said in fault


def damaged(text: str) -> st.SearchStrategy[bytes]:
    """The text with one stretch replaced by something else."""
    noise = st.text(st.sampled_from("-.:#'\"&*!|>[]{}%@`, \n\t\r\0\ufeff\u2028é?a1"), max_size=6)
    return st.builds(lambda at, size, new: (text[:at] + new + text[at + size:]).encode(),
                     st.integers(0, len(text)), st.integers(0, 30), noise)


@settings(deadline=None)
@given(st.binary() | damaged(PLAIN))
def test_any_bytes_are_read_or_refused_by_name(data):
    path = Path("corpus/documents/x.md")
    try:
        found = read_document(path, Path("corpus"), data)
    except CorpusError as error:
        assert all(fault.startswith("documents/x.md, line ") for fault in error.faults)
    else:
        assert found.audience == "staff" or b"public" in data


def test_aliases_are_refused_without_being_expanded(tmp_path):
    levels = "abcdefghijklmnopqrst"
    lines = [f"{levels[0]}: &{levels[0]} [x,x,x,x,x,x,x,x,x]"]
    lines += [f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in zip(levels, levels[1:], strict=False)]
    tracemalloc.start()
    found = faults(tmp_path, front_matter().removesuffix("---\n") + "\n".join(lines) + "\n---\n")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == len(levels)
    assert peak < 10_000_000


def test_the_safe_reader_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faults(tmp_path, front_matter(title='!!python/object/apply:os.system ["touch made-by-yaml"]'))
    assert not (tmp_path / "made-by-yaml").exists()


def test_a_file_that_cannot_be_opened_is_a_fault(tmp_path):
    (tmp_path / "documents").mkdir()
    try:
        (tmp_path / "documents" / "gone.md").symlink_to(tmp_path / "nowhere.md")
    except OSError:
        pytest.skip("this account may not make links")
    with pytest.raises(CorpusError, match="documents/gone.md: cannot be read"):
        read_documents(tmp_path)


def test_given_bytes_are_read_instead_of_the_file(tmp_path):
    path = tmp_path / "documents" / "not-there.md"
    assert read_document(path, tmp_path, PLAIN.encode()).path == "documents/not-there.md"


def test_documents_come_sorted_by_path(tmp_path):
    for name in ("b/z.md", "b.md", "a-b.md", "a.md", "B.MD"):
        write(tmp_path, name, front_matter(doc_id="d" + str(len(list(tmp_path.rglob("*.*"))))))
    write(tmp_path, "notes.txt", "no document")
    write(tmp_path, ".ipynb_checkpoints/a-checkpoint.md", "no document")
    found = [one.path for one in read_documents(tmp_path)]
    assert found == sorted(found)
    assert found == [path.relative_to(tmp_path).as_posix() for path in document_paths(tmp_path)]
    assert len(found) == 5


def test_a_run_names_the_faults_of_all_files_at_once(tmp_path):
    write(tmp_path, "good.md", PLAIN)
    write(tmp_path, "b.md", front_matter(doc_id="b", audience="all"))
    write(tmp_path, "a.md", b"\xff")
    write(tmp_path, "c.md", "")
    with pytest.raises(CorpusError) as caught:
        read_documents(tmp_path)
    assert [fault.split(",")[0].removeprefix("documents/") for fault in caught.value.faults] == ["a.md", "b.md", "c.md"]
    assert str(caught.value) == "\n".join(caught.value.faults)
    assert isinstance(caught.value, LabError)


def test_one_version_in_two_files_is_refused(tmp_path):
    write(tmp_path, "gift-cards.md", PLAIN)
    write(tmp_path, "gift-cards-copy.md", PLAIN)
    with pytest.raises(CorpusError) as caught:
        read_documents(tmp_path)
    assert caught.value.faults == [
        "documents/gift-cards-copy.md and documents/gift-cards.md are both hedge-trimmers version 2. Keep one file per "
        "document version; a new version needs a new version number."]


def test_versions_are_compared_as_text(tmp_path):
    for name, version in (("a.md", "2"), ("b.md", "2.0"), ("c.md", "02")):
        write(tmp_path, name, front_matter(version=version))
    assert [one.version for one in read_documents(tmp_path)] == ["2", "2.0", "02"]


def test_ids_that_differ_in_capitals_only_are_refused_together(tmp_path):
    write(tmp_path, "a.md", front_matter(doc_id="Trimmers", version="1"))
    write(tmp_path, "b.md", front_matter(doc_id="trimmers", version="2"))
    with pytest.raises(CorpusError, match=r"documents/a.md and documents/b.md .*\(Trimmers, trimmers\)"):
        read_documents(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(LabError, match="No folder .*documents"):
        read_documents(tmp_path)


def test_the_inventory(tmp_path):
    (tmp_path / "inventory.csv").write_text(
        "owner,doc_id,version,title,doc_type,audience,language,effective_from,effective_to\n"
        'Care,trimmers,1.10,"Trimmers, hedge",guide,public,en,2026-01-01,\n', encoding="utf-8-sig")
    [row] = read_inventory(tmp_path)
    assert (row.doc_id, row.version, row.title, row.effective_to) == ("trimmers", "1.10", "Trimmers, hedge", None)


def test_an_inventory_without_a_column_is_refused(tmp_path):
    (tmp_path / "inventory.csv").write_text("doc_id,version\ntrimmers,1\n", encoding="utf-8")
    with pytest.raises(CorpusError, match="inventory.csv: no column title"):
        read_inventory(tmp_path)


QUESTIONS = ("qid,text,language,as_of,audience,answerable,kind,split,history,fact_1,quotation_1,doc_id_1,version_1,"
             "section_1,fact_2,quotation_2,doc_id_2,version_2,section_2\n")


def test_questions_with_history_and_facts(tmp_path):
    (tmp_path / "questions.csv").write_text(
        QUESTIONS + 'Q01,"And the blades?",en,2026-10-09,public,yes,follow-up,tune,"How do I clean it?\nWith what?",'
        "oil,Oil the blades,trimmers,2,Care,cloth,a dry cloth,trimmers,2,Care\n"
        "Q02,Do you rent?,en,2026-10-09,staff,no,out of scope,test,,,,,,,,,,,\n", encoding="utf-8")
    first, second = read_questions(tmp_path)
    assert first.history == ("How do I clean it?", "With what?")
    assert [(fact.fact, fact.quotation, fact.section) for fact in first.facts] == [
        ("oil", "Oil the blades", "Care"), ("cloth", "a dry cloth", "Care")]
    assert (first.answerable, second.answerable, second.facts, second.history) == (True, False, (), ())


def test_the_faults_of_the_questions_are_named(tmp_path):
    row = "Q01,Hm?,de,soon,all,maybe,one fact,tune,,oil,,trimmers,2,Care,,,,,\n"
    (tmp_path / "questions.csv").write_text(QUESTIONS + row + row, encoding="utf-8")
    with pytest.raises(CorpusError) as caught:
        read_questions(tmp_path)
    for said in ("language", "as_of", "audience", "answerable", "a fact lacks", "given twice"):
        assert said in str(caught.value)


def test_course_defaults(tmp_path):
    as_of, audience = course_defaults(tmp_path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", as_of)
    assert audience == "staff"
    (tmp_path / "course.yaml").write_text("as_of: 2026-10-09\naudience: public\n", encoding="utf-8")
    assert course_defaults(tmp_path) == ("2026-10-09", "public")
    (tmp_path / "course.yaml").write_text("as_of: someday\naudience: public\n", encoding="utf-8")
    with pytest.raises(LabError, match="course.yaml must give as_of"):
        course_defaults(tmp_path)


def test_reading_and_chunking_import_nothing_heavy():
    code = ("import sys, labsupport.pipeline.chunking; "
            "print([name for name in ('torch', 'transformers', 'pandas', 'numpy') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
