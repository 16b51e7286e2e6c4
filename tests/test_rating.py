"""Reading only what can still win chooses the very sentences that reading everything would, and says them sooner."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from garden import count_tokens, document
from hypothesis import given
from hypothesis import strategies as st

import labsupport.pipeline.extractive as extractive
from labsupport.pipeline.answering import in_words
from labsupport.pipeline.chunking import StructureChunker
from labsupport.pipeline.context import assemble, word_set
from labsupport.pipeline.extractive import ExtractiveAnswerer
from labsupport.pipeline.rating import FirstStage, Rated, Thresholds, Unread, choose
from labsupport.pipeline.rewriting import rewrite
from labsupport.pipeline.sentences import sentences

PLAIN = StructureChunker(count_tokens).chunk(document("# Hedge trimmers\n\n## Use\n\nText.\n"))[0]
SAYINGS = ("Oil the blades daily.", "Wipe them dry.", "Oil the blades daily!", "Never cut wire.", "Wear gloves.",
           "Huilez la lame.", "Blades last for years.")  # fmt: skip
QUESTIONS = ("How often do I oil the blades?", "How often do I oil the blades, and what must I never cut?",
             "What do I wear, how long do the blades last, and when do I oil them?", "Quand faut-il huiler la lame ?")


class Scores:
    """A reranker of known scores that keeps what it was given to read."""

    name, languages = "scores", ("en",)

    def __init__(self, of):
        self.of, self.read = of, []

    def score(self, question, texts):
        self.read += [(question, text) for text in texts]
        return np.array([self.of(question, text) for text in texts], dtype=np.float32)


class Cosines:
    """An embedding model of known cosines with whatever is asked."""

    name, max_tokens = "cosines", 512

    def __init__(self, of):
        self.of, self.read = of, []

    def count_tokens(self, text):
        return 1

    def embed(self, texts, *, query=False):
        if query:
            return np.array([[1.0, 0.0]] * len(texts), dtype=np.float32)
        self.read += texts
        cosines = [self.of(text) for text in texts]
        return np.array([[one, math.sqrt(1 - one * one)] for one in cosines], dtype=np.float32)


def passage(number, *said, **about):
    return replace(PLAIN, chunk_id=f"{number:012x}", seq=number, title=f"Page {number}", body=" ".join(said), **about)


@pytest.fixture
def limits(monkeypatch):
    known = {}
    monkeypatch.setattr(extractive, "thresholds", known.__getitem__)
    return known


def exhaustive(question, context, logit, cosine, limits):
    """The rule itself: rate everything, sort, choose. Equal ratings stay in the order of the passages."""

    def rate(query, pool, by_embedding):
        one_of, found = limits["cosines" if by_embedding else "scores"], []
        for language in dict.fromkeys(one.chunk.language for one in pool):
            asked = query.text if language == query.language else query.translated or query.text
            stage = FirstStage(None, asked)
            for one in (one for one in pool if one.chunk.language == language):
                own, whole = (
                    stage.mean(float(np.float32(cosine(text))), text) if by_embedding
                    else float(np.float32(logit(asked, text))) for text in (one.in_context, one.chunk.text)
                )
                mixed = (own + one_of.passage_weight * whole) / (1 + one_of.passage_weight)
                rule = one.chunk.doc_type in ("policy", "procedure")
                found.append((mixed + (one_of.rule_bonus if rule else 0.0), one))
        found.sort(key=lambda pair: -pair[0])
        if not found or found[0][0] < one_of.abstain_below:
            return []
        floor = max(found[0][0] - one_of.also_within, one_of.abstain_below)
        return without_repeats([one for rating, one in found if rating >= floor])[:3]

    wanted, chosen, parts = [one for chunk in context.kept for one in sentences(chunk)], [], rewrite(question).queries
    for query in parts:
        known = query.language == "en" or query.translated
        readable = [one for one in wanted if known and one.chunk.language == "en"]
        pools = [(readable, False), ([one for one in wanted if one not in readable], True)]
        pools = [pool for pool in pools if pool[0]]
        pools.sort(key=lambda pool: all(one.chunk.language != query.language for one in pool[0]))
        some = next(filter(None, (rate(query, *pool) for pool in pools)), [])
        chosen = without_repeats([*chosen, *some[: 4 - len(parts)]])
    return chosen[:3]


def without_repeats(found):
    kept = []
    for one in found:
        words = word_set(one.text)
        if all(len(words & (others := word_set(o.text))) / max(1, min(len(words), len(others))) < 0.75 for o in kept):
            kept.append(one)
    return kept


said = st.lists(st.sampled_from(SAYINGS), min_size=1, max_size=5)
kinds = st.fixed_dictionaries({"doc_type": st.sampled_from(["policy", "help article"]),
                               "language": st.sampled_from(["en", "en", "fr"])})
thresholds = st.builds(
    Thresholds, abstain_below=st.sampled_from([-1.0, 0.3, 1.0]), also_within=st.sampled_from([0.0, 0.5, 3.0]),
    passage_weight=st.sampled_from([0.0, 0.5, 1.0]), rule_bonus=st.sampled_from([0.0, 2.0]),
    highest=st.sampled_from([4.0, math.inf]),
)  # fmt: skip


@given(st.sampled_from(QUESTIONS), st.lists(st.tuples(said, kinds), max_size=6), thresholds, thresholds, st.integers())
def test_lazy_selection_is_exhaustive_selection(question, pages, reads, embeds, seed):
    def logit(asked, text):  # few values, so that many are equal, and the highest often
        return random.Random(f"{seed}{asked}{text}").choice([-4.0, 0.0, 2.0, 3.0, 3.5, 4.0])

    def cosine(text):
        return random.Random(f"{seed}{text}").choice([-0.5, 0.0, 0.25, 0.5, 1.0])

    limits = {"scores": reads, "cosines": embeds}
    context = assemble([passage(number, *texts, **about) for number, (texts, about) in enumerate(pages)], 10**6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extractive, "thresholds", limits.__getitem__)
        answerer = ExtractiveAnswerer(Scores(logit), Cosines(cosine))
        *pieces, answer = answerer.stream(question, context)
        chosen, _ = answerer.select(question, context)
    expected = exhaustive(question, context, logit, cosine, limits)
    assert [rated.sentence for rated in chosen] == expected
    assert [claim.text for claim in answer.claims] == [one.text for one in expected]
    assert pieces == list(in_words(answer.answer)), "the cut into pieces does not show where a sentence was waited for"


def test_a_passage_that_cannot_win_is_not_read_and_what_can_only_come_second_is_read_after_the_first_word(limits):
    limits["scores"] = Thresholds(abstain_below=1.0, also_within=4.0, passage_weight=1.0, rule_bonus=0.0, highest=9.0)
    best, second, hopeless = (passage(1, "Oil the blades daily."), passage(2, "Wipe them dry."), passage(3, "No."))
    wholes = {best.text: 8.0, second.text: 5.0, hopeless.text: -8.0}
    reranker = Scores(lambda _, text: wholes.get(text, 8.0))
    pieces = ExtractiveAnswerer(reranker, Cosines(None)).stream(QUESTIONS[0], assemble([hopeless, second, best]))

    def read():
        return [text for _, text in reranker.read if text not in wholes]

    assert next(pieces) == "Oil "
    assert read() == [sentences(best)[0].in_context]
    assert list(pieces)[-1].answer == "Oil the blades daily. Wipe them dry."
    assert read() == [sentences(one)[0].in_context for one in (best, second)]


def test_the_answer_to_the_first_part_is_said_before_the_second_part_is_read(limits):
    limits["scores"] = Thresholds(abstain_below=1.0, also_within=0.0, passage_weight=1.0, rule_bonus=0.0, highest=9.0)
    reranker = Scores(lambda asked, text: 5.0 if ("oil" in asked) == ("Oil" in text) else 0.0)
    pages = [passage(1, "Oil the blades daily."), passage(2, "Never cut wire.")]
    pieces = ExtractiveAnswerer(reranker, Cosines(None)).stream(QUESTIONS[1], assemble(pages))
    assert next(pieces) == "Oil "
    first, second = (query.text for query in rewrite(QUESTIONS[1]).queries)
    assert {asked for asked, _ in reranker.read} == {first}
    assert list(pieces)[-1].answer == "Oil the blades daily. Never cut wire."
    assert {asked for asked, _ in reranker.read} == {first, second}


def test_what_shares_too_few_words_is_not_embedded(limits):
    limits["cosines"] = Thresholds(0.65, 0.0, passage_weight=0.5, rule_bonus=0.0)
    embedder = Cosines(lambda text: 0.9)
    answerer = ExtractiveAnswerer(Scores(None), embedder)
    pages = [passage(1, "Huilez la lame.", "Portez des gants.", language="fr"), passage(2, "Rien.", language="fr")]
    answer = answerer.answer("Quand faut-il huiler la lame ?", assemble(pages))
    assert answer.answer == "Huilez la lame."
    assert embedder.read == [pages[0].text, sentences(pages[0])[0].in_context]


def test_equal_ratings_go_by_place_even_where_the_first_was_read_last():
    limits = Thresholds(abstain_below=0.0, also_within=0.0, passage_weight=0.0, rule_bonus=0.0)
    first, second = (Rated(sentences(passage(at, SAYINGS[at]))[0], 1.0, (at, 0)) for at in (0, 1))
    later = Unread(1.0, lambda: [first])
    assert list(choose([second, later], limits)) == [first, second]
