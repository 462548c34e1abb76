from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from foveate.models import convolve as module
from foveate.models.narrow import convolve_to_one


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("last", [False, True])
def test_it_is_the_convolution_with_its_gradient(padding: int, last: bool) -> None:
    layout = torch.channels_last if last else torch.contiguous_format
    x = torch.rand(2, 5, 7, 6, dtype=torch.float64).contiguous(memory_format=layout)
    weight, bias = torch.rand(1, 5, 3, 3, dtype=torch.float64), torch.rand(1, dtype=torch.float64)
    for tensor in (x, weight, bias):
        tensor.requires_grad_()
    expected = F.conv2d(x, weight, bias, padding=padding)
    torch.testing.assert_close(convolve_to_one(x, weight, bias, padding), expected)
    torch.autograd.gradcheck(lambda x, w, b: convolve_to_one(x, w, b, padding), (x, weight, bias))


def test_a_chain_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def count(*inputs: object) -> torch.Tensor:
        calls.append(1)
        return convolve_to_one(*inputs)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "convolve_to_one", count)
    x = torch.rand(1, 3, 9, 9)
    layers = [nn.Conv2d(3, 4, 3), nn.Conv2d(4, 1, 3, bias=False)]
    expected = layers[1](layers[0](x).relu())
    torch.testing.assert_close(module.convolve_plainly(x, layers, "relu"), expected)
    assert calls == [1]
    module.convolve_plainly(x, layers[:1], "relu")
    assert calls == [1]
