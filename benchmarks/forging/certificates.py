"""Where a certificate has its document, what it states and what it claims; and its hashes, which a forger renews."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]

#: The parts of a certificate that a forger changes: its document, and what a reader could believe beside the document.
DOCUMENT = "document"
STATED = ("solved", "privacy", "phases", "guarantee", "evidence")


class Claim(NamedTuple):
    """What a certificate claims: δ(ε) ≤ δ."""

    epsilon: float
    delta: float


def claim(certificate: Json) -> Claim | None:
    """Return the claim, or None if a change left none."""
    guarantee = certificate.get("guarantee")
    pair = [guarantee.get(key) for key in ("epsilon", "delta")] if isinstance(guarantee, dict) else [None]
    if any(isinstance(one, bool) or not isinstance(one, int | float) or abs(one) > 1e300 for one in pair):
        return None
    return Claim(float(pair[0]), float(pair[1]))


def claiming(certificate: Json, wanted: Claim) -> Json:
    """Return the certificate with another claim."""
    guarantee = certificate.get("guarantee")
    kept = guarantee if isinstance(guarantee, dict) else {"kind": "deterministic", "failure_probability": 0.0}
    return {**certificate, "guarantee": {**kept, "epsilon": wanted.epsilon, "delta": wanted.delta}}


def text(certificate: Json) -> str:
    """Return the text of a certificate whose hashes are those of its content."""
    certificate = {**certificate, "document_sha256": _hash(certificate.get(DOCUMENT))}
    content = _stated({key: value for key, value in certificate.items() if key != "content_sha256"})
    return json.dumps({**certificate, "content_sha256": _hash(content)})


def _stated(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stated(item) for key, item in value.items() if item not in (None, [], {})}
    return [_stated(item) for item in value] if isinstance(value, list) else value


def _hash(value: Any) -> str:
    """Return the hash of canonical JSON, with whole numbers as integers."""

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: whole(item) for key, item in value.items()}
        if isinstance(value, list):
            return [whole(item) for item in value]
        return int(value) if isinstance(value, float) and abs(value) < 1e300 and value == int(value) else value

    return hashlib.sha256(json.dumps(whole(value), sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def meant(certificate: Json, folder: Path) -> Json:
    """Return the document that a certificate is about: with the value of its blank, with what was chosen, and with its matrices.

    Coefficients that are the result of a search, and the entries of a file, are those of the certificate: they are a part of what
    it claims. What is only about the work of the house (`accounting`, `workload`, `composed_from`) is left out. Raises
    LookupError, TypeError or ValueError if the parts of the certificate do not fit each other.
    """
    document: Json = copy.deepcopy(certificate[DOCUMENT])
    solved = certificate.get("solved")
    if solved:
        *path, last = [
            int(key) if key.isdigit() else key for key in re.findall(r"[^.\[\]]+", str(solved.get("path", "")))
        ]
        place: Any = document
        for key in path:
            place = place[key]
        if place[last] != "solve":
            raise ValueError(f"{solved['path']} is not the blank")
        place[last] = solved["value"]
    document.pop("composed_from", None)
    document.pop("accounting", None)
    bodies = document.get("phases", [document])
    for body, stated in zip(bodies, certificate.get("phases") or (), strict=False):
        if isinstance(body, dict) and isinstance(stated, dict):
            body.pop("workload", None)
            _chosen(body.get("sampler"), stated.get("chosen"))
            if isinstance(body.get("matrix"), dict):
                _chosen(body["matrix"], stated.get("matrix"))
                body["matrix"] = _matrix(body["matrix"], stated.get("matrix") or {}, folder)
    return document


def _chosen(section: Any, stated: Any) -> None:
    for key, value in section.items() if isinstance(section, dict) else ():
        if isinstance(value, dict) and set(value) == {"choose"}:
            if (stated or {}).get(key) not in value["choose"]:
                raise ValueError(f"{key} is not one of those to choose from")
            section[key] = stated[key]


def _matrix(matrix: Json, stated: Json, folder: Path) -> Json:
    """Return the matrix with the entries that are a part of the claim, where it is the result of a search or is from a file."""
    kind, normalize = matrix.get("kind"), {key: matrix[key] for key in ("normalize",) if key in matrix}
    if kind == "optimal-toeplitz" and stated.get("coefficients"):
        return {"kind": "toeplitz", "coefficients": stated["coefficients"], **normalize}
    if kind == "blt" and "buffers" in matrix and stated.get("buffers"):
        return {"kind": "blt", **{key: stated["buffers"][key] for key in ("scales", "decays")}, **normalize}
    if kind == "dense" and stated.get("entries") and isinstance(matrix.get("file"), str):
        import numpy as np

        file = folder / "entries.npy"
        np.save(file, np.array(stated["entries"], dtype=float))
        return {**matrix, "file": str(file)}
    return matrix
