"""For `pytest --nbval notebooks`: each notebook runs with a folder of workspaces of its own, as on a fresh clone."""

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """The kernel of a notebook starts with its first cell, and takes LAB_HOME from here."""
    factory = item.config._tmp_path_factory
    with pytest.MonkeyPatch.context() as patch:
        homes = item.config.stash.setdefault(HOMES, {})
        if item.path not in homes:
            homes[item.path] = factory.mktemp(item.path.stem) / "workspaces"
        patch.setenv("LAB_HOME", str(homes[item.path]))
        return (yield)


HOMES = pytest.StashKey[dict]()
