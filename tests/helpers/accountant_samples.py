"""A small run and a round, for tests of accountants."""

import copy
from typing import Any

from plain_documents import doc

POISSON: dict[str, Any] = doc(
    "name=run adjacency=add-remove epsilon=3 sampling_probability=0.01 iterations=1000 sampler=poisson multiplier=0.8"
)
ROUND: dict[str, Any] = {"noise_multiplier": 0.8, "sampling_probability": 0.01}


def changed(**sections: Any) -> dict[str, Any]:
    return {**copy.deepcopy(POISSON), **sections}
