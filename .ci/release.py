"""What a release needs to know: the version, which stands in Cargo.toml and nowhere else, and what the changelog says of it.

python .ci/release.py version           prints the version
python .ci/release.py tag v0.1.0        fails unless the tag is that of the version
python .ci/release.py notes             prints the changelog's section of the version; fails without one, or an empty one
python .ci/release.py changed BASE      fails if the package changed since BASE, and the changelog did not
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: What users see: a change here is a line in the changelog.
SEEN = ("pyaccount/", "rust/core/src/", "rust/python/src/", "schemas/")


def version() -> str:
    """The version of the package, of the core, and of what certificates say."""
    found: str = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    return found


def check_tag(tag: str) -> None:
    """End with a message unless a tag is that of the version."""
    if tag != f"v{version()}":
        sys.exit(f"the tag is {tag}, and Cargo.toml says {version()}: tag v{version()}, or change Cargo.toml first")


def notes(changelog: str, number: str) -> str:
    """The section of a version in the changelog, or an end with a message."""
    found = re.search(
        rf"^## {re.escape(number)}(?![\w.])[^\n]*\n(.*?)(?=^## |\Z)", changelog, flags=re.DOTALL | re.MULTILINE
    )
    if found is None or not found[1].strip():
        sys.exit(f"CHANGELOG.md has no section `## {number}` that says anything: name the one of what is unreleased so")
    return found[1].strip() + "\n"


def check_changed(files: list[str]) -> None:
    """End with a message if files that users see were changed, and the changelog was not."""
    seen = [name for name in files if name.startswith(SEEN)]
    if seen and "CHANGELOG.md" not in files:
        sys.exit(f"{len(seen)} files of the package were changed ({seen[0]} …), and CHANGELOG.md was not")


def main(arguments: list[str]) -> None:
    """Do what the first word says."""
    match arguments:
        case ["version"]:
            print(version())
        case ["tag", tag]:
            check_tag(tag)
        case ["notes"]:
            print(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version()), end="")
        case ["changed", base]:
            command = ["git", "diff", "--name-only", f"{base}...HEAD"]
            listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
            check_changed(listed.splitlines())
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
