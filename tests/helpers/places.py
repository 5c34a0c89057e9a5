"""Paths of files that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GOLDEN = ROOT / "tests" / "golden"
#: Finished certificates, by the version of their format.
CERTIFICATES = GOLDEN / "certificates"
#: The modules that tests share; some of them are run as programs.
HELPERS = ROOT / "tests" / "helpers"
