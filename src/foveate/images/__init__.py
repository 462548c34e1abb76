"""Images that are read in parts: an overview, and patches where somebody looks."""

from foveate.images.augmented import AugmentedBatch, Variation
from foveate.images.batch import (
    ImageBatch,
    Images,
    ListBatch,
    TensorBatch,
    as_batch,
    read_patches,
)
from foveate.images.image import Image
from foveate.images.kept import KeptOverviews
from foveate.images.opening import Openable, open_image
from foveate.images.pooled import ImagePool, PooledBatch
from foveate.images.tensor_image import TensorImage

__all__ = [
    "AugmentedBatch",
    "Image",
    "ImageBatch",
    "ImagePool",
    "Images",
    "KeptOverviews",
    "ListBatch",
    "Openable",
    "PooledBatch",
    "TensorBatch",
    "TensorImage",
    "Variation",
    "as_batch",
    "open_image",
    "read_patches",
]
