"""What can be chosen by name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from foveate.errors import InputError


class DatasetName(StrEnum):
    """The data sets that foveate knows."""

    digits = "digits"
    megapixel_mnist = "megapixel-mnist"
    colon_cancer = "colon-cancer"
    speed_limits = "speed-limits"
    gtsdb_speed_limits = "gtsdb-speed-limits"


def find_dataset(text: str) -> DatasetName | Path:
    """The data set of a name, or else the path of a user's own.

    Raises:
        InputError: where it is neither.
    """
    if text in tuple(DatasetName):
        return DatasetName(text)
    path = Path(text).expanduser()
    if not path.exists():
        raise InputError(
            f"'{text}' is not one of {', '.join(DatasetName)}, and there is no such path; name a "
            "data set, a CSV file with the columns path,label, or a folder with one subfolder for "
            "each class"
        )
    return path


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
