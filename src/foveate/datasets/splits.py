"""Dividing a data set so that every part has its share of each class."""

from __future__ import annotations

import torch
from torch import Tensor

from foveate.errors import InputError
from foveate.types import Int64


def stratified_folds(labels: Int64[Tensor, " N"], folds: int, seed: int = 0) -> list[list[int]]:
    """Deal the images of each class out to folds, whose sizes differ by one at most.

    Args:
        labels: the class of each image.
        folds: how many parts.
        seed: decides which image goes where.

    Returns:
        The indices of each fold, rising.

    Raises:
        InputError: for fewer than two folds, or fewer images than folds.

    Example:
        >>> stratified_folds(torch.tensor([0, 0, 0, 0, 1, 1]), folds=2)
        [[0, 2, 5], [1, 3, 4]]
    """
    if not 2 <= folds <= len(labels):
        raise InputError(
            f"cannot deal {len(labels)} images out to {folds} folds; "
            "folds must be at least 2 and at most the number of images"
        )
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.randperm(len(labels), generator=generator)
    by_class = shuffled[labels[shuffled].argsort(stable=True)]
    return [sorted(by_class[fold::folds].tolist()) for fold in range(folds)]


def stratified_split(
    labels: Int64[Tensor, " N"], share: float, seed: int = 0
) -> tuple[list[int], list[int]]:
    """Split off a share of each class.

    Args:
        labels: the class of each image.
        share: how much goes to the second part, between 0 and 1. A class of two images or more
            has at least one in either part.
        seed: decides which image goes where.

    Returns:
        The indices that stay, and those split off, both rising.

    Example:
        >>> stratified_split(torch.tensor([0, 0, 0, 0, 1, 1]), share=0.3)
        ([1, 2, 3, 5], [0, 4])
    """
    if not 0 < share < 1:
        raise InputError(f"the share to split off must be between 0 and 1, but is {share}")
    generator = torch.Generator().manual_seed(seed)
    stay: list[int] = []
    off: list[int] = []
    for label in labels.unique().tolist():
        members = (labels == label).nonzero()[:, 0]
        members = members[torch.randperm(len(members), generator=generator)].tolist()
        count = round(share * len(members))
        count = min(max(count, 1), len(members) - 1) if len(members) > 1 else 0
        off += members[:count]
        stay += members[count:]
    return sorted(stay), sorted(off)
