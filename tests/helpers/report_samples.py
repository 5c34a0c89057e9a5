"""Certificates for tests of reports: one of each kind, the same with hostile text, and the text that a terminal shows."""

import json
from functools import cache
from typing import Any

from places import EXAMPLES

import pyaccount
from pyaccount.certificate.compared import FailedRecord
from pyaccount.certificate.report import page_of
from pyaccount.pages.terminal import terminal

HOSTILE = (
    "<script>window.owned = 1</script><img src=x onerror=alert(1)> \"'&amp; | a_b_ *c* `d` [e](http://f) "
    "![g](h)\n# i ${{7*7}} www.j.k"
)

#: One certificate of each kind: the example, and the changes that make it quick.
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "composed": ("cifar10-dp-sgd", ()),
    "refuted": ("check-a-claim", ("privacy.epsilon=2",)),
    "matrix": ("full-batch", ("accounting.profile=[1]",)),
    "phases": ("count-and-train", ()),
    "sampled": (
        "production-b-min-sep",
        (
            *("training.iterations=64", "training.expected_batch_size=1_000_000", "accounting.seed=5"),
            *("sampler.min_separation=8", "matrix.bands=8", "noise.multiplier=1.2"),
            *("privacy.delta=1e-2", "privacy.epsilon=4"),
        ),
    ),
    "confidence": (
        "production-b-min-sep",
        (
            *("training.iterations=64", "training.expected_batch_size=1_000_000", "accounting.seed=5"),
            *("sampler.min_separation=8", "matrix.bands=8", "noise.multiplier=1.2"),
            *("privacy.delta=1e-2", "privacy.epsilon=solve"),
        ),
    ),
    "substitution": (
        "fixed-size-replace-one",
        ("training.iterations=2", "noise.multiplier=2", "accounting.profile=[1]"),
    ),
    "group": ("group-level-poisson", ("privacy.group_size=3",)),
}


@cache
def certificate(kind: str) -> pyaccount.Certificate:
    example, changes = KINDS[kind]
    return pyaccount.certify(EXAMPLES / f"{example}.yaml", overrides=changes)


@cache
def amplified() -> pyaccount.AmplificationCertificate:
    return pyaccount.amplify(EXAMPLES / "one-draw.yaml")


@cache
def compared() -> pyaccount.Comparison:
    """Return a comparison of certificates of two kinds, one with a name that contains markup, and a document that fails."""
    found = pyaccount.compare(
        [certificate("matrix"), certificate("composed"), certificate("refuted"), certificate("sampled")]
    )
    named = found.rows[1].model_copy(update={"name": HOSTILE, "sampler": HOSTILE})
    failed = FailedRecord(place=4, name=HOSTILE, file=None, why="stopped", message=HOSTILE, seconds=0.1)
    return found.model_copy(update={"rows": [found.rows[0], named, *found.rows[2:]], "failures": [failed]})


def hostile(kind: str) -> pyaccount.Certificate:
    """Return the certificate of a kind with hostile text in every free text."""
    data: dict[str, Any] = json.loads(certificate(kind).to_json())
    for key in ("name", "statement", "noise_convention", "document_sha256", "created"):
        data[key] = HOSTILE
    data["assumptions"] = [HOSTILE, HOSTILE]
    data["versions"] = {HOSTILE: HOSTILE}
    data["document"] = {HOSTILE: {HOSTILE: [HOSTILE, 1e-5]}, "```": "```"}
    data["unamplified"]["description"] = data["evidence"]["engine"] = HOSTILE
    for reduction in data["reductions"]:
        for key in ("path", "subject", "theorem", "source", "pair", "rounds", "remark"):
            reduction[key] = HOSTILE if reduction[key] is not None else None
    for phase in data["phases"]:
        phase["name"] = phase["sampler"] = HOSTILE
        if phase["matrix"]["kind"] != "identity":
            phase["matrix"]["kind"] = phase["matrix"]["sha256"] = HOSTILE
    for line in data["evidence"]["error_budget"]:
        # Lines of one source must stay together.
        line["source"] = f"{line['source']} {HOSTILE}"
    for composition in data["evidence"]["compositions"]:
        composition["question"] = HOSTILE
    if data["solved"] is not None:
        data["solved"]["path"] = HOSTILE
    return pyaccount.Certificate.from_json(json.dumps(data))


def text_of(found: pyaccount.Certificate) -> str:
    return terminal(page_of(found.data), 200)
