"""What can be chosen by name."""

from __future__ import annotations

from enum import StrEnum


class DatasetName(StrEnum):
    """The data sets that foveate knows."""

    digits = "digits"
    megapixel_mnist = "megapixel-mnist"
    colon_cancer = "colon-cancer"
    speed_limits = "speed-limits"
    gtsdb_speed_limits = "gtsdb-speed-limits"


class Method(StrEnum):
    """The models that can be trained."""

    ats = "ats"
    mil = "mil"
    cnn = "cnn"
    uniform = "uniform"


class Recipe(StrEnum):
    """The ways to train them."""

    default = "default"
    paper = "paper"
