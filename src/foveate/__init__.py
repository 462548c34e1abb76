"""Learn from megapixel-to-gigapixel images by looking only where it matters."""

from foveate.errors import FoveateError
from foveate.images import Image, open_image, read_patches
from foveate.models import CNN, AttentionSampling, DeepMIL
from foveate.sampling import (
    Replacement,
    Sampler,
    Sequential,
    Systematic,
    TopK,
    Unordered,
    carry_over,
    entropy,
    expectation,
)
from foveate.types import Draw, Prediction

__version__ = "0.1.0"

__all__ = [
    "CNN",
    "AttentionSampling",
    "DeepMIL",
    "Draw",
    "FoveateError",
    "Image",
    "Prediction",
    "Replacement",
    "Sampler",
    "Sequential",
    "Systematic",
    "TopK",
    "Unordered",
    "carry_over",
    "entropy",
    "expectation",
    "open_image",
    "read_patches",
]
