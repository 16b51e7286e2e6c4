"""Any sequence of changes to the folder, then ingest, gives what a new index of the same folder holds."""

import shutil
import tempfile
from pathlib import Path

import pytest
from fakes import FakeEmbedder
from garden import front_matter
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from index_state import check, opened, state

from labsupport.pipeline import LabError
from labsupport.pipeline.index import Filters
from labsupport.pipeline.updates import ingest

NAMES = ("a.md", "b.md", "B2.md", "care/a.md", "care/c.md", "z.md")
KEYS = tuple((doc_id, version) for doc_id in ("hire", "mower", "pump") for version in ("1", "2"))
SECTIONS = ("## Deposit\n\nThe deposit is $80.\n\n", "## Oil\n\nChange the oil.\n\n", "Loose words.\n\n",
            "## Deposit\n\nThe deposit is $95.\n\n", "## Winter\n\nDrain the tank, keep it dry.\n\n")


def content(key, sections, staff):
    """Title and text are the same for all documents: only ids and places tell many chunks apart."""
    head = front_matter(doc_id=key[0], version=key[1], title="Care", audience="staff" if staff else "public")
    return (head + "# Care\n\n" + "".join(SECTIONS[number] for number in sections)).encode()


contents = st.builds(content, st.sampled_from(KEYS), st.lists(st.integers(0, 4), max_size=5), st.booleans())
names = st.sampled_from(NAMES)


class Sequence(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.home = Path(tempfile.mkdtemp())
        self.folder = self.home / "documents"
        (self.folder / "care").mkdir(parents=True)
        self.index, self.deleted = self.place("index"), {}

    def place(self, name):
        """Where an index is to be; nothing is there yet. test_postgres.py names other places."""
        path = self.home / f"{name}.sqlite"
        path.unlink(missing_ok=True)
        return path

    def teardown(self):
        shutil.rmtree(self.home, ignore_errors=True)

    def files(self):
        return {name: (self.folder / name).read_bytes() for name in NAMES if (self.folder / name).exists()}

    @rule(name=names, data=contents)
    def write(self, name, data):
        (self.folder / name).write_bytes(data)

    @rule(one=names, other=names)
    def move_or_swap(self, one, other):
        files = self.files()
        for name in (one, other):
            (self.folder / name).unlink(missing_ok=True)
        for source, target in ((one, other), (other, one)):
            if source in files:
                (self.folder / target).write_bytes(files[source])

    @rule(one=names, other=names)
    def copy(self, one, other):
        if one in self.files():
            (self.folder / other).write_bytes(self.files()[one])

    @rule(name=names)
    def delete(self, name):
        if name in self.files():
            self.deleted[name] = self.files()[name]
            (self.folder / name).unlink()

    @precondition(lambda self: self.deleted)
    @rule(name=names)
    def restore(self, name):
        if name in self.deleted:
            (self.folder / name).write_bytes(self.deleted[name])

    @rule(rebuild=st.sampled_from([False, False, False, True]))
    def compare(self, rebuild):
        before, fresh, model = state(self.index), self.place("fresh"), FakeEmbedder()
        try:
            ingest(self.home, fresh, FakeEmbedder(), allow_empty=True)
        except LabError as error:  # two files claim one version
            with pytest.raises(LabError) as caught:
                ingest(self.home, self.index, model, rebuild=rebuild, allow_empty=True)
            assert str(caught.value) == str(error) and state(self.index) == before
            return
        report = ingest(self.home, self.index, model, rebuild=rebuild, allow_empty=True)
        assert state(self.index) == state(fresh)
        check(self.index)
        assert {*report.added, *report.updated, *report.unchanged} == {f"documents/{name}" for name in self.files()}
        with opened(self.index) as changed, opened(fresh) as new:
            for filters in (Filters(), Filters(audience="staff")):
                for word in ("deposit", "tank"):
                    vector = model._vector(word)
                    assert changed.keyword([word], filters, 4) == new.keyword([word], filters, 4)
                    assert changed.dense(vector, filters, 4) == new.dense(vector, filters, 4)
        again = ingest(self.home, self.index, FakeEmbedder(), allow_empty=True)
        assert again.line.endswith("0 removed | chunks: +0 -0") and not again.added + again.updated


TestSequence = Sequence.TestCase
TestSequence.settings = settings(max_examples=15, stateful_step_count=20, deadline=None,
                                 suppress_health_check=list(HealthCheck))
