"""What the notebooks import. Each name loads on first use.

    from labsupport.lab import open_module, show_source, ____, check, hint, solution
    from labsupport.lab import predict, reveal, knowledge, progress

open_module("04")       opens the module in the learner's workspace and says from what; gives a `Lab`:
                        corpus, index (paths), store, retriever, embedder, filters, answers, question("Q30"),
                        search("Q30" or any text, method, k, as_of=, audience=, …), ingest(), edit(path, old, new),
                        copy(own=False) (a practice copy with the same attributes), close()
show_source(assemble)   the source of a function or class;  show_text(…): a text, its lines broken between words
____                    the blank of an exercise: a cell runs with it, and check says "not attempted"
check("4.2", answer)    prints pass, fail (seen, expected, where to look again), error, or not attempted; never raises
hint("4.2")             the next hint;  solution("4.2"): the solution and its reason
predict("4.p1", guess)  keeps a guess;  reveal("4.p1"): the outcome beside it
knowledge("4.k1")       a question with choices;  knowledge("4.k1", "b"): the feedback on a choice, as text
progress()              a table over all modules
"""

from importlib import import_module

_HOMES = {
    "workspace": "Lab open_module",
    "source": "show_source show_text",
    "exercises.grading": "check hint solution",
    "exercises.questions": "knowledge knowledge_text predict reveal",
    "progress_cell": "progress",
}
_MODULES = {name: f"labsupport.lab.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted([*_MODULES, "____"])


def __getattr__(name: str) -> object:
    if name == "____":
        from labsupport.lab.blank import BLANK

        return BLANK
    if name not in _MODULES:
        raise AttributeError(f"module 'labsupport.lab' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return __all__
