"""Probes scripts, each a path in the arguments after the number of rounds, and prints what was found as lines of JSON.

It is a process of its own, because probes fork, and the tests' workers have threads.
"""

import json
import sys
from pathlib import Path

from pyaccount.training.probing import probed_script

if __name__ == "__main__":
    rounds, *scripts = sys.argv[1:]
    for script in scripts:
        found = probed_script(script, [str(Path(script).parent / "run")], rounds=int(rounds))
        print(json.dumps([[one.kind, int(one.line.rpartition(":")[2])] for one in found.findings]), flush=True)
