"""Simulates other processors by settings of libraries: kernels, vector units, threads, elementary functions.

On a processor without such choices, all variants are the same.
"""

import os

from places import ROOT

THREADS = ("OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")

PROCESSORS = {
    "other kernels": {"OPENBLAS_CORETYPE": "Nehalem"},
    "one thread": {"OPENBLAS_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"},
    "narrow vectors": {"NPY_DISABLE_CPU_FEATURES": "X86_V3"},
    "other functions": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX"},
}


def environment(processor: str | None) -> dict[str, str]:
    """Return the environment for a process on such a processor; for None, on this one with its usual number of threads."""
    here = {name: value for name, value in os.environ.items() if name not in THREADS}
    return {**here, **({} if processor is None else PROCESSORS[processor]), "PYTHONPATH": str(ROOT)}
