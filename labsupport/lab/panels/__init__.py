"""Panels: what a lesson lets a learner move and look at. One panel a file; each with a plain function beside it.

All names can be imported from here; a panel's module loads on first use.
"""

from importlib import import_module

_HOMES = {
    "assistant": "AssistantPanel assistant_panel assistant_view",
    "base": "Panel View",
    "budget": "BudgetPanel budget_panel budget_rows budget_view",
    "chunks": "ChunksPanel chunks_panel chunks_view",
    "citations": "CitationsPanel citations_panel citations_view",
    "cost": "CostPanel cost_panel cost_view",
    "deletion": "DeletionPanel Step deletion_panel deletion_steps deletion_view",
    "evidence": "EvidencePanel evidence_panel evidence_view",
    "filters": "FiltersPanel filters_panel filters_view",
    "life": "LifePanel life_panel life_view",
    "search": "SearchPanel search_panel search_view",
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
