import pytest
from fakes import FakeEmbedder


@pytest.fixture
def embedder():
    return FakeEmbedder()
