from itertools import count

import pytest
from fakes import FakeEmbedder
from postgres_server import pg_server  # noqa: F401  a fixture


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture(scope="session")
def _homes(tmp_path_factory):
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def lab_home(_homes, monkeypatch):
    """A place for workspaces that no other test and no learner uses; made by whoever needs it."""
    home = _homes / f"home-{next(_numbers)}"
    monkeypatch.setenv("LAB_HOME", str(home))
    return home


_numbers = count()
