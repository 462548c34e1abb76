"""Images that are read in parts: an overview, and patches where somebody looks."""

from foveate.images.ahead import AheadBatch
from foveate.images.augmented import AugmentedBatch
from foveate.images.batch import ImageBatch
from foveate.images.batches import Images, as_batch, read_patches
from foveate.images.convert import convert_image
from foveate.images.file_image import FileImage
from foveate.images.form import Form
from foveate.images.georeference import Georeference
from foveate.images.image import Image
from foveate.images.kept import KeptOverviews, Make
from foveate.images.kernels import keep_until_read
from foveate.images.list_batch import ListBatch
from foveate.images.opening import Openable, open_image
from foveate.images.pending import Pending
from foveate.images.pooled import ImagePool, PooledBatch
from foveate.images.stack import Stack
from foveate.images.stacked import StackedBatch, TensorBatch
from foveate.images.tensor_image import TensorImage
from foveate.images.threads import set_threads
from foveate.images.tile_cache import set_cache_limit
from foveate.images.variation import Variation

__all__ = [
    "AheadBatch",
    "AugmentedBatch",
    "FileImage",
    "Form",
    "Georeference",
    "Image",
    "ImageBatch",
    "ImagePool",
    "Images",
    "KeptOverviews",
    "ListBatch",
    "Make",
    "Openable",
    "Pending",
    "PooledBatch",
    "Stack",
    "StackedBatch",
    "TensorBatch",
    "TensorImage",
    "Variation",
    "as_batch",
    "convert_image",
    "keep_until_read",
    "open_image",
    "read_patches",
    "set_cache_limit",
    "set_threads",
]
