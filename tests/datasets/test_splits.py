from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from foveate.datasets import stratified_folds, stratified_split
from foveate.errors import InputError

label_lists = st.lists(st.integers(0, 3), min_size=4, max_size=60)


@given(label_lists, st.integers(2, 4), st.integers(0, 5))
def test_folds_divide_the_images_and_each_class(labels: list[int], folds: int, seed: int) -> None:
    parts = stratified_folds(torch.tensor(labels), folds, seed)
    assert sorted(itertools.chain(*parts)) == list(range(len(labels)))
    sizes = [len(part) for part in parts]
    assert max(sizes) - min(sizes) <= 1
    for label in set(labels):
        counts = [sum(labels[i] == label for i in part) for part in parts]
        assert max(counts) - min(counts) <= 1


@given(label_lists, st.floats(0.05, 0.95), st.integers(0, 5))
def test_a_split_takes_its_share_of_each_class(labels: list[int], share: float, seed: int) -> None:
    stay, off = stratified_split(torch.tensor(labels), share, seed)
    assert sorted(stay + off) == list(range(len(labels)))
    for label in set(labels):
        total = labels.count(label)
        taken = sum(labels[i] == label for i in off)
        assert abs(taken - share * total) <= 1
        assert total == 1 or 0 < taken < total


def test_other_seeds_divide_otherwise() -> None:
    labels = torch.zeros(40, dtype=torch.int64)
    assert stratified_split(labels, 0.5, 1) == stratified_split(labels, 0.5, 1)
    assert stratified_split(labels, 0.5, 1) != stratified_split(labels, 0.5, 2)


def test_impossible_divisions_say_why() -> None:
    labels = torch.zeros(4, dtype=torch.int64)
    with pytest.raises(InputError, match="cannot deal 4 images out to 5 folds"):
        stratified_folds(labels, 5)
    with pytest.raises(InputError, match=r"between 0 and 1, but is 1\.5"):
        stratified_split(labels, 1.5)
