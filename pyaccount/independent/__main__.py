"""Checks certificates: `python -m independent CERT...`, or `python -m pyaccount.independent CERT...`."""

import argparse
import json
import sys
from pathlib import Path

from .verdict import check, parsed, sentence


def main() -> int:
    """Print the verdicts. Return 0 if all guarantees are proven, 1 if not, 2 if a file is no certificate."""
    parser = argparse.ArgumentParser(prog="independent", description="Check certificates with exact arithmetic.")
    parser.add_argument("certificates", nargs="+", metavar="CERT", type=Path)
    parser.add_argument("--seconds", type=float, default=100.0, help="time for each certificate, about [100]")
    parser.add_argument("--json", action="store_true", help="print each verdict as JSON")
    parser.add_argument("--progress", action="store_true", help="print each lattice on stderr")
    options = parser.parse_args()
    code = 0
    for path in options.certificates:
        try:
            certificate = parsed(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            code = 2
            continue
        log = (lambda line: print(line, file=sys.stderr)) if options.progress else (lambda line: None)
        verdict = check(certificate, options.seconds, log)
        print(json.dumps(verdict, indent=2, ensure_ascii=False) if options.json else sentence(verdict), flush=True)
        code = max(code, int(verdict["verdict"] != "proven"))
    return code


if __name__ == "__main__":
    sys.exit(main())
