"""Data sets: labelled images of any size, in the same shape whatever they come from."""

from foveate.datasets.colon_cancer import ColonCancer, colon_cancer_splits
from foveate.datasets.dataset import Batch, ImageDataset, Splits, Subset
from foveate.datasets.digits import Digits
from foveate.datasets.files import Progress
from foveate.datasets.majority import MajorityTask
from foveate.datasets.manifest import Manifest, read_table
from foveate.datasets.manifest_dataset import ManifestDataset
from foveate.datasets.megapixel_mnist import MegapixelMNIST
from foveate.datasets.painting.painted import PaintedDataset
from foveate.datasets.painting.signs import GERMAN, SWEDISH
from foveate.datasets.placed import PlacedDataset, Placements
from foveate.datasets.problem import Problem, write_problems
from foveate.datasets.room import usual_room
from foveate.datasets.speed_limits import (
    GtsdbSpeedLimits,
    SpeedLimits,
    gtsdb_speed_limits_splits,
    speed_limits_splits,
)
from foveate.datasets.splits import stratified_folds, stratified_split

__all__ = [
    "GERMAN",
    "SWEDISH",
    "Batch",
    "ColonCancer",
    "Digits",
    "GtsdbSpeedLimits",
    "ImageDataset",
    "MajorityTask",
    "Manifest",
    "ManifestDataset",
    "MegapixelMNIST",
    "PaintedDataset",
    "PlacedDataset",
    "Placements",
    "Problem",
    "Progress",
    "SpeedLimits",
    "Splits",
    "Subset",
    "colon_cancer_splits",
    "gtsdb_speed_limits_splits",
    "read_table",
    "speed_limits_splits",
    "stratified_folds",
    "stratified_split",
    "usual_room",
    "write_problems",
]
