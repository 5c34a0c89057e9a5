"""Whether the tests run at night, with time for more samples and sizes than those of every change: PYACCOUNT_NIGHTLY=1 pytest."""

import os

NIGHTLY = os.environ.get("PYACCOUNT_NIGHTLY", "") not in ("", "0")
