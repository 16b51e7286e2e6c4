"""Finds the modules that have content, and in them an item by its id: "4.2" an exercise, "4.p1", "4.k1"."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

import labsupport.lab.exercises as package
from labsupport.lab.exercises.content import Exercise, Knowledge, Module, Prediction
from labsupport.pipeline import LabError

Item = TypeVar("Item", Exercise, Knowledge, Prediction)
KINDS = {
    Exercise: ("exercise", "exercises"),
    Prediction: ("prediction", "predictions"),
    Knowledge: ("question", "knowledge"),
}


@cache
def modules() -> tuple[Module, ...]:
    """The modules in their order: every file mNN.py of this package."""
    names = sorted(name for _, name, _ in iter_modules(package.__path__) if name[0] == "m" and name[1:].isdecimal())
    return tuple(import_module(f"{package.__name__}.{name}").MODULE for name in names)


def find(item_id: str, kind: type[Item]) -> Item:
    """The item of this kind with this id. Raises LabError naming those there are."""
    what, where = KINDS[kind]
    number = str(item_id).split(".")[0]
    for module in modules():
        if number.isdecimal() and int(module.number) == int(number):
            items = getattr(module, where)
            for item in items:
                if item.id == item_id:
                    return item
            there = ", ".join(item.id for item in items) or "none"
            raise LabError(f"There is no {what} {item_id!r} in module {int(module.number)}; there are: {there}.")
    raise LabError(f"There is no {what} {item_id!r}: its id begins with the number of a module, such as 4.")
