import os
import subprocess
import sys
import time

import numpy as np
import pytest
from desk import WordReranker, WordVectors
from fakes import FakeEmbedder
from garden import front_matter, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labsupport.pipeline import LabError
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.index import Filters
from labsupport.pipeline.search import METHODS, Retriever, fuse
from labsupport.pipeline.store import Store
from labsupport.pipeline.updates import ingest

DOCUMENTS = {
    "hoe": {"title": "The hoe", "sections": {"Sharpening": "Sharpen the hoe with a flat file, state-of-the-art or not.",
                                             "Handle": "The handle of the hoe is ash wood. Rule 38.101 covers it."}},
    "rake": {"title": "The rake", "sections": {"Tines": "Bend the tines of the rake with pliers, not with C# code."}},
    "saw-v1": {"doc_id": "saw", "version": "1", "title": "The saw", "effective_to": "2026-06-30",
               "sections": {"Blade": "The blade of the saw is changed after 20 hours."}},
    "saw-v2": {"doc_id": "saw", "version": "2", "title": "The saw", "effective_from": "2026-07-01",
               "sections": {"Blade": "The blade of the saw is changed after 30 hours."}},
    "till": {"title": "The till", "doc_type": "procedure", "audience": "staff",
             "sections": {"Refunds": "The shift lead refunds a hoe from the till, code GC-77."}},
    "mower": {"title": "The LM-400 mower", "sections": {"Delivery": "The LM-400 mower comes in two boxes.",
                                                        "Blade": "The blade of the LM-400 is part BL-16."}},
    "trimmer": {"title": "The LM-500 mower", "sections": {"Blade": "The blade of the LM-500 is part BL-18."}},
    "tondeuse": {"title": "La tondeuse", "language": "fr",
                 "sections": {"Vente": "Larkfield vend la tondeuse avec une extension de garantie.",
                              "Remise": "Rangez la tondeuse dans la remise."}},
}  # fmt: skip


def make_corpus(folder, documents):
    for name, fields in documents.items():
        fields = dict(fields)
        body = "".join(f"\n## {head}\n\n{text}\n" for head, text in fields.pop("sections").items())
        fields = {"doc_id": name, "doc_type": "guide", **fields}
        write(folder / "corpus", f"{name}.md", f"{front_matter(**fields)}# {fields['title']}\n{body}")
    return folder / "corpus"


def index_of(folder, documents=DOCUMENTS, models=None):
    models = models or WordVectors()
    ingest(make_corpus(folder, documents), folder / "index.sqlite", models, StructureChunker(models.count_tokens))
    return folder / "index.sqlite"


@pytest.fixture(scope="module")
def retriever(tmp_path_factory):
    with Store(index_of(tmp_path_factory.mktemp("search"))) as store:
        yield Retriever(store, WordVectors(), WordReranker())


def found(results):
    return [(result.chunk.label, result.chunk.section) for result in results]


# Fusion


def test_fusion_adds_one_over_sixty_plus_rank():
    fused = dict(fuse([[("a", 9.0), ("b", 8.0)], [("b", 0.5)]]))
    assert fused == {"a": pytest.approx(1 / 61), "b": pytest.approx(1 / 62 + 1 / 61)}
    assert dict(fuse([[("a", 1.0)]], weights=[0.5], k=9)) == {"a": pytest.approx(0.05)}


def test_ties_of_fusion_stand_in_the_order_of_their_ids():
    one, other = [(i, 1.0) for i in "bcad"], [(i, 1.0) for i in "dacb"]
    assert [i for i, _ in fuse([one, other])] == ["b", "d", "a", "c"]
    assert [i for i, _ in fuse([[("z", 1.0)], [("y", 1.0)], [("x", 1.0)]])] == ["x", "y", "z"]


@given(st.lists(st.permutations("abcdef"), min_size=1, max_size=4), st.randoms())
def test_fusion_does_not_depend_on_the_order_of_the_lists(orders, random):
    lists = [[(i, 0.0) for i in order] for order in orders]
    shuffled = list(lists)
    random.shuffle(shuffled)
    assert fuse(lists) == fuse(shuffled)


# Methods


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_it_and_says_by_what(retriever, method):
    results = retriever.search("sharpen the hoe with a file", method, 3)
    assert found(results)[0] == ("hoe v2", "Sharpening")
    scored_by = {"bm25": "bm25", "dense": "cosine", "hybrid": "rrf", "rerank": "reranker"}[method]
    assert all(result.scored_by == scored_by and result.parts[scored_by] == result.score for result in results)
    assert [result.rank for result in results] == list(range(1, len(results) + 1))
    assert results.method == method and results.searched == ("sharpen the hoe with a file",)
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)


def test_reranked_results_keep_the_scores_of_every_stage(retriever):
    (first, *_) = retriever.search("sharpen the hoe", "rerank", 3)
    assert set(first.parts) == {"bm25", "cosine", "rrf", "reranker"} and first.parts["bm25"] > 0


def test_the_first_results_do_not_depend_on_how_many_are_asked_for(retriever):
    for method in METHODS:
        ids = [result.chunk.chunk_id for result in retriever.search("the blade of the mower", method, 9)]
        for k in range(1, 9):
            assert [r.chunk.chunk_id for r in retriever.search("the blade of the mower", method, k)] == ids[:k]


@pytest.mark.parametrize("method", ["BM25", "", "vector"])
def test_an_unknown_method_is_refused_with_the_known_ones(retriever, method):
    with pytest.raises(LabError, match="use one of: bm25, dense, hybrid, rerank"):
        retriever.search("hoe", method)


@pytest.mark.parametrize("k", [0, -1, True, 2.5, "5"])
def test_k_must_be_a_positive_whole_number(retriever, k):
    with pytest.raises(LabError, match="k is"):
        retriever.search("hoe", "bm25", k)


# Filters


@pytest.mark.parametrize("method", METHODS)
def test_filters_apply_before_the_top_k(retriever, method):
    results = retriever.search("the hoe refunds", method, 2, Filters(audience="public"))
    assert len(results) == 2 and all(chunk.audience == "public" for chunk in results.chunks)
    assert ("till v2", "Refunds") in found(retriever.search("the hoe refunds", method, 2, Filters(audience="staff")))
    french = retriever.search("la tondeuse vend", method, 5, Filters(language="fr"))
    assert [chunk.language for chunk in french.chunks] == ["fr", "fr"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("as_of, version", [("2026-06-30", "1"), ("2026-07-01", "2")])
def test_the_last_day_in_force_is_inclusive(retriever, method, as_of, version):
    results = retriever.search("how often is the blade of the saw changed", method, 9, Filters(as_of=as_of))
    assert [chunk.version for chunk in results.chunks if chunk.doc_id == "saw"] == [version]


@pytest.mark.parametrize(
    "wrong",
    [{"as_of": "2026-6-30"}, {"as_of": "2026-06-30T23:59:59Z"}, {"as_of": "30.06.2026"}, {"as_of": "2026-02-30"},
     {"audience": "all"}, {"language": "de"}, {"doc_type": "memo"}],
)  # fmt: skip
def test_filters_that_make_no_sense_are_refused(wrong):
    with pytest.raises(LabError):
        Filters(**wrong)


def test_the_day_of_delivery_takes_the_place_of_the_date(retriever):
    question = "My saw was delivered on 20 June. How often is the blade changed?"
    results = retriever.search(question, "bm25", 9, Filters(as_of="2026-08-01"))
    assert results.filters.as_of == "2026-06-20" and ("saw v1", "Blade") in found(results)
    assert "Delivered on 2026-06-20" in results.notes[0]
    plain = retriever.search(question, "bm25", 9, Filters(as_of="2026-08-01"), rewriting=False)
    assert plain.filters.as_of == "2026-08-01" and ("saw v2", "Blade") in found(plain)


# Any string is a question

HARD = [
    "", " \t\n ", "'", '"', '""', 'the "hoe', "the hoe's handle", "state-of-the-art file", "-rake", "AND", "or",
    "NOT NOT",
    "NEAR(rake hoe, 3)", "rake OR", "((rake", "rake]", "text:rake", "rake*", "*", "^rake", "{text title}: rake",
    "hoe + saw", "38.101", "C#", "what is it", "the of to", "🏡 how sharp?", "50% off = $7.95", "saw\0rake",
    "'); DELETE FROM chunks --", "_ % \\ /", "\ud83c", "hoe " * 25_000, "é" * 100_000, "\0" * 100_000, '"' * 100_000,
    "NOT NEAR " * 11_000, "x" * 100_000,
]  # fmt: skip


@pytest.mark.parametrize("question", HARD, ids=lambda question: ascii(question[:20]))
def test_any_string_is_a_legal_question_and_quick(retriever, question):
    started = time.process_time()
    for method in METHODS:
        results = retriever.search(question, method, 3)
        assert len(results) == 3 or method == "bm25"  # the vector finds something for every question
        if not question.replace("\0", " ").strip():
            assert results.notes[0].startswith("The question is empty")
    assert time.process_time() - started < 1.0


@given(st.text(alphabet=st.characters(), max_size=200))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_strings_are_legal_questions(retriever, question):
    for method in METHODS:
        retriever.search(question, method, 2)


@pytest.mark.parametrize(
    "question, expected",
    [
        ("state-of-the-art file", ("hoe v2", "Sharpening")),
        ("the hoe's handle", ("hoe v2", "Handle")),
        ("38.101", ("hoe v2", "Handle")),
        ("C#", ("rake v2", "Tines")),
        ("How many weeks must I wait for a hoe sharpened with a file, if I pay in store?", ("hoe v2", "Sharpening")),
        ("lm400 blade", ("mower v2", "Blade")),
        ("LM 500 blade", ("trimmer v2", "Blade")),
    ],
)
def test_the_keyword_leg_alone_finds_the_hard_ones(retriever, question, expected):
    assert found(retriever.search(question, "bm25", 3))[0] == expected


@pytest.mark.parametrize("question", ["what is it", "the of to", "*", "🏡"])
def test_stop_words_and_signs_alone_match_no_keyword(retriever, question):
    assert retriever.search(question, "bm25", 3) == []


# Two languages, two parts, conversations


def test_a_french_passage_that_holds_every_translated_word_is_found_and_keeps_its_place(retriever):
    hybrid = retriever.search("Do you sell an extended warranty for the mower?", "hybrid", 5)
    place = found(hybrid).index(("tondeuse v2", "Vente"))
    assert place < 2 and "French documents searched with: vendre extension de garantie tondeuse" in hybrid.notes
    assert ("tondeuse v2", "Remise") not in [pair for pair, r in zip(found(hybrid), hybrid, strict=True)
                                             if "translated bm25" in r.parts]
    reranked = retriever.search("Do you sell an extended warranty for the mower?", "rerank", 5)
    assert found(reranked)[place] == ("tondeuse v2", "Vente") and reranked[place].scored_by == "rrf"
    assert any(note.startswith("The reranker reads English") for note in reranked.notes)
    english = [result.score for result in reranked if result.scored_by == "reranker"]
    assert english == sorted(english, reverse=True)


def test_english_passages_are_reranked_with_the_translation_of_a_french_question(retriever):
    results = retriever.search("Quelle lame pour la tondeuse LM-400 ?", "rerank", 6)
    assert "Reranked with: LM-400 blade lawn mower" in results.notes
    assert {r.scored_by for r in results if r.chunk.language == "en"} == {"reranker"}
    assert {r.scored_by for r in results if r.chunk.language == "fr"} <= {"rrf"}
    assert ("mower v2", "Blade") in found(results)[:3]


def test_a_french_question_without_a_translation_keeps_the_order_of_hybrid(retriever):
    question = "Où se trouve la râpe ?"
    hybrid, reranked = (retriever.search(question, method, 6) for method in ("hybrid", "rerank"))
    assert hybrid.chunks == reranked.chunks and {r.scored_by for r in reranked} == {"rrf"}


def test_the_parts_of_a_question_take_turns(retriever):
    results = retriever.search("How do I sharpen the hoe, and with what do I bend the tines of the rake?", "rerank", 2)
    assert found(results) == [("hoe v2", "Sharpening"), ("rake v2", "Tines")]
    assert len(results.searched) == 2
    more = retriever.search("How do I sharpen the hoe, and with what do I bend the tines of the rake?", "rerank", 9)
    assert len({result.chunk.chunk_id for result in more}) == len(more)


def test_a_follow_up_is_searched_with_its_topic(retriever):
    results = retriever.search("And the handle?", "bm25", 1, history=["How do I sharpen the hoe?"])
    assert found(results) == [("hoe v2", "Handle")] and results.searched == ("sharpen hoe: the handle?",)


# Models


def test_another_model_than_that_of_the_index_is_refused_for_vectors_only(retriever):
    other = Retriever(retriever.store, FakeEmbedder(), WordReranker())
    for method in ("dense", "hybrid", "rerank"):
        with pytest.raises(LabError, match="word-vectors-1, now fake:1"):
            other.search("hoe", method)
    assert other.search("hoe", "bm25", 1)


def test_the_same_length_of_vectors_does_not_make_it_the_same_model(retriever):
    class Impostor(WordVectors):
        fingerprint = "word-vectors-2"

    with pytest.raises(LabError, match="word-vectors-1, now word-vectors-2"):
        Retriever(retriever.store, Impostor()).search("hoe", "dense")


def test_a_question_longer_than_the_model_reads_is_cut_with_a_note(retriever):
    class Short(WordVectors):
        max_tokens = 4

    chunker = StructureChunker(WordVectors().count_tokens)  # a model that short would have the documents cut anew
    short = Retriever(retriever.store, Short(), chunker=chunker)
    results = short.search("sharpen the hoe with a flat file", "dense", 1)
    assert any("cut at" in note for note in results.notes) and results


def test_a_reranker_that_reads_part_of_a_question_says_so(retriever):
    class Short(WordReranker):
        def fit(self, question):
            return question[:7], len(question) > 7

    cut = Retriever(retriever.store, WordVectors(), Short()).search("the hoe or the rake with pliers", "rerank", 1)
    assert found(cut)[0][0] == "hoe v2" and "The reranker reads the first 7 characters of the question." in cut.notes


def test_bm25_loads_no_model(tmp_path):
    index = index_of(tmp_path, {"hoe": DOCUMENTS["hoe"]})
    code = (
        "import sys\nfrom labsupport.pipeline.search import Retriever\nfrom labsupport.pipeline.store import Store\n"
        f"store = Store({str(index)!r})\nassert Retriever(store).search('sharpen the hoe', 'bm25')\n"
        "assert not {'torch', 'sentence_transformers', 'onnxruntime', 'tokenizers', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# The same again, always


def test_results_do_not_depend_on_hash_seeds_or_the_order_of_insertion(tmp_path):
    index_of(tmp_path / "forwards")
    backwards = list(DOCUMENTS.items())[::-1]
    for count in range(1, len(backwards) + 1):  # one document after another, the last first
        index_of(tmp_path / "backwards", dict(backwards[:count]))
    code = (
        "import sys\nsys.path.insert(0, 'tests')\nfrom desk import WordReranker, WordVectors\n"
        "from labsupport.pipeline.search import METHODS, Retriever\nfrom labsupport.pipeline.store import Store\n"
        "with Store(sys.argv[1]) as store:\n    retriever = Retriever(store, WordVectors(), WordReranker())\n"
        "    for question in ('the blade', 'hoe or rake', 'Do you sell an extended warranty for the mower?'):\n"
        "        for method in METHODS:\n"
        "            print([(r.chunk.chunk_id, r.score) for r in retriever.search(question, method, 9)])\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / way / "index.sqlite")],
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": "."}, check=True, capture_output=True, text=True,
        ).stdout
        for way in ("forwards", "backwards") for seed in ("0", "7", "20")
    }  # fmt: skip
    assert len(outputs) == 1


def test_equal_scores_at_the_cut_always_give_the_same_members(tmp_path):
    texts = {f"twin-{n}": {"title": "Twins", "sections": {"Same": "Exactly the same words."}} for n in range(8)}
    with Store(index_of(tmp_path, texts)) as store:
        retriever = Retriever(store, WordVectors(), WordReranker())
        ids = sorted(chunk.chunk_id for chunk in store.all_chunks())
        for method in METHODS:
            results = retriever.search("exactly the same", method, 5)
            assert [chunk.chunk_id for chunk in results.chunks] == ids[:5]
            assert len({result.score for result in results}) == (5 if method == "hybrid" else 1)


@pytest.mark.model
def test_the_default_models_find_the_sentence_meant(tmp_path):
    from labsupport.pipeline.embedding import load_embedder

    with Store(index_of(tmp_path, models=load_embedder())) as store:
        results = Retriever(store).search("How do I get my garden tool keen again?", "rerank", 1)
        assert found(results) == [("hoe v2", "Sharpening")]
        assert np.isfinite(results[0].score)


def test_an_index_cut_by_another_chunker_is_refused_but_not_one_of_the_users_own(retriever, monkeypatch):
    import labsupport.pipeline.chunking as chunking

    class Own:
        label, name = "by-hand", "by-hand(1)"

    meta = retriever.store.meta()
    monkeypatch.setattr(chunking, "make_chunker", lambda label, embedder=None: Own())
    monkeypatch.setattr(retriever.store, "meta", lambda: meta | {"chunker": "structure(limit=9,overlap=1,v2)"})
    with pytest.raises(LabError, match="limit=9.*by-hand.*--rebuild"):
        Retriever(retriever.store, WordVectors()).search("hoe", "dense", 1)
    monkeypatch.undo()
    monkeypatch.setattr(retriever.store, "meta", lambda: meta | {"chunker_label": "by-hand", "chunker": "by-hand(1)"})
    assert Retriever(retriever.store, WordVectors()).search("hoe", "dense", 1)
