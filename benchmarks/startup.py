"""Whole-process times of the `pyaccount` command, interpreter start included.

Runs the command with the interpreter this script runs under and prints medians beside a bare `python -c pass`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from rich.console import Console
from rich.table import Table

#: What whole commands are meant to take less than, in seconds.
TARGETS = {"pyaccount --help": 0.15, "pyaccount check": 0.25, "pyaccount certify": 0.6, "pyaccount attest": 0.4}

POLICY = """\
pyaccount: 1
kind: policy
name: gate
limits: {max_epsilon: 1000, max_delta: 1e-5, adjacency: add-remove, unit: record, guarantee: verified, max_age: 90 d}
"""

DOCUMENT = """\
pyaccount: 1
name: {name}
privacy:
  adjacency: add-remove
  group_size: {group_size}
  epsilon: solve
  delta: 1e-6
training:
  sampling_probability: {sampling_probability}
  iterations: {iterations}
sampler:
  kind: poisson
noise:
  multiplier: {noise_multiplier}
"""

#: (sampling probability, noise multiplier, iterations, group size)
SETTINGS = ((0.01, 1.0, 2_000, 1), (0.01, 0.5, 2_000, 1), (0.001, 0.8, 100_000, 1), (0.01, 1.0, 2_000, 8))


def write_documents(folder: Path) -> dict[str, Path]:
    """One document for each setting, by a label for people."""
    documents = {}
    for number, (probability, noise, iterations, group) in enumerate(SETTINGS):
        path = folder / f"setting-{number}.yaml"
        text = DOCUMENT.format(
            name=path.stem,
            group_size=group,
            sampling_probability=probability,
            iterations=iterations,
            noise_multiplier=noise,
        )
        path.write_text(text, encoding="utf-8")
        documents[f"p={probability:g}, σ={noise:g}, n={iterations}, k={group}"] = path
    return documents


def round_trip(certificate: Path) -> list[list[str]]:
    """The commands that sign a certificate as being about a file, and check that, with a new key."""
    folder = certificate.parent
    key, trusted, subject, attestation = (folder / name for name in ("key.pem", "trusted", "model", "attestation.json"))
    private = Ed25519PrivateKey.generate()
    key.touch(mode=0o600)
    key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    trusted.mkdir()
    public = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (trusted / "key.pem").write_bytes(public)
    subject.write_bytes(bytes(1_000_000))
    about = ["--subject", str(subject)]
    check = [
        "--attestation",
        str(attestation),
        "--trusted-keys",
        str(trusted),
        "--max-epsilon",
        "1000",
        "--max-delta",
        "1e-5",
        *about,
    ]
    return [["attest", str(certificate), "--key", str(key), "-o", str(attestation), *about], ["check", *check]]


def seconds(*commands: Sequence[str]) -> float:
    """The time of one run of each, one after the other; all must succeed."""
    start = time.perf_counter()
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.perf_counter() - start


def main() -> None:
    """Time every command in turn and print the table."""
    parser = argparse.ArgumentParser(description="Time the pyaccount command as a whole process.")
    parser.add_argument("--repeats", type=int, default=9, help="runs of each command")
    repeats = max(parser.parse_args().repeats, 2)
    pyaccount = [sys.executable, "-m", "pyaccount"]
    with tempfile.TemporaryDirectory() as folder:
        documents = write_documents(Path(folder))
        first = str(next(iter(documents.values())))
        policy, certificate = Path(folder) / "policy.yaml", Path(folder) / "certificate.json"
        policy.write_text(POLICY, encoding="utf-8")
        seconds([*pyaccount, "certify", first, "-o", str(certificate), "--quiet"])
        of_each = {
            "pyaccount --help": [["--help"]],
            "pyaccount validate": [["validate", first]],
            "pyaccount check (options)": [["check", str(certificate), "--max-epsilon", "1000", "--max-delta", "1e-5"]],
            "pyaccount check (policy)": [["check", str(certificate), "--policy", str(policy)]],
            "pyaccount attest, then check": round_trip(certificate),
            **{f"pyaccount certify ({label})": [["certify", str(path)]] for label, path in documents.items()},
        }
        commands = {
            "python -c pass": [[sys.executable, "-c", "pass"]],
            **{name: [[*pyaccount, *one] for one in several] for name, several in of_each.items()},
        }
        for several in commands.values():
            seconds(*several)
        samples: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(repeats):
            for name, several in commands.items():
                samples[name].append(seconds(*several))
    table = Table(title=f"Whole processes, {repeats} runs each", title_justify="left")
    table.add_column("command")
    for heading in ("median", "quartiles", "target", "met"):
        table.add_column(heading, justify="right")
    for name, values in samples.items():
        median = statistics.median(values)
        low, _, high = statistics.quantiles(values, n=4, method="inclusive")
        target = next((target for prefix, target in TARGETS.items() if name.startswith(prefix)), None)
        table.add_row(
            name,
            f"{1e3 * median:.0f} ms",
            f"{1e3 * low:.0f}–{1e3 * high:.0f} ms",
            "" if target is None else f"{1e3 * target:.0f} ms",
            "" if target is None else "met" if median < target else "not met",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
