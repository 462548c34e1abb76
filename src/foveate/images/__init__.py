"""Images that are read in parts: an overview, and patches where somebody looks."""

from foveate.images.ahead import AheadBatch
from foveate.images.augmented import AugmentedBatch, Variation
from foveate.images.batch import (
    ImageBatch,
    Images,
    ListBatch,
    TensorBatch,
    as_batch,
    read_patches,
)
from foveate.images.convert import convert_image
from foveate.images.file_image import FileImage
from foveate.images.georeference import Georeference
from foveate.images.image import Image
from foveate.images.kept import KeptOverviews
from foveate.images.opening import Openable, open_image
from foveate.images.pending import Pending
from foveate.images.pooled import ImagePool, PooledBatch
from foveate.images.tensor_image import TensorImage
from foveate.images.threads import set_threads
from foveate.images.tile_cache import set_cache_limit

__all__ = [
    "AheadBatch",
    "AugmentedBatch",
    "FileImage",
    "Georeference",
    "Image",
    "ImageBatch",
    "ImagePool",
    "Images",
    "KeptOverviews",
    "ListBatch",
    "Openable",
    "Pending",
    "PooledBatch",
    "TensorBatch",
    "TensorImage",
    "Variation",
    "as_batch",
    "convert_image",
    "open_image",
    "read_patches",
    "set_cache_limit",
    "set_threads",
]
