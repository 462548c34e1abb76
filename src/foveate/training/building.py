"""From settings to the model and the data that they describe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import nn

from foveate.datasets import (
    Digits,
    MegapixelMNIST,
    Splits,
    colon_cancer_splits,
    gtsdb_speed_limits_splits,
    speed_limits_splits,
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
    LeNetFeature,
    MILAttention,
    PooledAttention,
    ScaledLinear,
    UniformAttention,
    glorot_,
    resnet8,
    resnet8_cnn,
    resnet16_cnn,
)
from foveate.sampling import Replacement, Sampler, Sequential, Systematic, TopK, Unordered
from foveate.training.settings import Settings

_SAMPLERS: dict[str, type[Sampler]] = {
    "systematic": Systematic,
    "unordered": Unordered,
    "sequential": Sequential,
    "replacement": Replacement,
    "topk": TopK,
}


def build_splits(settings: Settings) -> Splits:
    """The data that settings describe.

    Raises:
        DataError: where it is missing or damaged.
        InputError: where the data set needs a root and has none.
    """
    name, seed = settings.dataset, settings.seed
    if name == "digits":
        return Digits(seed=seed).splits()
    if settings.root is None:
        raise InputError(f"the data set {name} is read from a folder; name it with --root")
    root = Path(settings.root).expanduser()
    if name == "megapixel-mnist":
        return MegapixelMNIST(root, seed=seed).splits()
    if name == "colon-cancer":
        return colon_cancer_splits(root, fold=settings.fold, seed=seed)
    if name == "speed-limits":
        return speed_limits_splits(root, seed=seed, keep=True)
    return gtsdb_speed_limits_splits(root, seed=seed, keep=True)


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
        Attention(network, prior, smoothing=0.0 if blind else settings.smoothing),
        feature,
        _head(settings, length, classes),
        patch_size=settings.patch_size,
        n_patches=settings.n_patches,
        overview_size=settings.overview_size,
        sampler=_SAMPLERS[settings.sampler](),
    )


def _attention(settings: Settings, channels: int) -> nn.Module:
    builders: dict[str, Callable[[], nn.Module]] = {
        "conv": lambda: ConvAttention(channels),
        "deep": lambda: ConvAttention(channels, channels=16, layers=4),
        "pooled": lambda: PooledAttention(channels),
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
    )


def _cnn(settings: Settings, channels: int, classes: int) -> nn.Module:
    colon = settings.dataset == "colon-cancer"
    network = resnet8_cnn(channels) if colon else resnet16_cnn(channels)
    head = nn.Linear(network.out_features, classes)
    return CNN(network, head, scale=settings.scale)


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
    }
    network = _chosen("feature", settings.feature, builders)
    return network, int(network.out_features)  # type: ignore[arg-type]


def _chosen(what: str, name: str, builders: dict[str, Callable[[], nn.Module]]) -> nn.Module:
    if name not in builders:
        raise InputError(f"unknown {what} network {name!r}; choose one of {', '.join(builders)}")
    return builders[name]()


def _head(settings: Settings, length: int, classes: int) -> nn.Module:
    if settings.recipe == "paper":
        return nn.Linear(length, classes)
    return ScaledLinear(length, classes)
