"""Chains of convolutions, and their comparison with torch's in float64."""

from __future__ import annotations

import copy
import itertools

import torch
from torch import Tensor, nn

from foveate.models.convolve import Activation, convolve, convolve_plainly, fits


def chain(channels: tuple[int, ...], padding: int, bias: bool) -> nn.ModuleList:
    return nn.ModuleList(
        nn.Conv2d(before, after, 3, padding=padding, bias=bias)
        for before, after in itertools.pairwise(channels)
    )


def relative_error(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    found, expected = found.detach().double(), expected.detach()
    return float((found - expected).norm() / expected.norm())


def results(
    x: Tensor, layers: nn.ModuleList, activation: Activation, weight: Tensor, plainly: bool
) -> list[Tensor]:
    """The output, and the gradients of the parameters and, where it asks for it, of the input."""
    asked = [*([x] if x.requires_grad else []), *layers.parameters()]
    y = (
        convolve_plainly(x, list(layers), activation)
        if plainly
        else convolve(x, layers, activation)
    )
    return [y.detach(), *torch.autograd.grad(y, asked, weight.to(y.dtype))]


def compare(
    x: Tensor,
    layers: nn.ModuleList,
    activation: Activation,
    error: float,
    error_gradient: float | None = None,
    of_input: bool = True,
) -> None:
    """Everything within an error of the float64 reference, through the kernels."""
    assert fits(x, list(layers))
    x = x.detach().requires_grad_(of_input)
    exact = x.detach().double().requires_grad_(of_input)
    weight = 1 + torch.randn_like(convolve_plainly(x, list(layers), activation))
    found = results(x, layers, activation, weight, plainly=False)
    expected = results(exact, copy.deepcopy(layers).double(), activation, weight, plainly=True)
    for i, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert one.isfinite().all()
        found_error = relative_error(one, other)
        assert found_error < (error if i == 0 else error_gradient or error), f"of result {i}"
