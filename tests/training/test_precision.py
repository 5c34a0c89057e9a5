"""Products of float32 matrices in float32, whatever a training has chosen, if PyTorch is installed."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: the precision of sums is NOT tested here")

from pyaccount.errors import RunError  # noqa: E402 - after the skip
from pyaccount.training import precision  # noqa: E402
from pyaccount.training.precision import full_products, weighted_sums  # noqa: E402


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


@pytest.mark.parametrize("block", [1, 6, 13, 10**6])
@pytest.mark.parametrize("shape", [(0, 3), (1, 3), (7,), (300, 3), (300, 2, 3)])
def test_sums_of_rows_are_exact_in_blocks_of_any_size(
    block: int, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whole numbers below 2²⁴ are exact in float32, and bfloat16 and TF32 round those beyond 2⁸ and 2¹¹."""
    monkeypatch.setattr(precision, "BLOCK", block)
    generator = torch.Generator().manual_seed(2)
    rows = torch.randint(-3000, 3000, shape, generator=generator).float()
    factors = torch.randint(1, 4, shape[:1], generator=generator).float()
    expected = torch.einsum("i,i...->...", factors.double(), rows.double())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = weighted_sums(factors, {"w": rows})["w"]
    assert found.dtype == torch.float32
    assert found.double().equal(expected)


def test_no_second_copy_of_all_rows_is_made() -> None:
    rows, factors = torch.ones(64, 1 << 17), torch.ones(64)
    with torch.profiler.profile(profile_memory=True) as profile:
        weighted_sums(factors, {"w": rows})["w"]
    largest = max(event.cpu_memory_usage for event in profile.events())
    assert 0 < largest <= 4 * max(precision.BLOCK, rows.shape[1])


def test_a_sum_in_half_precision_is_refused() -> None:
    with pytest.raises(RunError, match=r"w: its sum of clipped gradients has the type torch\.bfloat16"):
        weighted_sums(torch.ones(3, dtype=torch.bfloat16), {"w": torch.ones(3, 2, dtype=torch.bfloat16)})
