"""Drawing cells from an attention map so that the weighted mean of their features is unbiased."""

from foveate.sampling.carry_over import carry_over
from foveate.sampling.entropy import entropy
from foveate.sampling.expectation import expectation
from foveate.sampling.replacement import Replacement
from foveate.sampling.sampler import Sampler
from foveate.sampling.sequential import Sequential
from foveate.sampling.systematic import Systematic
from foveate.sampling.topk import TopK
from foveate.sampling.unordered import Unordered

__all__ = [
    "Replacement",
    "Sampler",
    "Sequential",
    "Systematic",
    "TopK",
    "Unordered",
    "carry_over",
    "entropy",
    "expectation",
]
