"""`____`, the blank of an exercise: it stands where an answer belongs and lets the cell run without one.

Whatever is done with a blank gives a blank, nothing, or zero, so that "Run all" works with nothing answered. It is
noted that a blank was used; `check` then says "not attempted" instead of judging what came out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

_used = False


class Blank:
    """The type of `____`."""

    def __repr__(self) -> str:
        return "____"

    def __format__(self, spec: str) -> str:
        return "____"

    def __hash__(self) -> int:
        return id(self)

    def __getattr__(self, name: str) -> Blank:
        if name.startswith("_"):  # what Python and Jupyter ask of any object
            raise AttributeError(name)
        return _use(self)

    def __bool__(self) -> bool:
        return _use(False)

    def __len__(self) -> int:
        return _use(0)

    def __index__(self) -> int:
        return _use(0)

    def __float__(self) -> float:
        return _use(0.0)

    def __iter__(self):
        return _use(iter(()))

    def __contains__(self, item: object) -> bool:
        return _use(False)


def _use(result):
    global _used
    _used = True
    return result


def _gives_blank(self: Blank, *_: object, **__: object) -> Blank:
    return _use(self)


_OPERATORS = [
    "add",
    "sub",
    "mul",
    "matmul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
]
for _name in [
    *_OPERATORS,
    *(f"r{name}" for name in _OPERATORS),
    *["eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert", "call", "getitem"],
]:
    setattr(Blank, f"__{_name}__", _gives_blank)

BLANK = Blank()


def forget(*_: object) -> None:
    """Start noting anew whether a blank is used."""
    global _used
    _used = False


def was_used() -> bool:
    return _used


def holds_blank(value: object, depth: int = 4) -> bool:
    """Is the value a blank, or a list, tuple, set or dict with one inside?"""
    if isinstance(value, Blank):
        return True
    if depth and isinstance(value, Mapping):
        return any(holds_blank(one, depth - 1) for pair in list(value.items()) for one in pair)
    return (
        bool(depth)
        and isinstance(value, list | tuple | set | frozenset)
        and any(holds_blank(one, depth - 1) for one in value)
    )


if "IPython" in sys.modules and (_shell := sys.modules["IPython"].get_ipython()):
    _shell.events.register("pre_execute", forget)  # what an earlier cell did with a blank is no concern of this one
