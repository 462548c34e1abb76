"""The contrast's kernel beside its reference."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.kernels import kernels_on, plain_pytorch
from foveate.models.contrast import local_contrast


def check_contrast(overview: Tensor, window: int) -> None:
    assert kernels_on(overview.device)
    found = local_contrast(overview, window)
    with plain_pytorch():
        expected = local_contrast(overview, window)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-7, equal_nan=True)
