"""Certificates that forgeries begin with: of cases of the adversary, of small documents, and those of the tests."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from adversaries.cases import Case, drawn
from adversaries.kinds import BUILDERS

import pyaccount
from forging.certificates import Claim, Json
from forging.documents import DOCUMENTS, DONORS
from pyaccount.errors import PyaccountError

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "certificates" / "v1"


class Start(NamedTuple):
    """A certificate, and claims of it that adversaries refute."""

    certificate: Json
    false: tuple[Claim, ...] = ()


def kinds() -> list[str]:
    """Return the names of all kinds of certificates."""
    golden = [f"golden {path.stem}" for path in sorted(GOLDEN.glob("*.json"))]
    return [*BUILDERS, *(f"document {name}" for name in DOCUMENTS), *golden]


def donors() -> Iterator[Json]:
    """Yield documents of every kind, whose keys and values other documents may get."""
    yield from DOCUMENTS.values()
    yield from DONORS


def start(kind: str, seed: int, limit: float) -> Start | None:
    """Return a certificate of a kind; None if the house has none for what was drawn, or not in time."""
    if kind.startswith("golden "):
        return Start(json.loads((GOLDEN / f"{kind.removeprefix('golden ')}.json").read_text(encoding="utf-8")))
    case = None
    if kind.startswith("document "):
        name = kind.removeprefix("document ")
        document = {"pyaccount": 1, "name": name, "accounting": {"profile": []}, **DOCUMENTS[name]}
    else:
        # Most are of one phase, whose proofs are quick.
        cases = (drawn(seed + 1_000_003 * k, kind) for k in range(30))
        case = next((one for one in cases if one is not None and (len(one.phases) == 1 or seed % 4 == 0)), None)
        if case is None:
            return None
        delta = (1e-3, 1e-5, 1e-7)[seed % 3]
        document = case.document(privacy={"epsilon": "solve", "delta": delta}, accounting={"profile": []})
        if len(case.phases) == 1 and seed % 2:
            # The same without a list of one phase.
            (body,) = document.pop("phases")
            document = (
                {**document, **body}
                if not {"parallel", "select", "phases"} & set(body)
                else {**document, "phases": [body]}
            )
    try:
        made = pyaccount.certify(pyaccount.load(document, folders=[tempfile.gettempdir()]), threads=1, time_limit=limit)
    except PyaccountError:
        return None
    return Start(json.loads(made.to_json()), () if case is None else _false(case))


def _false(case: Case) -> tuple[Claim, ...]:
    """Return claims that a pair of data sets refutes, by 0.5 % of δ: enumeration knows, and nobody else."""
    laws = [*case.laws, *(law.reversed() for law in case.laws)]
    claims = []
    for epsilon in (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
        delta = max(law.least(epsilon) for law in laws)
        if 1e-12 < delta < 0.999:
            claims.append(Claim(epsilon, delta * 0.995))
    return tuple(claims)
