import os
from itertools import count

import pytest
from browser import chromium_path, start_browser
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


@pytest.fixture
def closed_at_the_end():
    """The workspace that a test opened last is closed after it."""
    from labsupport.lab import workspace

    yield
    if workspace.current():
        workspace.current().close()


_numbers = count()


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium. Skipped where there is none, unless LAB_REQUIRE_BROWSER=1."""
    if chromium_path() is None:
        reason = "no Chromium found (install chromium, or name it in CHROMIUM)"
        if os.environ.get("LAB_REQUIRE_BROWSER") == "1":
            pytest.fail(f"LAB_REQUIRE_BROWSER=1, but {reason}")
        pytest.skip(reason)
    with start_browser() as browser:
        yield browser
