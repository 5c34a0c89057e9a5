"""The precision in which norms, factors and sums of gradients are computed: float32 or more, whatever a training chooses.

Trainings choose half precision for speed. Autocast computes products of matrices in bfloat16, and TF32 rounds their factors to
11 bits. A sum that is rounded so may change by several clip norms if one record changes. This module needs PyTorch.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping

from pyaccount.errors import RunError, importing

with importing("torch", by=__name__):
    import torch
    from torch import Tensor

#: The precisions of sums and norms.
EXACT = (torch.float32, torch.float64)

#: How many weighted numbers are in memory at once: on a processor, as many as stay in its cache until they are added up.
BLOCK, BLOCK_OF_ACCELERATORS = 1 << 20, 1 << 24


@contextlib.contextmanager
def without_autocast(tensors: Iterable[Tensor]) -> Iterator[None]:
    """Compute in the precision of the tensors, also inside of `torch.autocast`."""
    with contextlib.ExitStack() as stack:
        for kind in sorted({tensor.device.type for tensor in tensors}):
            stack.enter_context(torch.autocast(kind, enabled=False))
        yield


@contextlib.contextmanager
def full_products(tensors: Iterable[Tensor]) -> Iterator[None]:
    """Compute products of float32 matrices and convolutions in float32: without autocast, TF32 and their like on processors.

    The choices of the process are restored afterwards.
    """
    with without_autocast(tensors):
        # Since PyTorch 2.9 each kind of kernel has a precision, and the older names must not be mixed with these.
        kinds = [
            (kernels, "fp32_precision", "ieee")
            for library, names in (
                ("cuda", ("matmul",)),
                ("cudnn", ("conv", "rnn")),
                ("mkldnn", ("matmul", "conv", "rnn")),
            )
            for name in names
            if hasattr(kernels := getattr(getattr(torch.backends, library), name, None), "fp32_precision")
        ]
        older = [(torch.backends.cuda.matmul, "allow_tf32", False), (torch.backends.cudnn, "allow_tf32", False)]
        with contextlib.ExitStack() as stack:
            for kernels, name, exact in kinds or older:
                before = getattr(kernels, name)
                if before != exact:
                    setattr(kernels, name, exact)
                    stack.callback(setattr, kernels, name, before)
            yield


def weighted_sums(factors: Tensor, rows: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return Σ_i factors_i·rows_i over the first dimension of each tensor, by products in full precision.

    Rows are weighted and added up in blocks, so that rows whose numbers do not lie in order in memory get no second copy of all
    of them. The names are those of the parameters.

    Raises `RunError` if a sum is not in float32 or float64.
    """
    sums = {}
    with full_products(rows.values()):
        for name, tensor in rows.items():
            together = BLOCK if tensor.device.type == "cpu" else BLOCK_OF_ACCELERATORS
            wide = math.prod(tensor.shape[1:])
            count = max(1, together // max(1, wide))
            weights = factors.to(tensor.device, torch.promote_types(factors.dtype, tensor.dtype))
            total = torch.zeros(wide, dtype=weights.dtype, device=tensor.device)
            for block, weight in zip(tensor.split(count), weights.split(count), strict=True):
                total.addmv_(block.reshape(len(block), wide).t().to(total.dtype), weight)
            if total.dtype not in EXACT:
                raise RunError(
                    f"{name}: its sum of clipped gradients has the type {total.dtype}. Sums are released in float32 or float64, "
                    "because roundings to fewer bits may be larger than the clip norm: use parameters of real numbers"
                )
            sums[name] = total.view(tensor.shape[1:])
    return sums
