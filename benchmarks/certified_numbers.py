"""The numbers of certificates under stable meanings, to be compared before and after a change that must not change them.

    python benchmarks/certified_numbers.py before.json --random 60 --seconds 20    # write the list
    python benchmarks/certified_numbers.py after.json --random 60 --like before.json    # the same documents, without a limit
    python benchmarks/certified_numbers.py --compare before.json after.json    # print differences

A list has the examples, the documents of the golden certificates, the settings of `validation.py`, and random documents of all
kinds. Doubles are written in hexadecimal. Fields are read as attributes, by all the names that they have had, so that a list
survives renaming. The exit code of a comparison is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "helpers"), str(ROOT / "tests" / "golden"), str(ROOT / "benchmarks")]

import yaml  # noqa: E402 - the folders above are looked in first
from adversaries.cases import drawn  # noqa: E402
from adversaries.kinds import BUILDERS  # noqa: E402
from make_certificates import AMPLIFICATION, DOCUMENTS  # noqa: E402

import pyaccount  # noqa: E402
from pyaccount.document.document import Document  # noqa: E402
from pyaccount.document.loading import load_any  # noqa: E402
from pyaccount.errors import PyaccountError  # noqa: E402

#: The seed of documents without one.
SEED = 20261129
#: How many draws of parameters are tried for one random document.
TRIES = 30
#: Other accountants whose modules the settings of `validation.py` import.
PEERS = ("prv_accountant", "jax_privacy", "jax_privacy.experimental")

_TEST, _MOMENT = "evidence.sampling.tests[].", "evidence.sampling.moment."
#: What is read, by the attributes that lead to it: `[]` is for every entry, and `|` for another name of the same attribute.
MEANINGS = {
    "the claim holds": "holds",
    "ε": "guarantee.epsilon",
    "ε, lower end": "guarantee.epsilon_lower",
    "δ": "guarantee.delta",
    "δ, lower end": "guarantee.delta_lower",
    "failure probability": "guarantee.failure_probability",
    "solved value": "solved.value",
    "value that fails": "solved.fails_at",
    **{
        f"{side}: {meaning}": f"directions.{side}.{path}"
        for side in ("remove", "add")
        for meaning, path in {
            "ε": "epsilon",
            "ε, lower end": "epsilon_lower",
            "δ": "delta",
            "δ, lower end": "delta_lower",
            "profile, ε": "profile[].epsilon",
            "profile, δ": "profile[].delta",
            "profile, δ, lower end": "profile[].delta_lower",
            "curve, ε": "curve.epsilon[]",
            "curve, δ": "curve.delta[]",
        }.items()
    },
    "profile, ε": "profile[].epsilon",
    "profile, δ": "profile[].delta",
    "profile, δ, lower end": "profile[].delta_lower",
    "profile, estimates": "profile[].delta_estimate",
    "kinds of records, ε": "records[].epsilon",
    "kinds of records, ε, lower end": "records[].epsilon_lower",
    "risk": "risk.value",
    "risk, lower end": "risk.value_lower",
    "risk, ε": "risk.epsilon",
    "noise multipliers": "phases[].noise_multiplier",
    "column norms": "phases[].matrix.column_norm",
    "coefficients": "phases[].matrix.coefficients[]",
    "without amplification, ε": "unamplified.epsilon",
    "lemma for groups, ε": "group_lemma.epsilon",
    "error of prefix sums": "utility.prefix_sum_mse",
    "error of the workload": "utility.workload.mse",
    "compositions, lower": "evidence.compositions[].lower",
    "compositions, upper": "evidence.compositions[].upper",
    "compositions, evaluations": "evidence.compositions[].profile_evaluations",
    "compositions, lengths": "evidence.compositions[].transform_length",
    "error budget": "evidence.error_budget[].contribution",
    "samples": "evidence.sampling.samples",
    "total probability": "evidence.sampling.total_probability",
    "tests, noise multipliers": f"{_TEST}noise_multiplier",
    "tests, δ": f"{_TEST}threshold",
    "tests, samples": f"{_TEST}samples",
    "tests, means": f"{_TEST}mean",
    "tests, weight bounds": f"{_TEST}weight_bound|cap",
    "tests, bets": f"{_TEST}betting_fractions|stakes[]",
    "tests, wealth": f"{_TEST}log_wealth|log_capital",
    "tests, mean scales": f"{_TEST}proposal.mean_scale|stretch",
    "tests, second moments": f"{_TEST}second_moment.bound",
    "tests, second moments, samples": f"{_TEST}second_moment.samples",
    "composed curve, tail mass": "evidence.sampling.composed_curve.tail_mass|floor",
    "moment, order": f"{_MOMENT}order",
    "moment": f"{_MOMENT}log_moment",
    "moment, remove": f"{_MOMENT}remove",
    "moment, add": f"{_MOMENT}add",
    "choices, σ": "evidence.considered[].noise_multiplier_estimate",
    "searched matrix, error": "evidence.searched.prefix_sum_mse_estimate",
    "one draw, η": "eta",
    "one draw, ε": "effects[].amplified_epsilon",
    "one draw, δ": "effects[].amplified_delta",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("list", nargs="?", type=Path, help="the file to write")
    parser.add_argument("--random", type=int, default=0, metavar="N", help="how many random documents")
    parser.add_argument(
        "--seconds", type=int, default=0, help="processor seconds for each document; skip what needs more"
    )
    parser.add_argument("--like", type=Path, help="skip the documents that this list skips, and limit no other one")
    parser.add_argument("--only", default="", help="only documents whose names contain this text")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"), help="compare two lists")
    options = parser.parse_args()
    if options.compare is not None:
        old, new = (json.loads(path.read_text(encoding="utf-8")) for path in options.compare)
        return compared(old, new)
    if options.list is None:
        parser.error("name the file to write, or two files to compare")
    skipped = set() if options.like is None else set(json.loads(options.like.read_text(encoding="utf-8"))["skipped"])
    written: dict[str, Any] = {"skipped": sorted(skipped), "documents": {}}
    for name, numbers in documents(options.random).items():
        if options.only not in name or name in skipped:
            continue
        outcome = apart(numbers, options.seconds)
        print(f"{name}: {'skipped' if outcome is None else len(outcome['numbers'])}", flush=True)
        if outcome is None:
            written["skipped"].append(name)
        else:
            written["documents"][name] = outcome
    options.list.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def documents(random: int) -> dict[str, Callable[[], Any]]:
    """Return what computes the certificate of each document, by the name of the document."""
    found: dict[str, Callable[[], Any]] = {}
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        if yaml.safe_load(path.read_text(encoding="utf-8")).get("kind", "mechanism") in ("mechanism", "amplification"):
            found[f"example {path.stem}"] = lambda path=path: certified(path)
    for name, document in {**DOCUMENTS, "amplification": AMPLIFICATION}.items():
        found[f"golden {name}"] = lambda document=document: certified(document)
    for name, document in validation():
        found[f"validation {name}"] = lambda document=document: certified(document)
    kinds = list(BUILDERS)
    for number in range(random):
        kind = kinds[number % len(kinds)]
        case = next((one for k in range(TRIES) if (one := drawn(number + 1_000_003 * k, kind)) is not None), None)
        if case is not None:
            blank = {"epsilon": "solve", "delta": 1e-5} if number % 2 else {"epsilon": 1.0, "delta": "solve"}
            document = case.document(privacy=blank)
            found[f"random {number} of {kind}"] = lambda document=document: certified(document)
    return found


def validation() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the distinct documents of `validation.py`. Nothing is asked of other accountants, so stand-ins are enough."""
    from validation import GROUPS

    for peer in PEERS:
        try:
            importlib.import_module(peer)
        except ImportError:
            sys.modules[peer] = MagicMock()
    seen: set[str] = set()
    for group, checks in GROUPS.items():
        try:
            found = checks()
        except ImportError as error:
            print(f"validation {group} is left out: {error}", file=sys.stderr)
            continue
        for check in found:
            text = json.dumps(check.document, sort_keys=True, default=str)
            if text not in seen:
                seen.add(text)
                name = f"{check.mechanism}, {check.setting}, {check.asked}, {zlib.crc32(text.encode()):08x}"
                yield name, check.document


def certified(source: Path | dict[str, Any]) -> dict[str, Any]:
    """Certify a document, and return its numbers by meaning, and whether they come from samples."""
    try:
        loaded = load_any(source)
        if isinstance(loaded, Document):
            seed = SEED if loaded.accounting.seed is None else loaded.accounting.seed
            found: Any = pyaccount.compile(loaded).run(threads=1, seed=seed)
        else:
            found = pyaccount.amplify(loaded)
    except PyaccountError as error:
        slugs = sorted({problem.slug for problem in getattr(error, "problems", ())})
        return {"sampled": False, "numbers": {"refused": [type(error).__name__, *slugs]}}
    data = getattr(found, "data", found)
    evidence = getattr(data, "evidence", None)
    numbers = {meaning: [exact(value) for value in values(data, path)] for meaning, path in MEANINGS.items()}
    return {
        "sampled": getattr(evidence, "sampling", None) is not None,
        "numbers": {meaning: listed for meaning, listed in numbers.items() if listed},
    }


def values(value: Any, path: str) -> Iterator[Any]:
    """Yield what attributes lead to; nothing where one of them is missing or None."""
    if value is None:
        return
    if not path:
        yield value
        return
    head, _, rest = path.partition(".")
    names, each = (head[:-2], True) if head.endswith("[]") else (head, False)
    name = next((one for one in names.split("|") if hasattr(value, one)), None)
    below = None if name is None else getattr(value, name)
    for one in (below or ()) if each else (below,):
        yield from values(one, rest)


def exact(value: Any) -> str:
    """Return a number with all its bits."""
    return value.hex() if isinstance(value, float) else str(value)


def apart(numbers: Callable[[], dict[str, Any]], seconds: int) -> dict[str, Any] | None:
    """Return what a process of its own computes; None if it takes more processor time than this."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            if seconds:
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                json.dump(numbers(), pipe)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status > 0:
        raise SystemExit("a document could not be certified: see above")
    return json.loads(text) if status == 0 else None


def compared(old: dict[str, Any], new: dict[str, Any]) -> int:
    """Print every difference of two lists, those of samples apart, and return 1 if there is one."""
    groups: dict[str, list[str]] = {"deterministic": [], "sampled": []}
    before, after = old["documents"], new["documents"]
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in before or name not in after:
            groups["deterministic"].append(f"{name}: only in the {'old' if name in before else 'new'} list")
            continue
        one, other = before[name], after[name]
        group = groups["sampled" if one["sampled"] and other["sampled"] else "deterministic"]
        if one["sampled"] != other["sampled"]:
            group.append(f"{name}: only one of the two is sampled")
        for meaning in {**one["numbers"], **other["numbers"]}:
            stated, fresh = one["numbers"].get(meaning), other["numbers"].get(meaning)
            if stated != fresh:
                group.append(f"{name}: {meaning}: {shown(stated)} → {shown(fresh)}")
    print(f"{len(before)} documents")
    for kind, lines in groups.items():
        print(f"{len(lines)} differences of {kind} certificates")
        for line in lines:
            print(f"  {line}")
    return 1 if any(groups.values()) else 0


def shown(listed: list[str] | None) -> str:
    """Return numbers in decimal, to be read."""
    if listed is None:
        return "nothing"
    short = [f"{float.fromhex(one):.9g}" if "0x" in one else one for one in listed[:4]]
    return ", ".join(short) + (f", … ({len(listed)})" if len(listed) > 4 else "")


if __name__ == "__main__":
    sys.exit(main())
