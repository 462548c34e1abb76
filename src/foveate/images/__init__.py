"""Images that are read in parts: an overview, and patches where somebody looks."""

from foveate.images.batches.ahead import AheadBatch, Choice, SeenBatch
from foveate.images.batches.augmented import AugmentedBatch
from foveate.images.batches.batch import ImageBatch
from foveate.images.batches.list_batch import ListBatch
from foveate.images.batches.pending import Pending
from foveate.images.batches.pooled import ImagePool, PooledBatch
from foveate.images.batches.stacked import StackedBatch, TensorBatch
from foveate.images.batching import Images, as_batch, read_patches
from foveate.images.convert import convert_image
from foveate.images.files.file_image import FileImage
from foveate.images.files.helpers import reading_processes
from foveate.images.files.threads import set_threads, thread_count
from foveate.images.files.tile_cache import set_cache_limit, tiles_for_training
from foveate.images.georeference import Georeference
from foveate.images.image import Image
from foveate.images.memory.device_reads import keep_until_read
from foveate.images.memory.form import Form
from foveate.images.memory.kept import KeptOverviews, Make
from foveate.images.memory.stack import Stack
from foveate.images.memory.tensor_image import TensorImage
from foveate.images.memory.variation import Variation
from foveate.images.opening import Openable, open_image

__all__ = [
    "AheadBatch",
    "AugmentedBatch",
    "Choice",
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
    "SeenBatch",
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
    "reading_processes",
    "set_cache_limit",
    "set_threads",
    "thread_count",
    "tiles_for_training",
]
