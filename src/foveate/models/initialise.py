"""How weights start."""

from __future__ import annotations

from typing import TypeVar

from torch import nn

Module = TypeVar("Module", bound=nn.Module)


def glorot_(module: Module) -> Module:
    """Start every convolution and dense layer as Glorot & Bengio (2010), with biases 0, in place.

    It is what the paper's code does. Kaiming's uniform start, torch's own, gives the last layer of
    an attention network smaller weights, and it takes longer to leave the uniform attention.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return module
