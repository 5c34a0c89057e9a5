"""Tools for tests of finished certificates: the golden certificates, changed copies of them, and consistent forgeries."""

import copy
import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from places import CERTIFICATES

import pyaccount

ALL = sorted(CERTIFICATES.glob("v*/*.json"))
#: The golden certificates whose numbers were sampled.
SAMPLED = ("verified", "verified-choice", "confidence")
#: Certificates of training runs, by name.
RUNS = {path.stem: path for path in ALL if path.stem != "amplification"}


def golden(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((CERTIFICATES / "v1" / f"{name}.json").read_text(encoding="utf-8"))
    return data


def changed(certificate: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a copy with values replaced; `guarantee__epsilon=3` replaces a nested value."""
    copied = copy.deepcopy(certificate)
    for path, value in changes.items():
        *above, last = path.split("__")
        place = copied
        for part in above:
            place = place[int(part) if isinstance(place, list) else part]
        place[int(last) if isinstance(place, list) else last] = value
    return copied


def unseeded(name: str, **changes: Any) -> dict[str, Any]:
    """Return the document of a golden certificate without its seed."""
    document = changed(golden(name)["document"], **changes)
    document["accounting"].pop("seed", None)
    return document


#: A run of a few rounds; with the given noise ε is 0.65.
_FEW: dict[str, Any] = {"training__iterations": 8}
_GIVEN: dict[str, Any] = _FEW | {"noise__multiplier": 0.9}

#: Documents that need samples, by the quantity that they ask for.
ASKED = {
    "noise": unseeded("verified", **_FEW),
    "epsilon": unseeded("confidence", **_GIVEN),
    "delta": unseeded("confidence", **_GIVEN, privacy__epsilon=0.65, privacy__delta="solve"),
    "a claim that holds": unseeded("confidence", **_GIVEN, privacy__epsilon=0.7),
    "a claim that fails": unseeded("confidence", **_GIVEN, privacy__epsilon=0.6),
    "a claim that needs no sample": unseeded("confidence", **_GIVEN, privacy__epsilon=6.0),
    "replacement": unseeded("verified", **_FEW, privacy__adjacency="replace-one", privacy__epsilon=4.0),
}


def rehashed(certificate: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate with the right hash of its document."""

    return changed(certificate, document_sha256=_hash(certificate["document"]))


def _hash(value: Any) -> str:
    """Return the hash of canonical JSON, with whole numbers as integers."""

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: whole(item) for key, item in value.items()}
        if isinstance(value, list):
            return [whole(item) for item in value]
        return int(value) if isinstance(value, float) and value == int(value) else value

    return hashlib.sha256(json.dumps(whole(value), sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def sealed(certificate: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate with the right hash of its content."""

    def stated(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: stated(item) for key, item in value.items() if item not in (None, [], {})}
        return [stated(item) for item in value] if isinstance(value, list) else value

    content = stated({key: value for key, value in certificate.items() if key != "content_sha256"})
    return {**certificate, "content_sha256": _hash(content)}


def save(
    folder: Path, certificate: dict[str, Any] | str | bytes, name: str = "c.json", *, careless: bool = False
) -> Path:
    """Write a certificate, with its content hash updated if it has one, unless the forger is careless."""
    path = folder / name
    if isinstance(certificate, dict):
        if certificate.get("content_sha256") is not None and not careless:
            certificate = sealed(certificate)
        certificate = json.dumps(certificate, ensure_ascii=False)
    path.write_bytes(certificate.encode() if isinstance(certificate, str) else certificate)
    return path


def restated(folder: Path, certificate: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate with the sentence that follows from its fields, as a careful forger would."""
    (judged,) = pyaccount.check(save(folder, certificate, "restated.json"), no_limits=True).certificates
    remark = judged.rules[0].remark or ""
    for line in remark.splitlines():
        if line.startswith("statement: "):
            return changed(certificate, statement=line.partition(" say: ")[2])
    return certificate


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths of all values that are not lists or mappings."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path


def written(path: tuple[str | int, ...]) -> str:
    """Return a path in the form in which verdicts write it."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def interrupted(
    command: list[str], folder: Path | None = None, begun: Callable[[], bool] | None = None
) -> tuple[str, str, int]:
    """Return what a command prints and its exit code if it is interrupted while it computes, or once an awaited event begins."""
    # A process that is started in the background of a script ignores SIGINT, so the usual handling is restored.
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - the tests have one thread
    )
    if begun is None:
        _until_at_work(process)
    else:
        while not begun():
            assert process.poll() is None, "this was meant to take longer"
            time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    return out, err, process.returncode


def _until_at_work(process: subprocess.Popen[str]) -> None:
    """Wait until a process has used two seconds of processor time; by then it computes, even on a busy machine."""
    times = Path(f"/proc/{process.pid}/stat")
    if not times.exists():
        time.sleep(3.0)
    for _ in range(600 if times.exists() else 0):
        assert process.poll() is None, "this was meant to take longer"
        # utime and stime are the twelfth and thirteenth fields after the process's name, which ends with the last bracket.
        fields = times.read_text().rpartition(")")[2].split()
        if (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") >= 2.0:
            return
        time.sleep(0.1)


def named(verification: Any) -> set[str]:
    """Return the fields that a verification names."""
    return {one.path for one in (*verification.inconsistencies, *verification.differences)}


def refused(verification: Any) -> set[str]:
    """Return the fields that do not agree."""
    return {one.path for one in verification.differences if not one.agrees}


def agreeing(verification: Any) -> set[str]:
    """Return the fields that differ but agree within the tolerance."""
    return {one.path for one in verification.differences if one.agrees}


def everywhere(certificate: dict[str, Any], change: Any) -> dict[str, Any]:
    """Return the certificate with every point of the profile and of both directions changed."""
    forged = copy.deepcopy(certificate)
    for points in (forged["profile"], *(side["profile"] for side in forged["directions"].values())):
        for point in points:
            change(point)
    return forged


def at_most(certificate: dict[str, Any], epsilon: float) -> dict[str, Any]:
    """Return the certificate with another ε in every field that states it."""
    forged = changed(certificate, guarantee__epsilon=epsilon)
    if forged["solved"]["path"] == "privacy.epsilon":
        forged["solved"]["value"] = epsilon
    for side in forged["directions"].values():
        side["epsilon"] = max(min(epsilon, side["epsilon"]), side["epsilon_lower"])
    for composition in forged["evidence"]["compositions"]:
        composition["upper"] = forged["directions"]["remove"]["epsilon"]
    for test in (forged["evidence"]["sampling"] or {"tests": []})["tests"]:
        test["epsilon"] = min(epsilon, test["epsilon"])
    return forged


def forged_noise(shift: float) -> dict[str, Any]:
    """Return the certificate that a search with another result would have written, for a claim at another σ."""
    asked = golden("deterministic")
    value = asked["solved"]["value"] * (1.0 + shift)
    document = changed(asked["document"], noise__multiplier=value)
    fresh: dict[str, Any] = json.loads(pyaccount.certify(document).to_json())
    kept = {key: asked[key] for key in ("document", "document_sha256")}
    return changed(fresh, solved={**asked["solved"], "value": value}) | kept
