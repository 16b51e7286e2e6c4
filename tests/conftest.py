from itertools import count

import pytest
from fakes import FakeEmbedder
from hypothesis import settings
from postgres_server import pg_server  # noqa: F401  a fixture

# Hypothesis gives each example 200 ms and calls a slower one a failure; on a busy machine any may be slower.
settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")


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
