"""Images that are read in parts: an overview, and patches where somebody looks."""

from foveate.images.batch import Images, as_batch, read_overviews, read_patches, sizes_of
from foveate.images.image import Image
from foveate.images.opening import open_image
from foveate.images.tensor_image import TensorImage

__all__ = [
    "Image",
    "Images",
    "TensorImage",
    "as_batch",
    "open_image",
    "read_overviews",
    "read_patches",
    "sizes_of",
]
