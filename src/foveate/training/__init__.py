"""Training with Lightning: the only room that knows of it."""

from foveate.training.building import build_model, build_splits, open_manifest
from foveate.training.checkpoint import load_classifier, load_splits
from foveate.training.data import ImageData, Order
from foveate.training.evaluation import Figures, evaluate, logits_of
from foveate.training.log import read_log
from foveate.training.module import Classifier
from foveate.training.prediction import Failed, Predicted, predict_images
from foveate.training.presets import PRESETS, settings_for
from foveate.training.run import Run, check_unused, new_classifier, train
from foveate.training.settings import Settings
from foveate.training.sizing import Sizing, choose_sizes, settings_for_manifest
from foveate.training.trainer import Hardware

__all__ = [
    "PRESETS",
    "Classifier",
    "Failed",
    "Figures",
    "Hardware",
    "ImageData",
    "Order",
    "Predicted",
    "Run",
    "Settings",
    "Sizing",
    "build_model",
    "build_splits",
    "check_unused",
    "choose_sizes",
    "evaluate",
    "load_classifier",
    "load_splits",
    "logits_of",
    "new_classifier",
    "open_manifest",
    "predict_images",
    "read_log",
    "settings_for",
    "settings_for_manifest",
    "train",
]
