"""Layers of batch norm and ReLU, and their comparison with torch's in float64."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foveate.models.norm import NormReLU, fits


def layer_of(channels: int) -> NormReLU:
    """One whose parameters and buffers are not those of a new layer."""
    layer = NormReLU(channels, eps=1e-3, momentum=0.3)
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    assert layer.running_mean is not None
    assert layer.running_var is not None
    nn.init.normal_(layer.running_mean)
    nn.init.uniform_(layer.running_var)
    return layer


def reference_of(layer: NormReLU) -> nn.BatchNorm2d:
    """Torch's layer of the same state, in float64."""
    reference = nn.BatchNorm2d(layer.num_features, layer.eps, layer.momentum)
    reference.load_state_dict(layer.state_dict())
    return reference.to(layer.weight.device, torch.float64)


def images(*shape: int, offset: float = 0.0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Random numbers whose channels lie together."""
    x = torch.randn(shape) * (0.5 + torch.rand(shape[1], 1, 1)) + offset
    return x.to(dtype, memory_format=torch.channels_last)


def relative_error(found: Tensor, expected: Tensor) -> float:
    assert found.shape == expected.shape
    assert found.isfinite().all()
    found, expected = found.detach().double(), expected.detach()
    return float((found - expected).norm() / expected.norm())


def results(layer: NormReLU, x: Tensor, dy: Tensor) -> list[Tensor]:
    """The output, and the gradients of the input, the weight and the bias."""
    y = layer(x)
    return [y.detach(), *torch.autograd.grad(y, [x, layer.weight, layer.bias], dy)]


def compare(layer: NormReLU, x: Tensor, error: float, error_sums: float | None = None) -> None:
    """Everything within an error of the float64 reference, through the kernels.

    Args:
        layer: what is compared; it sees two batches.
        x: its input.
        error: the most there may be.
        error_sums: the same, for what is summed over pixels in float32 whatever the input's type.
    """
    error_sums = error_sums or error
    assert fits(x, layer)
    reference = reference_of(layer)
    for batch in (x, x.flip(0).contiguous(memory_format=torch.channels_last)):
        given = batch.detach().requires_grad_()
        exact = batch.detach().double().requires_grad_()
        z = reference(exact)
        # A unit that is 0 but for rounding may learn in one of the two only.
        dy = torch.where(z.abs() < 1e-3, 0.0, 1 + torch.randn_like(z)).to(x.dtype)
        expected = [
            z.relu(),
            *torch.autograd.grad(z.relu(), [exact, reference.weight, reference.bias], dy.double()),
        ]
        found = results(layer, given, dy)
        assert [one.dtype for one in found] == [x.dtype, x.dtype, torch.float32, torch.float32]
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert relative_error(one, other) < (error if i < 2 else error_sums), f"of result {i}"
    for name, buffer in layer.named_buffers():
        other = reference.get_buffer(name)
        if name == "num_batches_tracked":
            assert torch.equal(buffer, other)
        else:
            assert relative_error(buffer, other) < 1e-6, name
