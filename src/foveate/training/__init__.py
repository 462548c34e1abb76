"""Training with Lightning: the only room that knows of it."""

from foveate.training.building import build_model, build_splits
from foveate.training.data import ImageData, Order
from foveate.training.evaluation import Figures, evaluate
from foveate.training.log import read_log
from foveate.training.module import Classifier
from foveate.training.run import (
    Hardware,
    Run,
    load_classifier,
    load_splits,
    new_classifier,
    train,
)
from foveate.training.settings import PRESETS, Settings, settings_for

__all__ = [
    "PRESETS",
    "Classifier",
    "Figures",
    "Hardware",
    "ImageData",
    "Order",
    "Run",
    "Settings",
    "build_model",
    "build_splits",
    "evaluate",
    "load_classifier",
    "load_splits",
    "new_classifier",
    "read_log",
    "settings_for",
    "train",
]
