"""Finds the budget that a document sets: there is one class for each measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyaccount.risk.advantage import AdvantageBudget
from pyaccount.risk.gaussian_mu import GaussianBudget
from pyaccount.risk.rate import RateBudget

if TYPE_CHECKING:
    from pyaccount.document.document import Document
    from pyaccount.risk.budget import Budget

BUDGETS: tuple[type[Budget], ...] = (AdvantageBudget, RateBudget, GaussianBudget)


def budget_of(document: Document) -> Budget | None:
    """Return the risk budget of a document; None if it sets ε and δ instead."""
    risk, delta = document.risk, document.privacy.delta
    if risk is None:
        return None
    assert delta != "solve"
    return next(found for budget in BUDGETS if (found := budget.of(risk, delta)) is not None)
