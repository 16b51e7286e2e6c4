"""Exercises, predictions and knowledge questions: the machinery here, the content of each module in m00.py … m07.py."""

from labsupport.lab.exercises.content import (
    Choice,
    Exercise,
    Knowledge,
    Module,
    Prediction,
    Wrong,
    compare,
    same,
    short,
    solved,
)
from labsupport.lab.exercises.discovery import modules

__all__ = [
    "Choice",
    "Exercise",
    "Knowledge",
    "Module",
    "Prediction",
    "Wrong",
    "compare",
    "modules",
    "same",
    "short",
    "solved",
]
