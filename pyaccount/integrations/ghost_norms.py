"""Norms of the gradients of single records for ghost clipping, with a bound on what rounding adds to a contribution.

A linear layer with inputs a_t and gradients b_t of its outputs, at the positions t = 1, …, T of a record, has the gradient
G = Σ_t b_t a_tᵀ, and ‖G‖² = Σ_{s,t} ⟨a_s, a_t⟩⟨b_s, b_t⟩ (Li et al. 2021, arXiv:2110.05679). Let S = Σ_t ‖a_t‖‖b_t‖ ≥ ‖G‖. If the
contributions of positions nearly cancel out, ‖G‖ is far below S, and two roundings of the size of S matter:

1. The squared norm is computed in float64. A product of vectors of length d has an error of at most γ_d times their norms, with
   γ_d = d·u/(1 - d·u) and u = 2⁻⁵³ (Higham 2002, section 3.1), and T² products are added up. The errors sum up to at most
   (d_in + d_out + T² + 2)·u·S² to first order. So ‖G‖ is at most the computed norm plus the root of this. If the gradient is made
   in place of the pairs, its norm has an error of at most (T + d_in·d_out/2)·u·S, which `_kept` counts as well.
2. The second backward pass computes f·G in float32. Each entry is a sum of T products, so that its error is at most (T + 1)·2⁻²⁴
   times the sum of their absolute values, to first order. The norm of all errors is at most (T + 1)·2⁻²⁴·f·S.

The margin is the sum of both, with T + 4 and d_in + d_out + T² + 8 in place of these counts for the terms of higher order and the
factor itself. With f = min(1, clip norm/(norm + margin)) the contribution f·G, as it is rounded, is at most the clip norm.
Gradients of biases and of embeddings are sums of the b_t alone, with S = Σ_t ‖b_t‖.

The bound is about the b_t of the first pass, and about float32 products (`full_products`). It does not bound how f times the loss
is rounded on its way back to the b_t. For other layers Opacus makes the gradient of each record, in float32: without a margin.
This module needs torch and opacus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyaccount.errors import RunError, importing

with importing("torch", "opacus", by="pyaccount.integrations.ghost"):
    import torch
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from torch import Tensor, nn

from pyaccount.training.clipping import LEAST_NORM, wide
from pyaccount.training.precision import full_products

#: Units of rounding of float32 and float64.
SINGLE, DOUBLE = 2.0**-24, 2.0**-53
#: About so many numbers of products of positions are in memory at once.
PRODUCTS = 1 << 22


class ExactNorms(GradSampleModuleFastGradientClipping):  # type: ignore[misc, unused-ignore]
    """Opacus's module for ghost clipping with the norms of this module, for linear layers and embeddings."""

    def capture_backprops_hook(self, module: nn.Module, given: Any, output: Any, *more: Any, **named: Any) -> None:
        """Raise `RunError` if a layer computes in half precision; otherwise let Opacus compute its norms."""
        if self.hooks_enabled and wide(output[0]) is not output[0]:
            raise RunError(
                f"ghost clipping: a layer of type {type(module).__name__} computes in {output[0].dtype}, in which gradients are "
                "rounded so far that contributions may be longer than the clip norm: use float32 without autocast"
            )
        with full_products([output[0]]):
            super().capture_backprops_hook(module, given, output, *more, **named)


def plain_norms(parameter: Tensor) -> Tensor:
    """Return the norm of each record's gradient in a parameter, after the hooks have run."""
    found: Tensor = parameter._norm_sample  # type: ignore[attr-defined, unused-ignore]
    return found.double()


def bounded_norms(parameter: Tensor) -> Tensor:
    """Return an upper bound on the norm of each record's contribution to a parameter, after the hooks have run."""
    margin: Tensor | None = getattr(parameter, "_norm_margin", None)
    return plain_norms(parameter) if margin is None else plain_norms(parameter) + margin


def factors(squares: Sequence[Tensor], clip_norm: float) -> Tensor:
    """Return min(1, clip norm/norm) for each record, from the squared norms of several parameters."""
    norms = torch.stack(list(squares)).sum(dim=0).sqrt()
    return (clip_norm / norms.clamp_min(LEAST_NORM)).clamp_max(1.0)


def _of_linear(layer: nn.Linear, activations: list[Tensor], backprops: Tensor) -> dict[Tensor, Tensor]:
    """Return the norms of a linear layer's gradients, and leave their margins at its parameters."""
    count, positions = len(backprops), backprops[0:1].numel() // backprops.shape[-1] if len(backprops) else 0
    a = activations[0].reshape(count, positions, activations[0].shape[-1])
    b = backprops.reshape(count, positions, backprops.shape[-1])
    found: dict[Tensor, Tensor] = {}
    if layer.weight.requires_grad:
        several = max(1, PRODUCTS // max(1, positions**2))
        parts = [slice(start, start + several) for start in range(0, count, several)]
        squares = [_squared(a[part].double(), b[part].double()) for part in parts]
        sizes = a.double().norm(dim=-1) * b.double().norm(dim=-1)
        found[layer.weight] = _kept(
            layer.weight,
            torch.cat(squares) if squares else sizes.sum(1),
            sizes.sum(1),
            a.shape[-1] + b.shape[-1],
            positions,
        )
    if layer.bias is not None and layer.bias.requires_grad:
        found[layer.bias] = _of_sums(layer.bias, b)
    return found


def _squared(a: Tensor, b: Tensor) -> Tensor:
    """Return ‖Σ_t b_t a_tᵀ‖² of each record, by pairs of positions or by the gradient, whichever has fewer numbers."""
    if a.shape[1] ** 2 <= a.shape[2] * b.shape[2]:
        return ((a @ a.mT) * (b @ b.mT)).sum(dim=(1, 2)).clamp_min(0.0)
    return torch.stack([(two.mT @ one).square().sum() for one, two in zip(a, b, strict=True)])


def _of_sums(parameter: Tensor, b: Tensor) -> Tensor:
    """Return the norms of Σ_t b_t."""
    wider = b.double()
    return _kept(parameter, wider.sum(dim=1).square().sum(dim=-1), wider.norm(dim=-1).sum(1), b.shape[-1], b.shape[1])


def _of_embedding(layer: nn.Embedding, activations: list[Tensor], backprops: Tensor) -> dict[Tensor, Tensor]:
    """Return the norms of an embedding's gradients: rows of words that a record has several times are added up."""
    if layer.scale_grad_by_freq:
        raise RunError(
            "ghost clipping: an embedding with scale_grad_by_freq=True divides by how often all records of a batch have a word, "
            "so records would meet: leave it out, or use another clipping"
        )
    count, width = len(backprops), backprops.shape[-1]
    words = activations[0].reshape(count, -1) if count else activations[0].new_zeros((0, 0))
    b = backprops.reshape(count, words.shape[1], width).double()
    if layer.padding_idx is not None:
        b = b * (words != layer.padding_idx)[..., None]
    pairs = torch.arange(count, device=words.device)[:, None] * layer.num_embeddings + words
    different, places = torch.unique(pairs.flatten(), return_inverse=True)
    rows = b.new_zeros((len(different), width)).index_add(0, places, b.reshape(-1, width))
    records = torch.div(different, layer.num_embeddings, rounding_mode="floor")
    squares = b.new_zeros(count).index_add(0, records, rows.square().sum(dim=1))
    return {layer.weight: _kept(layer.weight, squares, b.norm(dim=-1).sum(1), width, words.shape[1])}


def _kept(parameter: Tensor, squares: Tensor, sizes: Tensor, length: int, positions: int) -> Tensor:
    """Return the roots of the squares, and keep the margins of the proof above at the parameter, from S and the counts."""
    pairs = ((length + positions**2 + 8) * DOUBLE) ** 0.5
    direct = (positions + parameter.numel() + 8) * DOUBLE
    relative = max(pairs, direct) + (positions + 4) * SINGLE
    parameter._norm_margin = relative * sizes  # type: ignore[attr-defined, unused-ignore]
    return squares.sqrt()


#: The norms by layers, in place of Opacus's own, which cancel out in float32. Other layers have gradients made.
NORMS: dict[type[nn.Module], Callable[..., dict[Tensor, Tensor]]] = {nn.Linear: _of_linear, nn.Embedding: _of_embedding}
ExactNorms.NORM_SAMPLERS = NORMS
