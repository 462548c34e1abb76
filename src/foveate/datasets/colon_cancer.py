"""Colon cancer: 100 stained tissue images of 500x500, with the nuclei marked by their kind.

The set of Sirinukunwattana et al. (2016), in its original layout: `Classification/imgN/imgN.bmp`
and beside it one `imgN_<kind>.mat` per kind of cell. An image is positive if it shows an epithelial
cell, and what a model is told is that alone (Ilse et al. 2018).
"""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from foveate.datasets.dataset import Splits, Subset
from foveate.datasets.folder import FileDataset, check_present
from foveate.datasets.splits import stratified_folds, stratified_split
from foveate.errors import DataError, InputError, MissingExtraError
from foveate.types import Float64

FOLDER = "CRCHistoPhenotypes_2016_04_28"
KINDS = ("epithelial", "fibroblast", "inflammatory", "others")
PATCH = 27
"""The side of the patches of Ilse et al. (2018), in pixels."""

_SOURCE = f"the Tissue Image Analytics Centre, University of Warwick ({FOLDER})"


class ColonCancer(FileDataset):
    """The colon cancer images in the order of their numbers, kept in memory once decoded.

    Args:
        root: the folder `CRCHistoPhenotypes_2016_04_28`, or the one in which it lies.

    Raises:
        DataError: where the data is missing or damaged.
        MissingExtraError: where scipy, which reads the positions of the cells, is not installed.
    """

    def __init__(self, root: str | PathLike[str]) -> None:
        numbered = _numbered_folders(Path(root))
        paths = [folder / f"{folder.name}.bmp" for folder in numbered]
        check_present(paths, _SOURCE)
        epithelial = [_read_cells(path, "epithelial") for path in paths]
        super().__init__(
            paths,
            labels=[int(len(yx) > 0) for yx in epithelial],
            classes=("negative", "positive"),
            boxes=[torch.cat([yx - PATCH / 2, yx + PATCH / 2], dim=1) for yx in epithelial],
            keep=True,
        )

    def cells(self, index: int, kind: str = "epithelial") -> Float64[Tensor, "m 2"]:
        """The positions (y, x) of the cells of one kind.

        Args:
            index: which image.
            kind: epithelial, fibroblast, inflammatory or others.

        Raises:
            InputError: for another kind.
            DataError: where the positions are missing or damaged.
        """
        if kind not in KINDS:
            raise InputError(f"cells are {', '.join(KINDS)}, but {kind!r} were asked for")
        return _read_cells(self.paths[index], kind)


def colon_cancer_splits(
    root: str | PathLike[str],
    fold: int = 0,
    folds: int = 10,
    seed: int = 0,
    hold_back: bool = True,
) -> Splits:
    """The parts of one round of cross-validation, each with its share of positives.

    Args:
        root: as for `ColonCancer`.
        fold: which fold is the test part, from 0.
        folds: how many folds; a tenth of what is not in the test part is for validation.
        seed: decides which image goes where; keep it while going through the folds.
        hold_back: whether validation images are kept out of training. Where nothing is chosen by
            them, all that is not in the test part can be trained on.

    Raises:
        InputError: for a fold that does not exist.
        DataError: where the data is missing or damaged.
    """
    if not 0 <= fold < folds:
        raise InputError(f"cannot test on fold {fold} of {folds}; folds count from 0")
    whole = ColonCancer(root)
    test = stratified_folds(whole.labels, folds, seed)[fold]
    rest = sorted(set(range(len(whole))) - set(test))
    train, validation = stratified_split(whole.labels[torch.tensor(rest)], share=0.1, seed=seed)
    return Splits(
        train=Subset(whole, [rest[i] for i in train] if hold_back else rest),
        validation=Subset(whole, [rest[i] for i in validation]),
        test=Subset(whole, test),
    )


def _numbered_folders(root: Path) -> list[Path]:
    tried = [root / "Classification", root / FOLDER / "Classification"]
    for place in tried:
        numbered = [path for path in place.glob("img*") if re.fullmatch(r"img\d+", path.name)]
        if numbered:
            return sorted(numbered, key=lambda path: int(path.name.removeprefix("img")))
    raise DataError(
        f"there are no colon cancer images img1, img2, ... in {tried[0]} or {tried[1]}; "
        f"get them from {_SOURCE}"
    )


def _read_cells(image: Path, kind: str) -> Float64[Tensor, "m 2"]:
    """The positions beside an image file, where they are written as (x, y)."""
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise MissingExtraError(
            f"ColonCancer reads positions with scipy, which did not import ({error}); "
            "install it with: pip install scipy"
        ) from error
    path = image.with_name(f"{image.stem}_{kind}.mat")
    check_present([path], _SOURCE)
    try:
        xy = np.asarray(loadmat(path)["detection"], dtype=np.float64)
    except Exception as error:  # on damaged bytes scipy raises errors of half a dozen unlike types
        raise DataError(
            f"cannot read cell positions from {path}: it is damaged or has no 'detection' "
            f"({type(error).__name__}: {error}); get the data set again from {_SOURCE}"
        ) from error
    if xy.size and (xy.ndim != 2 or xy.shape[1] != 2 or not np.isfinite(xy).all()):
        raise DataError(
            f"positions in {path} must be finite numbers in two columns (x, y), but their shape "
            f"is {xy.shape}; get the data set again from {_SOURCE}"
        )
    return torch.from_numpy(xy.reshape(-1, 2)).flip(1)
