"""The contrast's kernel in the interpreter; run by test_contrast_kernel.py."""

from __future__ import annotations

import pytest
import torch

from models.contrasts import check_contrast


@pytest.mark.parametrize("window", [1, 3, 5])
@pytest.mark.parametrize("shape", [(2, 3, 19, 41), (1, 1, 2, 3), (3, 4, 1, 30)])
def test_contrast(shape: tuple[int, int, int, int], window: int) -> None:
    check_contrast(torch.rand(shape), window)


def test_any_layout_and_no_number() -> None:
    overview = torch.rand(2, 3, 12, 20)
    check_contrast(overview.contiguous(memory_format=torch.channels_last), 3)
    check_contrast(overview[:, :, 1:, ::2], 3)
    overview[1, 2, 3, 4] = torch.nan
    check_contrast(overview, 3)
