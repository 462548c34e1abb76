"""From settings to the model and the data that they describe."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from foveate.datasets import (
    GERMAN,
    SWEDISH,
    Digits,
    ImageDataset,
    Manifest,
    MegapixelMNIST,
    PaintedDataset,
    Progress,
    Splits,
    Subset,
    colon_cancer_splits,
    gtsdb_speed_limits_splits,
    speed_limits_splits,
    stratified_split,
)
from foveate.errors import InputError
from foveate.models import (
    CNN,
    Attention,
    AttentionSampling,
    ContrastPrior,
    ConvAttention,
    ConvFeature,
    DeepMIL,
    IlseFeature,
    Jitter,
    LeNetFeature,
    MILAttention,
    PooledAttention,
    ScaledLinear,
    UniformAttention,
    glorot_,
    resnet8,
    resnet8_cnn,
    resnet8_max,
    resnet16_cnn,
)
from foveate.sampling import Replacement, Sampler, Sequential, Systematic, TopK, Unordered
from foveate.training.settings import Settings

_log = logging.getLogger(__name__)

_SAMPLERS: dict[str, type[Sampler]] = {
    "systematic": Systematic,
    "unordered": Unordered,
    "sequential": Sequential,
    "replacement": Replacement,
    "topk": TopK,
}


def build_splits(
    settings: Settings, progress: Progress | None = None, memory: int | None = None
) -> Splits:
    """The data that settings describe.

    Args:
        settings: the run's.
        progress: is told how far the painting of signs is, which is done at once then, rather than
            when an image is first asked for.
        memory: how many bytes of a manifest's images may be kept; see `Manifest.load`.

    Raises:
        DataError: where it is missing or damaged.
        InputError: where the data set needs a root and has none.
    """
    name, seed, images = settings.dataset, settings.seed, settings.images
    counts: dict[str, Any] = {}
    if images is not None:
        counts = {"train": images, "validation": images // 5, "test": images // 5}
    if name == "digits":
        return Digits(seed=seed, **counts).splits()
    if settings.root is None:
        raise InputError(f"the data set {name} is read from a folder; name it with --root")
    root = Path(settings.root).expanduser()
    if name == "megapixel-mnist":
        return MegapixelMNIST(root, seed=seed, **counts).splits()
    if name == "colon-cancer":
        # Weights that are not chosen by validation may as well be trained on those images too.
        hold_back = settings.keep == "best"
        splits = colon_cancer_splits(root, fold=settings.fold, seed=seed, hold_back=hold_back)
    elif name == "speed-limits":
        splits = speed_limits_splits(root, seed=seed, keep=True)
    elif name == "manifest":
        splits = _manifest_splits(settings, memory)
    else:
        splits = gtsdb_speed_limits_splits(root, seed=seed, keep=True)
    if images is not None:
        splits = replace(
            splits,
            train=_some_of(splits.train, counts["train"], seed),
            validation=_some_of(splits.validation, counts["validation"], seed),
            test=_some_of(splits.test, counts["test"], seed),
        )
    if settings.painted == 0:
        return splits
    style = SWEDISH if name == "speed-limits" else GERMAN
    train = PaintedDataset(splits.train, settings.painted, style, seed)
    if progress is not None:
        train.paint(progress)
    return replace(splits, train=train)


def open_manifest(settings: Settings, progress: Progress | None = None) -> Manifest:
    """The images of a run on a user's own data, found and opened again.

    Args:
        settings: the run's.
        progress: is told how far the opening of the files is.

    Raises:
        InputError: where other rows than the run's would be dealt out, and what it was trained on
            could come up in the test.
        DataError: where no image can be used.
    """
    root = Path(settings.root or "").expanduser()
    manifest = Manifest(root, settings.seed, settings.classes, settings.channels, progress)
    now, before = manifest.fingerprint, settings.fingerprint
    if now is not None and before is not None and now != before:
        raise InputError(
            f"{root} has other rows than the run had, so its parts would be other images too; name "
            "the split.csv in the run's folder with --root, or give every row a split"
        )
    return manifest


def _manifest_splits(settings: Settings, memory: int | None) -> Splits:
    manifest = open_manifest(settings)
    splits = manifest.load(settings.overview_size, memory)
    if manifest.problems:
        first = manifest.problems[0]
        _log.warning("%s: %d problems, such as %s", settings.root, len(manifest.problems), first)
    return splits


def _some_of(data: ImageDataset, count: int, seed: int) -> ImageDataset:
    """About so many images of a data set, with its share of each class."""
    if count >= len(data):
        return data
    _, some = stratified_split(data.labels, share=count / len(data), seed=seed)
    return Subset(data, some)


def build_model(settings: Settings, channels: int, classes: int) -> nn.Module:
    """The model that settings describe.

    Args:
        settings: the run's.
        channels: channels of the images.
        classes: how many classes to tell apart.

    Raises:
        InputError: for settings that do not go together or with the images.
    """
    if settings.tint > 0 and channels != 3:
        raise InputError(
            f"a tint of {settings.tint} is for images of 3 channels, but these have "
            f"{channels}; leave it at 0"
        )
    builders: dict[str, Callable[[Settings, int, int], nn.Module]] = {
        "ats": _attention_sampling,
        "uniform": _attention_sampling,
        "mil": _deep_mil,
        "cnn": _cnn,
    }
    return glorot_(builders[settings.method](settings, channels, classes))


def _attention_sampling(settings: Settings, channels: int, classes: int) -> nn.Module:
    blind = settings.method == "uniform"
    network = UniformAttention(settings.overview_size) if blind else _attention(settings, channels)
    prior = ContrastPrior() if settings.prior and not blind else None
    feature, length = _feature(settings, channels)
    return AttentionSampling(
        Attention(
            network,
            prior,
            smoothing=0.0 if blind else settings.smoothing,
            curiosity=0.0 if blind else settings.curiosity,
        ),
        feature,
        _head(settings, length, classes),
        patch_size=settings.patch_size,
        n_patches=settings.n_patches,
        overview_size=settings.overview_size,
        sampler=_SAMPLERS[settings.sampler](),
        jitter=_jitter(settings),
    )


def _attention(settings: Settings, channels: int) -> nn.Module:
    builders: dict[str, Callable[[], nn.Module]] = {
        "conv": lambda: ConvAttention(channels),
        "deep": lambda: ConvAttention(channels, channels=16, layers=4),
        "pooled": lambda: PooledAttention(channels),
        "coarse": lambda: PooledAttention(channels, (16, 32), pool=4),
    }
    return _chosen("attention", settings.attention, builders)


def _deep_mil(settings: Settings, channels: int, classes: int) -> nn.Module:
    feature, length = _feature(settings, channels)
    return DeepMIL(
        MILAttention(length, gated=settings.gated),
        feature,
        _head(settings, length, classes),
        patch_size=settings.patch_size,
        grid=settings.grid,
        jitter=_jitter(settings),
    )


def _cnn(settings: Settings, channels: int, classes: int) -> nn.Module:
    colon = settings.dataset == "colon-cancer"
    network = resnet8_cnn(channels) if colon else resnet16_cnn(channels)
    head = nn.Linear(network.out_features, classes)
    # A user's images are of any sizes, and most are too large as they are.
    size = settings.overview_size if settings.dataset == "manifest" else None
    return CNN(network, head, scale=settings.scale, size=size)


def _feature(settings: Settings, channels: int) -> tuple[nn.Module, int]:
    builders: dict[str, Callable[[], nn.Module]] = {
        "conv": lambda: ConvFeature(channels),
        "deep": lambda: ConvFeature(
            channels, (32, 64, 128, 128), (5, 3, 3, 3), strides=(1,) * 4, pools=(2, 2, 1, 1)
        ),
        "small": lambda: ConvFeature(channels, (16, 32, 64), strides=(2, 2, 1), pools=(1, 1, 1)),
        "lenet": lambda: LeNetFeature(channels),
        "ilse": lambda: IlseFeature(channels, settings.patch_size),
        "resnet8": lambda: resnet8(channels),
        "resnet8-max": lambda: resnet8_max(channels),
    }
    network = _chosen("feature", settings.feature, builders)
    length = int(network.out_features)  # type: ignore[arg-type]
    return network, length


def _jitter(settings: Settings) -> Jitter | None:
    return Jitter(settings.jitter) if settings.jitter > 0 else None


def _chosen(what: str, name: str, builders: dict[str, Callable[[], nn.Module]]) -> nn.Module:
    if name not in builders:
        raise InputError(f"unknown {what} network {name!r}; choose one of {', '.join(builders)}")
    return builders[name]()


def _head(settings: Settings, length: int, classes: int) -> nn.Module:
    if settings.recipe == "paper":
        return nn.Linear(length, classes)
    return ScaledLinear(length, classes)
