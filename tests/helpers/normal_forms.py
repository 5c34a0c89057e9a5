"""Normal forms, claims about them, and what the independent checker says of these."""

import json
from typing import Any

from pyaccount.independent.form import digest, printed
from pyaccount.independent.verdict import ProofLimits, check, claim_of

Node = dict[str, Any]


def form(mechanism: Node, adjacency: str = "add-remove", group: int = 1) -> str:
    """Return the text of a form."""
    return printed({"adjacency": adjacency, "group": str(group), "mechanism": mechanism})


def claim(text: str | None, epsilon: float, delta: float, **more: Any) -> str:
    """Return a certificate, as far as the checker reads it."""
    guarantee = {"epsilon": epsilon, "delta": delta}
    sha256 = None if text is None else digest(text)
    return json.dumps(
        {"name": "claimed", "guarantee": guarantee, "mechanism": text, "mechanism_sha256": sha256, **more}
    )


def judged(text: str, epsilon: float, delta: float, seconds: float = 4.0, seed: int | None = None) -> dict[str, Any]:
    """Return the verdict on a form with an ε and a δ."""
    return check(claim_of(claim(text, epsilon, delta)), ProofLimits(seconds, seed=seed))


def verdict_of(certificate: dict[str, Any], seconds: float = 20.0) -> dict[str, Any]:
    """Return the verdict on a certificate."""
    return check(claim_of(json.dumps(certificate)), ProofLimits(seconds))


def gaussian(sigma: str = "4") -> Node:
    """Return the Gaussian mechanism."""
    return {"kind": "gaussian", "sensitivity": "1", "sigma": sigma}


def rounds(sampler: Node, count: int, *noise: str) -> Node:
    """Return rounds of training."""
    one = {"kind": "round", "noise": list(noise), "sampler": sampler}
    return one if count == 1 else {"count": str(count), "kind": "repeat", "of": one}


def poisson(probability: Any = "0.02", count: int = 40, sigma: str = "1", draws: int = 1) -> Node:
    """Return rounds of Poisson sampling."""
    return rounds({"draws": str(draws), "kind": "poisson", "probability": probability}, count, sigma)


def spaced(n: int, b: int, p: str, matrix: Node, sigma: str, *, start: str = "warm") -> Node:
    """Return a run of b-min-sep sampling."""
    sampler = {"kind": "spaced", "probability": p, "separation": str(b), "start": start}
    return {"kind": "run", "matrix": matrix, "noise": [sigma], "rounds": str(n), "sampler": sampler}
