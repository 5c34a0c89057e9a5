"""What is written in place of a sampled training run with Laplace noise protects as the run does."""

import re

import pytest
from plain_documents import doc

import pyaccount


@pytest.mark.parametrize("adjacency", ["add-remove", "zero-out", "replace-one"])
def test_the_mechanism_that_is_named_moves_as_far_as_a_record_of_the_run(adjacency: str) -> None:
    """Without sampling both can be certified: they have one ε."""
    run = doc(f"name=numbers adjacency={adjacency} iterations=3 delta=1e-6 sampler=poisson sampling_probability=0.1")
    run["noise"] = {"kind": "laplace", "multiplier": 2.0}
    with pytest.raises(pyaccount.DocumentError) as caught:
        pyaccount.compile(run)
    found = re.search(r"mechanism: \{kind: laplace, sensitivity: (\d)\}", caught.value.problems[0].message)
    assert found is not None
    mechanism = {"kind": "laplace", "scale": 2.0, "sensitivity": int(found[1])}
    named = {**{key: run[key] for key in ("pyaccount", "name", "privacy")}, "mechanism": mechanism, "count": 3}
    unsampled = {**run, "training": {"iterations": 3}, "sampler": {"kind": "none"}}
    assert pyaccount.certify(named).epsilon == pytest.approx(pyaccount.certify(unsampled).epsilon, rel=1e-9)
