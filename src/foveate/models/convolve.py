"""A chain of 3x3 convolutions, through kernels of our own where they fit.

Attention networks have few channels, for which the convolutions that torch calls were not made:
most of a training step went into them. On a GPU the chain runs through `layer_kernel`, forward
and back; everywhere else it is `convolve_plainly`, which the kernels are tested against.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from foveate.kernels import has_tf32, kernels_on
from foveate.models.narrow import convolve_to_one
from foveate.types import Float

Activation = Literal["relu", "tanh"]

MOST_CHANNELS = 32
"""With more, registers run out, and cuDNN is in its element."""
LARGE = 2**17
"""Pixels of an input above which the last output between layers is not kept but made again."""


def convolve(
    x: Float[Tensor, "b i h w"], layers: Iterable[nn.Module], activation: Activation
) -> Float[Tensor, "b o y x"]:
    """Applies convolutions one after the other, with an activation between each two.

    Args:
        x: the input of the first.
        layers: the convolutions.
        activation: what stands between them.

    Example:
        >>> layers = [nn.Conv2d(3, 8, 3), nn.Conv2d(8, 1, 3, bias=False)]
        >>> convolve(torch.rand(2, 3, 20, 30), layers, "relu").shape
        torch.Size([2, 1, 16, 26])
    """
    chain: list[Any] = list(layers)
    if not fits(x, chain):
        return convolve_plainly(x, chain, activation)
    precision = "tf32" if torch.backends.cudnn.allow_tf32 else "ieee"
    parameters = [parameter for layer in chain for parameter in (layer.weight, layer.bias)]
    paddings = [layer.padding[0] for layer in chain]
    with torch.cuda.device_of(x):
        result: Tensor = _Chain.apply(x, paddings, activation, precision, *parameters)  # type: ignore[no-untyped-call]
    return result


def convolve_plainly(
    x: Float[Tensor, "b i h w"], layers: Sequence[nn.Module], activation: Activation
) -> Float[Tensor, "b o y x"]:
    """What `convolve` does, by torch."""
    for layer in layers[:-1]:
        # In place: a convolution's gradient needs its input alone.
        x = layer(x).relu_() if activation == "relu" else layer(x).tanh_()
    last: Any = layers[-1]
    if _goes_to_one(x, last):
        return convolve_to_one(x, last.weight, last.bias, last.padding[0])
    result: Tensor = last(x)
    return result


def _goes_to_one(x: Tensor, layer: Any) -> bool:
    on_cpu = x.device.type == "cpu" and not torch.compiler.is_compiling()
    return on_cpu and _is_small(layer) and layer.out_channels == 1 and layer.weight.dtype == x.dtype


def fits(x: Tensor, layers: Sequence[Any]) -> bool:
    """Whether the kernels are made for these layers and their input."""
    if not (kernels_on(x.device) and has_tf32(x.device)):
        return False
    if torch.is_autocast_enabled(x.device.type):
        return False
    if x.dtype != torch.float32 or x.numel() == 0:
        return False
    channels, height, width = x.shape[1:]
    for layer in layers:
        if not _is_small(layer) or layer.in_channels != channels or layer.weight.dtype != x.dtype:
            return False
        if layer.weight.device != x.device:
            return False
        # Within an image, places are counted in 32 bits.
        if height * width * max(channels, layer.out_channels) >= 2**31:
            return False
        channels = layer.out_channels
        height, width = height + 2 * layer.padding[0] - 2, width + 2 * layer.padding[0] - 2
    return min(height, width) > 0


def _is_small(layer: Any) -> bool:
    return (
        type(layer) is nn.Conv2d
        and layer.kernel_size == (3, 3)
        and layer.padding in ((0, 0), (1, 1))
        and layer.padding_mode == "zeros"
        and layer.stride == layer.dilation == (1, 1)
        and layer.groups == 1
        and max(layer.in_channels, layer.out_channels) <= MOST_CHANNELS
        # Who listens to a layer hears it only when torch calls it.
        and not (layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks)
    )


class _Chain(torch.autograd.Function):
    """The whole chain as one step of autograd: a layer's gradient is masked by the one above it."""

    @staticmethod
    def forward(
        context: Any,
        x: Tensor,
        paddings: list[int],
        activation: str,
        precision: str,
        *parameters: Tensor | None,
    ) -> Tensor:
        from foveate.models import layer_kernel

        between = [activation] * (len(paddings) - 1)
        chain = [
            layer_kernel.Layer(padding, below, above, precision)
            for padding, below, above in zip(
                paddings, ["none", *between], [*between, "none"], strict=True
            )
        ]
        learns = any(context.needs_input_grad)
        large = len(x) * x.shape[2] * x.shape[3] > LARGE
        context.chain, context.spent = chain, False
        inputs: list[Tensor | None] = []
        packed = []
        for i, layer in enumerate(chain):
            weight, bias = parameters[2 * i], parameters[2 * i + 1]
            assert weight is not None
            inputs.append(x if learns else None)
            packed.append(weight.permute(2, 3, 1, 0).contiguous())
            x = layer_kernel.forward(x, packed[-1], bias, layer)
        if large and len(chain) > 1:
            inputs[-1] = None
        if learns:
            context.save_for_backward(*inputs, *packed, *parameters)
        return x

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor) -> Any:
        from foveate.models import layer_kernel

        chain, saved = context.chain, context.saved_tensors
        count = len(chain)
        inputs, packed, parameters = [*saved[:count]], saved[count : 2 * count], saved[2 * count :]
        # Gradients are written over the inputs of layers; a second time these are made again.
        for i in range(1, count):
            if context.spent or inputs[i] is None:
                bias = parameters[2 * i - 1]
                inputs[i] = layer_kernel.forward(inputs[i - 1], packed[i - 1], bias, chain[i - 1])
        context.spent = True
        dz = gradient.contiguous(memory_format=torch.channels_last)
        narrow = chain[0].between == torch.float16
        largest = torch.linalg.vector_norm(dz, torch.inf) if narrow else None
        found: list[Tensor | None] = []
        for i in reversed(range(count)):
            weight, biased = parameters[2 * i], parameters[2 * i + 1] is not None
            if i > 0 or context.needs_input_grad[0]:
                dz, sums = layer_kernel.back(dz, inputs[i], packed[i], chain[i], largest)
            else:
                sums = layer_kernel.weights(dz, inputs[i], chain[i], largest)
            found = [*layer_kernel.total(sums, weight, biased, largest), *found]
        return dz if context.needs_input_grad[0] else None, None, None, None, *found
