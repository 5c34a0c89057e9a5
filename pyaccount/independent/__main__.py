"""Checks certificates: `python -m independent CERT...`, or normal forms: `python -m independent --epsilon E --delta D FORM`."""

import argparse
import io
import json
import sys
from fractions import Fraction
from pathlib import Path

from .apart import check_apart
from .verdict import sentence, shown


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 1e7:
        raise argparse.ArgumentTypeError("the time is not between 0 and 1e7 seconds")
    return seconds


def _number(text: str) -> str:
    """Return the text of a number that JSON has."""
    float(Fraction(text))
    return text


def main() -> int:
    """Print the verdicts. Return 0 if all claims are proven, 1 if not, 2 if a file is no certificate."""
    parser = argparse.ArgumentParser(prog="independent", description="Check certificates with exact arithmetic.")
    parser.add_argument("files", nargs="+", metavar="FILE", type=Path)
    parser.add_argument("--epsilon", type=_number, help="the ε of normal forms, instead of certificates; needs --delta")
    parser.add_argument("--delta", type=_number, help="the δ of normal forms")
    parser.add_argument("--seconds", type=_seconds, default=100.0, help="time after which each proof is ended [100]")
    parser.add_argument("--json", action="store_true", help="print each verdict as JSON")
    parser.add_argument("--progress", action="store_true", help="print each lattice on stderr")
    options = parser.parse_args()
    if (options.epsilon is None) != (options.delta is None):
        parser.error("--epsilon and --delta belong together")
    # Names are in any script, which a terminal may not have.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    code = 0
    for path in options.files:
        try:
            text = path.read_text(encoding="utf-8")
            if options.epsilon is not None:
                name, form = json.dumps(path.name), json.dumps(text.rstrip("\n"))
                text = f'{{"name":{name},"guarantee":{{"epsilon":{options.epsilon},"delta":{options.delta}}},"mechanism":{form}}}'
            verdict = check_apart(text, options.seconds, folder=path.parent, progress=options.progress)
        except (OSError, ValueError) as error:
            print(f"{path}: {shown(str(error), 1000)}", file=sys.stderr)
            code = 2
            continue
        print(json.dumps(verdict, indent=2, ensure_ascii=False) if options.json else sentence(verdict), flush=True)
        code = max(code, int(verdict["verdict"] != "proven"))
    return code


if __name__ == "__main__":
    sys.exit(main())
