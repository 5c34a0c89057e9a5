"""Faults that are planted in a copy of pyaccount, and the independent checker's verdicts on the certificates: a Markdown table.

Run: git clone . /tmp/copy && python benchmarks/faults.py /tmp/copy [--only NAME...] [--seconds 20]

COPY is a clone of this repository; it is changed and its core is built. A fault replaces an expression, which must occur exactly
once in its file: if the code has changed, the script stops and names the text. All faults are compiled together, and an
environment variable chooses one of them, so the core is built once. The checker is the unchanged one of this tree.

Each row has the ε of a certificate from the faulty copy, by how much it differs from the ε without a fault, and the verdict. A
fault is found if the verdict is not `proven`. "no certificate" means that the copy noticed by itself that its bounds cross.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from planted_faults import DOCUMENTS, FAULTS, Fault

from pyaccount.independent.verdict import ProofLimits, check, claim_of

CHOICE = "PYACCOUNT_PLANTED_FAULT"
#: What is appended to the core: whether a fault is the one that was chosen.
CHOSEN = f"""
/// Returns whether this fault was chosen.
#[must_use]
pub fn planted(name: &str) -> bool {{
    static CHOICE: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    CHOICE.get_or_init(|| std::env::var("{CHOICE}").unwrap_or_default()) == name
}}
"""


def conditional(path: str, name: str, faulty: str, right: str) -> str:
    """Return an expression that is the faulty one if this fault was chosen."""
    if path.endswith(".rs"):
        return f'(if crate::planted("{name}") {{ {faulty} }} else {{ {right} }})'
    return f'(({faulty}) if __import__("os").environ.get("{CHOICE}") == "{name}" else ({right}))'


def plant(copy: Path) -> None:
    """Write all faults into the copy. Exits with a message if an expression does not occur exactly once."""
    planted: dict[tuple[str, str], str] = {}
    for fault in FAULTS:
        for path, right, faulty in fault.changes:
            count = (copy / path).read_text(encoding="utf-8").count(right)
            if count != 1:
                sys.exit(f"{fault.name}: the text occurs {count} times in {path}, it must occur once: {right}")
            key = (path, right)
            planted[key] = conditional(path, fault.name, faulty, planted.get(key, right))
    for (path, right), expression in planted.items():
        file = copy / path
        file.write_text(file.read_text(encoding="utf-8").replace(right, expression), encoding="utf-8")
    library = copy / "rust/core/src/lib.rs"
    text = "#![allow(unused_parens)]\n" + library.read_text(encoding="utf-8") + CHOSEN
    library.write_text(text, encoding="utf-8")


def build(copy: Path) -> None:
    """Build the core of the copy and put it into its package."""
    subprocess.run(["cargo", "build", "--release", "-q", "-p", "pyaccount-python"], cwd=copy, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", copy / "target"))
    shutil.copy(target / "release/lib_core.so", copy / "pyaccount/_core.abi3.so")


class Certified(NamedTuple):
    """What the copy certified: ε and the whole text, or why there is no certificate."""

    epsilon: float | None
    text: str


def certified(copy: Path, document: str, fault: str) -> Certified:
    """Return the certificate of the copy with this fault, or with none."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder, "document.yaml"), Path(folder, "certificate.json")
        source.write_text(document, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "pyaccount", "certify", str(source), "-o", str(result), "--quiet"],
            env={**os.environ, "PYTHONPATH": str(copy), CHOICE: fault},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not result.exists():
            return Certified(None, done.stderr.strip() or done.stdout.strip())
        data = json.loads(result.read_text(encoding="utf-8"))
        # A bound by a recursion is not the checker's: it is asked about the composed one beside it.
        text = json.dumps(data | {"guarantee": data["guarantee"] | (data.get("composed_bound") or {})})
        return Certified(float(claim_of(text).epsilon or 0), text)


def row(copy: Path, fault: Fault, name: str, right: Certified, seconds: float) -> str:
    """Return a row of the table: certify with the fault, and check."""
    wrong = certified(copy, DOCUMENTS[name], fault.name)
    if wrong.epsilon is None or right.epsilon is None:
        reason = wrong.text.splitlines()[-1] if wrong.text else ""
        return f"| {fault.what} | {name} | – | – | no certificate: {reason} |"
    verdict = check(claim_of(wrong.text), ProofLimits(seconds))
    difference = wrong.epsilon / right.epsilon - 1
    words = verdict["verdict"] + (f", {verdict['looser_by']:.2g}" if verdict["looser_by"] else "")
    return f"| {fault.what} | {name} | {wrong.epsilon:.6g} | {100 * difference:+.4f} % | {words} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("copy", type=Path, metavar="COPY")
    parser.add_argument("--only", nargs="*", choices=[fault.name for fault in FAULTS])
    parser.add_argument("--built", action="store_true", help="the faults are in the copy already")
    parser.add_argument("--seconds", type=float, default=20.0, help="the checker's time limit")
    options = parser.parse_args()
    if not options.built:
        plant(options.copy)
        build(options.copy)
    faults = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    names = [name for name in DOCUMENTS if any(name in fault.documents for fault in faults)]
    right = {name: certified(options.copy, DOCUMENTS[name], "") for name in names}
    print("| fault | example | ε | error | verdict |\n| --- | --- | ---: | ---: | --- |")
    for name, each in right.items():
        if each.epsilon is None:
            sys.exit(f"{name}: no certificate without a fault: {each.text}")
        verdict = check(claim_of(each.text), ProofLimits(options.seconds))["verdict"]
        print(f"| none | {name} | {each.epsilon:.6g} | | {verdict} |", flush=True)
    for fault in faults:
        for name in fault.documents:
            print(row(options.copy, fault, name, right[name], options.seconds), flush=True)


if __name__ == "__main__":
    main()
