import hashlib
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from garden import document
from hypothesis import given, settings
from hypothesis import strategies as st
from index_state import again

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import Chunk, chunk_id
from labsupport.pipeline.index import Entry, Filters, check_identity
from labsupport.pipeline.memory import Matrix
from labsupport.pipeline.sqlite_file import FORMAT, sql_errors
from labsupport.pipeline.store import Store, text_hash

STAFF = Filters(audience="staff")


def make_entry(doc_id, *bodies, vectors=None, **fields):
    """A document with one chunk for each body."""
    doc = replace(document("", doc_id=doc_id, **fields), path=f"documents/{doc_id}.md")
    shared = {name: getattr(doc, name) for name in ("doc_id", "version", "title", "doc_type", "audience", "language",
                                                    "effective_from", "effective_to", "owner")}
    chunks = [Chunk(**shared, chunk_id=chunk_id(doc_id, doc.version, 100 * n, 100 * n + len(body)), seq=n + 1,
                    start=100 * n, end=100 * n + len(body), section=f"Part {n}", breadcrumb=(doc.title, f"Part {n}"),
                    parent=None, kind="section", content_kind="prose", section_start=100 * n, body=body)
              for n, body in enumerate(bodies)]
    if vectors is None:
        vectors = [[1, 0]] * len(bodies)
    return Entry(doc, chunks, np.array(vectors, dtype=np.float32).reshape(len(bodies), -1))


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "index.sqlite", create=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def one_store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("one") / "index.sqlite", create=True) as opened:
        opened.replace(add=[make_entry("mowers", "Sharpen the blade of 0 mowers & 1 hedge.")])
        yield opened


def ids(entry):
    return [chunk.chunk_id for chunk in entry.chunks]


# What goes in comes out


def test_chunks_come_back_as_they_were(store):
    entry = make_entry("mowers", "Sharpen the blade.", "Ölwechsel: « deux fois »\nper year", effective_to="2026-12-31")
    odd = replace(entry.chunks[1], section=None, breadcrumb=(), parent="Oil", kind="loose", content_kind="screen",
                  part=2, parts=3, table_header="Model | Oil")
    entry = Entry(entry.document, [entry.chunks[0], odd], entry.vectors)
    store.replace(add=[entry], meta={"chunker": "by hand"})
    assert store.chunks("mowers") == store.all_chunks() == entry.chunks
    assert store.get(ids(entry)[::-1]) == entry.chunks[::-1]
    assert store.meta() == {"chunker": "by hand", "format": str(FORMAT)}
    row = store.documents()[0]
    assert (row.key, row.chunks) == (("mowers", "2"), 2)
    assert (row.path, row.effective_to) == ("documents/mowers.md", "2026-12-31")
    # the keyword index holds the text that is embedded, the repeated header row among it
    assert [one for one, _ in store.keyword(["model"], STAFF, 9)] == [odd.chunk_id]
    assert store.vectors_of_texts([text_hash(odd.text), text_hash("other")]).keys() == {text_hash(odd.text)}
    assert store.vectors([odd.chunk_id, "0" * 12])[odd.chunk_id].tolist() == [1, 0]


@pytest.mark.parametrize("unknown", ["", "c23617e24d2", "0c23617e24d2f", "ABCDEFABCDEF", "not hex at a", "0x1234567890",
                                     "１２３４５６７８９０１２", "%", "000000000000"])
def test_an_id_that_is_not_in_the_index_is_left_out(store, unknown):
    entry = make_entry("mowers", "Sharpen the blade.")
    store.replace(add=[entry])
    assert store.get([unknown, *ids(entry)]) == entry.chunks


def test_an_id_with_leading_zeros_is_not_its_shorter_look_alike(store):
    entry = make_entry("mowers", "Sharpen the blade.")
    entry = Entry(entry.document, [replace(entry.chunks[0], chunk_id="00ab00ab00ab")], entry.vectors)
    store.replace(add=[entry])
    assert [chunk.chunk_id for chunk in store.get(["ab00ab00ab", "00ab00ab00ab"])] == ["00ab00ab00ab"]


def test_one_version_or_all_versions_of_a_document(store):
    old = make_entry("hire", "A tiller costs $40.", version="1.9", effective_to="2026-06-30")
    new = make_entry("hire", "A tiller costs $45.", version="1.10", effective_from="2026-07-01")
    store.replace(add=[new, old])
    assert store.chunks("hire") == [*old.chunks, *new.chunks]  # by first day in force, not by the text of the version
    assert store.chunks("hire", "1.10") == new.chunks
    assert store.chunks("hire", "1.1") == store.chunks("hir") == []


def test_the_same_text_under_two_ids_is_stored_twice_and_goes_one_by_one(store):
    twins = [make_entry(name, "Drain the tank.") for name in ("pump-a", "pump-b")]
    store.replace(add=twins)
    assert len(store.keyword(["drain"], STAFF, 9)) == len(store.dense(np.array([1, 0]), STAFF, 9)) == 2
    store.replace(remove=[("pump-a", "2")])
    assert store.keyword(["drain"], STAFF, 9)[0][0] == store.dense(np.array([1, 0]), STAFF, 9)[0][0] == ids(twins[1])[0]
    assert len(store.keyword(["drain"], STAFF, 9)) == len(store.dense(np.array([1, 0]), STAFF, 9)) == 1


def test_a_second_document_of_the_same_version_is_refused_whole(store):
    store.replace(add=[make_entry("hire", "First.")])
    with pytest.raises(LabError, match="same id"):
        store.replace(add=[make_entry("other", "Fine."), make_entry("hire", "Second.")])
    assert [row.doc_id for row in store.documents()] == ["hire"]


# Filters


@pytest.mark.parametrize("day, found", [
    ("2024-12-31", []), ("2025-01-01", ["spring"]), ("2025-06-30", ["one-day", "spring"]), ("2025-07-01", ["summer"]),
    ("9999-12-31", ["summer"]), (None, ["one-day", "spring", "summer"])])
def test_the_last_day_in_force_is_inclusive(store, day, found):
    store.replace(add=[
        make_entry("spring", "Rates.", effective_from="2025-01-01", effective_to="2025-06-30"),
        make_entry("summer", "Rates.", effective_from="2025-07-01"),
        make_entry("one-day", "Rates.", effective_from="2025-06-30", effective_to="2025-06-30")])
    filters = Filters(as_of=day)
    for hits in (store.keyword(["rates"], filters, 9), store.dense(np.array([1, 0]), filters, 9)):
        assert sorted(chunk.doc_id for chunk in store.get([one for one, _ in hits])) == found
    assert sorted(chunk.doc_id for chunk in store.all_chunks(filters)) == found


def test_filters_apply_before_the_limit(store):
    add = [make_entry(f"staff-{n}", "blade blade blade", audience="staff", vectors=[[1, 0]]) for n in range(20)]
    add += [make_entry(f"public-{n}", "one blade in a long sentence on other things", vectors=[[0.6, 0.8]],
                       language="fr" if n else "en", doc_type="policy" if n > 1 else "guide") for n in range(3)]
    store.replace(add=add)
    for search in (lambda filters: store.keyword(["blade"], filters, 3),
                   lambda filters: store.dense(np.array([1, 0]), filters, 3)):
        def names(filters, search=search):
            return sorted(chunk.doc_id for chunk in store.get([one for one, _ in search(filters)]))
        assert all(name.startswith("staff") for name in names(STAFF))
        assert names(Filters()) == ["public-0", "public-1", "public-2"]
        assert names(Filters(language="fr")) == ["public-1", "public-2"]
        assert names(Filters(language="fr", doc_type="guide")) == ["public-1"]


@pytest.mark.parametrize("wrong", ["2025-6-30", "2025-06-30T23:59:59Z", "30.06.2025", "2025-02-30", "",
                                   "２０２５-06-30", "2025-06-30\n", 20250630])
def test_a_date_that_is_no_iso_date_is_refused(wrong):
    with pytest.raises(LabError, match="YYYY-MM-DD"):
        Filters(as_of=wrong)


@pytest.mark.parametrize("wrong", [{"audience": "all"}, {"audience": None}, {"language": "de"}, {"doc_type": "Policy"}])
def test_an_unknown_filter_value_is_refused(wrong):
    with pytest.raises(LabError, match="use one of"):
        Filters(**wrong)


# Keyword search


def test_bm25_scores_are_those_of_the_formula(store):
    bodies = ["blade oil oil", "blade", "chain bar oil sharpen chain", "cover", "wheel", "belt strap hook"]
    entry = make_entry("mowers", *bodies, title="T")
    store.replace(add=[entry])
    words = [["t", *body.split()] for body in bodies]
    mean = sum(map(len, words)) / len(words)

    def score(terms, doc):
        total = 0
        for term in terms:
            n = sum(term in other for other in words)
            idf = max(np.log((len(words) - n + 0.5) / (n + 0.5)), 1e-6)
            f = doc.count(term)
            total += idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * len(doc) / mean))
        return total

    expected = {one: score(["oil", "blade"], doc) for one, doc in zip(ids(entry), words, strict=True)}
    found = store.keyword(["oil", "blade"], STAFF, 9)
    assert [one for one, _ in found] == sorted(filter(expected.get, expected), key=lambda one: -expected[one])
    for one, value in found:
        assert value == pytest.approx(expected[one])


def test_equal_scores_are_sorted_by_chunk_id(store):
    add = [make_entry(f"d{n}", "the same words") for n in range(30)]
    store.replace(add=add[::2])
    store.replace(add=add[1::2])
    every = sorted(one for entry in add for one in ids(entry))
    for limit in (1, 7, 30):
        assert [one for one, _ in store.keyword(["same"], STAFF, limit)] == every[:limit]
        assert [one for one, _ in store.dense(np.array([1, 0]), STAFF, limit)] == every[:limit]


def test_accents_do_not_matter(store):
    entry = make_entry("garantie", "La débroussailleuse est garantie.")
    store.replace(add=[entry])
    for term in ("debroussailleuse", "DÉBROUSSAILLEUSE", "de\u0301broussailleuse"):
        assert [one for one, _ in store.keyword([term], STAFF, 9)] == ids(entry)


@pytest.mark.parametrize("term", ["AND", "NOT", "NEAR(blade, 2)", "blade*", '"', '""', 'say "blade', "text:blade",
                                  "^blade", "(blade", "{text}: x", "-blade", "a + b", "*", "🏡", "% _ \\", "blade\0oil",
                                  "\0", " ", "", "; DROP TABLE chunks; --", "\ud800"])
def test_no_term_is_read_as_query_language(store, term):
    entry = make_entry("mowers", "Sharpen the blade. A hedge is not a mower, near or far.")
    store.replace(add=[entry])
    store.keyword([term], STAFF, 9)
    assert [one for one, _ in store.keyword([term, "sharpen"], STAFF, 9)] == ids(entry)  # nor does it hide the others
    assert store.keyword(["bla*"], STAFF, 9) == store.keyword([term], STAFF, 0) == []


@given(st.lists(st.text(max_size=20), max_size=8))
@settings(max_examples=60, deadline=None)
def test_any_terms_are_legal(one_store, terms):
    for _, score in one_store.keyword(terms, STAFF, 3):
        assert score > 0


def test_thousands_of_terms(store):
    entry = make_entry("mowers", "Sharpen the blade.")
    store.replace(add=[entry])
    assert [one for one, _ in store.keyword([f"word{n}" for n in range(5000)] + ["blade"], STAFF, 9)] == ids(entry)


# Dense search


@given(st.lists(st.tuples(st.integers(0, 2**48 - 1), st.integers(-3, 3), st.booleans()), min_size=1, max_size=40,
                unique_by=lambda row: row[0]), st.integers(0, 45))
def test_nearest_is_the_head_of_the_whole_sorted_list(rows, limit):
    rows = sorted(rows)
    matrix = Matrix([row for row, _, _ in rows], np.array([[tilt, 1] for _, tilt, _ in rows], dtype=np.float32), 0)
    allowed = [row for row, _, let in rows if let]
    every = sorted(((row, float(tilt)) for row, tilt, let in rows if let), key=lambda hit: (-hit[1], hit[0]))
    assert matrix.nearest(np.array([1, 0], np.float32), matrix.mask("key", lambda: allowed), limit) == every[:limit]


def test_dense_search_of_an_empty_index_finds_nothing(store):
    assert store.dense(np.array([1, 0]), STAFF, 5) == []


def test_another_model_or_chunker_is_named_and_refused(embedder):
    class Chunker:
        name, label = "structure(v2)", "structure"

    meta = {"chunker": "structure(v1)", "fingerprint": "fake:1", "dimensions": "16"}
    check_identity(meta, embedder=embedder)
    with pytest.raises(LabError, match=r"chunker structure\(v1\), now structure\(v2\).*--rebuild"):
        check_identity(meta, chunker=Chunker(), embedder=embedder)
    embedder.fingerprint = "fake:2"  # as long as the other, and yet not to be compared
    with pytest.raises(LabError, match=r"embedding model fake:1, now fake:2"):
        check_identity(meta, embedder=embedder)


# One state at a time


def test_the_generation_changes_with_every_write_here_or_elsewhere(store):
    seen = [store.generation()]
    store.replace(add=[make_entry("a", "Own write.")])
    seen.append(store.generation())
    with again(store) as other:
        assert other.keyword(["own"], STAFF, 9)
        assert store.generation() == seen[-1]  # reading is no change
        other.replace(add=[make_entry("b", "Theirs.")])
    seen.append(store.generation())
    assert len(set(seen)) == 3


def test_a_snapshot_is_of_one_state(store):
    a, b = make_entry("a", "Same word."), make_entry("b", "Same word.")
    store.replace(add=[a])
    with again(store) as other:
        with store.snapshot() as generation:
            other.replace(remove=[("a", "2")], add=[b])
            with store.snapshot() as nested:
                assert nested == generation == store.generation()
                assert store.dense(np.array([1, 0]), STAFF, 9) == [(ids(a)[0], 1.0)]
            assert store.keyword(["same"], STAFF, 9)[0][0] == ids(a)[0]
            assert store.get(ids(a) + ids(b)) == a.chunks
        assert store.generation() != generation
        assert store.dense(np.array([1, 0]), STAFF, 9) == [(ids(b)[0], 1.0)]


def test_vectors_in_memory_follow_the_index_unless_told_not_to(store):
    store.replace(add=[make_entry("a", "One.")])
    with again(store) as reader:
        first = reader.dense(np.array([1, 0]), STAFF, 9)
        held = reader._matrix
        assert reader.dense(np.array([1, 0]), STAFF, 9) == first and reader._matrix is held  # not read again
        reader.check_generation = False
        store.replace(remove=[("a", "2")])
        assert reader.dense(np.array([1, 0]), STAFF, 9) == first  # found, and no longer there
        assert reader.get([one for one, _ in first]) == []
        reader.check_generation = True
        assert reader.dense(np.array([1, 0]), STAFF, 9) == []


def test_a_snapshot_that_fails_inside_ends(store):
    with pytest.raises(RuntimeError), store.snapshot():
        raise RuntimeError
    store.replace(add=[make_entry("a", "One.")])  # would be refused inside a transaction
    assert len(store.documents()) == 1


def test_a_write_that_fails_leaves_nothing(store):
    broken = make_entry("b", "Two.")
    broken = Entry(broken.document, [replace(broken.chunks[0], kind=None)], broken.vectors)
    before = store.generation()
    with pytest.raises(LabError):
        store.replace(add=[make_entry("a", "One."), broken])
    with pytest.raises(ValueError, match="1 chunks but vectors"):
        store.replace(add=[make_entry("a", "One."), Entry(broken.document, broken.chunks, np.zeros((2, 2)))])
    assert store.documents() == [] and store.generation() == before


def test_threads_may_share_a_store(store):
    store.replace(add=[make_entry(f"d{n}", f"word{n} shared") for n in range(20)])
    faults = []

    def read(n):
        try:
            for _ in range(30):
                with store.snapshot():
                    assert len(store.keyword(["shared"], STAFF, 99)) == len(store.dense(np.array([1, 0]), STAFF, 99))
                    assert store.keyword([f"word{n}"], STAFF, 9)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


# Files that are no index


def test_no_index_yet(tmp_path):
    for path in (tmp_path / "index.sqlite", tmp_path / "nowhere" / "index.sqlite"):
        with pytest.raises(LabError, match=r"No index at .*index\.sqlite\. Build it with: python -m labsupport ingest"):
            Store(path)
    (tmp_path / "index.sqlite").touch()
    with pytest.raises(LabError, match="No index at"):
        Store(tmp_path / "index.sqlite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.sqlite"]


def test_other_files_are_refused_and_left_as_they_are(tmp_path):
    (tmp_path / "text").write_text("SQLite format 3 is explained here")
    (tmp_path / "noise").write_bytes(hashlib.sha256(b"noise").digest() * 40)
    other = sqlite3.connect(tmp_path / "other.sqlite", isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE chunks (id)")
    (tmp_path / "folder").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name in ("text", "noise", "other.sqlite"):
        for create in (False, True):
            with pytest.raises(LabError, match=f"{name} is not an index of this course and was left as it is"):
                Store(tmp_path / name, create=create)
    with pytest.raises(LabError, match="cannot be read"):
        Store(tmp_path / "folder")
    assert {path: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    other.close()


@pytest.mark.parametrize("found, says", [(FORMAT + 1, "newer version of this program"), (FORMAT - 1, "--rebuild")])
def test_another_format_is_refused(store, found, says):
    store._connection.execute(f"PRAGMA user_version = {found}")
    with pytest.raises(LabError, match=says):
        Store(store.path)


def test_a_damaged_index_says_so(store):
    store.replace(add=[make_entry(f"d{n}", "word " * 200) for n in range(40)])
    store.close()
    data = bytearray(store.path.read_bytes())
    data[4096:] = b"\xee" * (len(data) - 4096)
    store.path.write_bytes(data)
    with Store(store.path) as damaged, pytest.raises(LabError, match=r"damaged .*--rebuild"):
        damaged.documents()


@pytest.mark.parametrize("fault, says", [
    ("no such module: fts5", "without FTS5.*conda-forge"), ("database is locked", "stayed busy"),
    ("database or disk is full", "disk space.*unchanged"), ("attempt to write a readonly database", "who may write")])
def test_what_sqlite_reports_becomes_one_sentence(tmp_path, fault, says):
    with pytest.raises(LabError, match=says), sql_errors(tmp_path / "index.sqlite"):
        raise sqlite3.OperationalError(fault)


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_opening_a_second_store_keeps_the_locks_of_the_first(tmp_path):
    """Closing any other descriptor of the file would drop them, and another process could take the log away."""
    path = tmp_path / "index.sqlite"
    exclusive = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('PRAGMA journal_mode = DELETE')"
    with Store(path, create=True) as first:
        first.documents()
        with Store(path):
            pass
        other = subprocess.run([sys.executable, "-c", exclusive, str(path)], capture_output=True, text=True)
        assert "locked" in other.stderr
        assert first.documents() == []
