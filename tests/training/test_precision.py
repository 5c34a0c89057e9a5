"""Products of float32 matrices in float32, whatever a training has chosen, if PyTorch is installed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the precision of sums is NOT tested here")

from pyaccount.training.precision import full_products  # noqa: E402 - after the skip


def test_products_are_exact_inside_and_choices_are_restored_after_an_error() -> None:
    generator = torch.Generator().manual_seed(1)
    one, other = torch.randn(2, 50, 50, generator=generator)
    expected = one.double() @ other.double()
    before = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    try:
        torch.set_float32_matmul_precision("medium")
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert float((one @ other - expected).abs().max()) > 1e-3
            with full_products([one]):
                inside = one @ other
            with pytest.raises(ZeroDivisionError), full_products([one]):
                raise ZeroDivisionError
            assert (one @ other).dtype == torch.bfloat16
        assert inside.dtype == torch.float32
        assert float((inside - expected).abs().max()) < 1e-4
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before[0])
    assert (torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32) == before
