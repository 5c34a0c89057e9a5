"""The document that an adapter's result gives, and the single problem of an object that an adapter refuses."""

from collections.abc import Callable
from typing import Any

import pytest
from plain_documents import doc

from pyaccount.errors import DocumentError

DELTA = 1e-5
BASE: dict[str, Any] = doc(
    name="base", epsilon=4, delta=DELTA, sampling_probability=0.1, iterations=20, sampler="poisson", multiplier=2
)


def only_problem(call: Callable[..., object], *args: Any, **keywords: Any) -> Any:
    with pytest.raises(DocumentError) as caught:
        call(*args, **keywords)
    (problem,) = caught.value.problems
    return problem
