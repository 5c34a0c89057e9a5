"""Where things lie that tests read."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GOLDEN = ROOT / "tests" / "golden"
#: Finished certificates, by the version of their format.
CERTIFICATES = GOLDEN / "certificates"
#: What tests share; some of it is run as a program.
HELPERS = ROOT / "tests" / "helpers"
