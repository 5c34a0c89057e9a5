"""The verdict of a process of its own, which is ended at the time limit.

A proof is one computation after another, and none of them looks at the clock: a form can be written for which one of them takes
hours, or all memory. So the proof runs in a fresh interpreter that has nothing but this folder and the standard library. A fork
of the caller may stop for ever if the caller has threads, and a caller without a main module cannot be spawned. Whatever happens
there, one of the four verdicts is returned.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from .verdict import ProofLimits, check, claim_of, not_checkable

#: Bytes of address space of a proof, where the system limits it. The largest tables take a gigabyte.
MEMORY = 4 << 30
#: Of the time limit, the share after which nothing finer is begun, so that what is known by then is told.
SHARE = 0.9
#: Runs the folder that the process was started for as a package. It is looked for last: it hides no standard module.
_PROGRAM = (
    "import sys, runpy; sys.path.append(sys.argv[1]); runpy.run_module(sys.argv[2] + '.apart', run_name='__main__')"
)


def check_apart(
    text: str, seconds: float = 100.0, *, folder: Path | None = None, progress: bool = False
) -> dict[str, Any]:
    """Return the verdict on the text of a certificate, as `verdict.check` does, after at most about as many seconds.

    Files beside it are looked for in the folder. Raises `ValueError` if the text is no certificate. If the wait is interrupted,
    the process is ended.
    """
    name, package = claim_of(text).name, Path(__file__).resolve().parent
    command = [sys.executable or "python", "-I", "-S", "-c", _PROGRAM, str(package.parent), package.name, repr(seconds)]
    command += [str(folder.resolve()) if folder else "", *(["progress"] if progress else [])]
    try:
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None if progress else subprocess.DEVNULL
        ) as process:
            try:
                told, _ = process.communicate(text.encode("utf-8", "surrogatepass"), timeout=seconds)
            except subprocess.TimeoutExpired:
                return not_checkable(name, f"time: the proof was ended after {seconds:g} s", seconds)
            finally:
                process.kill()
        return dict(json.loads(told))
    except (OSError, ValueError) as error:
        return not_checkable(name, f"the process of the proof gave no verdict: {type(error).__name__}")


def _limit(seconds: float) -> None:
    """Limit the address space, and the processor time of a process whose caller is gone."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    for name, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, int(seconds) + 2)):
        try:
            resource.setrlimit(name, (most, resource.getrlimit(name)[1]))
        except (OSError, ValueError):
            continue


def main() -> None:
    """Read a certificate from stdin, and write the verdict to stdout."""
    seconds, folder, progress = float(sys.argv[3]), sys.argv[4], "progress" in sys.argv[5:]
    # Ctrl-C is for the caller to tell of.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _limit(seconds)
    log = (lambda line: print(line, file=sys.stderr)) if progress else (lambda line: None)
    claim = claim_of(sys.stdin.buffer.read().decode("utf-8", "surrogatepass"))
    print(json.dumps(check(claim, ProofLimits(SHARE * seconds, log), Path(folder) if folder else None)))


if __name__ == "__main__":
    main()
