from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage
from scipy.io import savemat

from foveate.datasets.colon_cancer import (
    FOLDER,
    KINDS,
    ColonCancer,
    colon_cancer_splits,
)
from foveate.errors import DataError, InputError

REAL = Path(__file__).parents[2].parent / "shared" / "data" / FOLDER


def write_set(root: Path, images: int = 3) -> Path:
    """Images of which the even ones have epithelial cells, as many as their number."""
    for number in range(1, images + 1):
        folder = root / FOLDER / "Classification" / f"img{number}"
        folder.mkdir(parents=True)
        PillowImage.new("RGB", (50, 40), (number, 0, 0)).save(folder / f"img{number}.bmp")
        for kind in KINDS:
            count = 1 if kind != "epithelial" else number * (number % 2 == 0)
            xy = np.array([[30.5, 10 + i] for i in range(count)])
            # The real files hold nothing as (0, 2) bytes.
            xy = xy if count else np.zeros((0, 2), np.uint8)
            savemat(folder / f"img{number}_{kind}.mat", {"detection": xy})
    return root


@pytest.mark.parametrize("inside", [".", FOLDER])
def test_the_folder_or_its_parent_in_the_order_of_numbers(tmp_path: Path, inside: str) -> None:
    dataset = ColonCancer(write_set(tmp_path, 11) / inside)
    assert [dataset.name(i) for i in range(11)] == [f"img{number}.bmp" for number in range(1, 12)]
    assert dataset.labels.tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]
    assert dataset.classes == ("negative", "positive")
    batch = dataset.gather([2, 9])
    overviews = batch.images.overviews((40, 50))
    assert overviews.dtype == torch.uint8
    assert overviews[:, 0, 0, 0].tolist() == [3, 10]
    assert pickle.loads(pickle.dumps(dataset)).labels.tolist() == dataset.labels.tolist()


def test_cells_are_y_x_and_truth_is_a_patch_around_each(tmp_path: Path) -> None:
    dataset = ColonCancer(write_set(tmp_path))
    assert dataset.cells(1).tolist() == [[10, 30.5], [11, 30.5]]
    assert dataset.cells(0, "epithelial").shape == (0, 2)
    assert dataset.cells(0, "others").tolist() == [[10, 30.5]]
    assert dataset.truth(1).tolist() == [[-3.5, 17, 23.5, 44], [-2.5, 17, 24.5, 44]]
    assert dataset.truth(0).shape == (0, 4)


def test_every_image_is_tested_in_one_fold_and_the_parts_are_disjoint(tmp_path: Path) -> None:
    write_set(tmp_path, 20)
    tested: list[str] = []
    for fold in range(5):
        splits = colon_cancer_splits(tmp_path, fold, folds=5)
        parts = [splits.train, splits.validation, splits.test]
        assert [len(part) for part in parts] == [14, 2, 4]
        assert [int(part.labels.sum()) for part in parts] == [7, 1, 2]
        names = [part.name(i) for part in parts for i in range(len(part))]
        assert len(set(names)) == 20
        tested += names[-4:]
    assert len(set(tested)) == 20


def test_the_seed_decides_the_parts(tmp_path: Path) -> None:
    write_set(tmp_path, 20)

    def names_tested(seed: int) -> list[str]:
        test = colon_cancer_splits(tmp_path, folds=5, seed=seed).test
        return [test.name(i) for i in range(len(test))]

    assert names_tested(0) == names_tested(0)
    assert names_tested(0) != names_tested(1)


def test_bad_arguments_say_what_to_do(tmp_path: Path) -> None:
    write_set(tmp_path)
    with pytest.raises(InputError, match="inflammatory, others, but 'nerve' were asked for"):
        ColonCancer(tmp_path).cells(0, "nerve")
    with pytest.raises(InputError, match="fold 10 of 10; folds count from 0"):
        colon_cancer_splits(tmp_path, fold=10)
    with pytest.raises(InputError, match="cannot deal 3 images out to 10 folds"):
        colon_cancer_splits(tmp_path)


def test_missing_data_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no colon cancer images .* in .*Classification.*Warwick"):
        ColonCancer(tmp_path)
    folder = write_set(tmp_path) / FOLDER / "Classification"
    (folder / "img2" / "img2_epithelial.mat").unlink()
    with pytest.raises(DataError, match=r"cannot find .*img2_epithelial\.mat .*Warwick"):
        ColonCancer(tmp_path)
    shutil.rmtree(folder / "img2")
    (folder / "img3" / "img3.bmp").unlink()
    with pytest.raises(DataError, match=r"cannot find .*img3\.bmp \(1 of 2 .*Warwick"):
        ColonCancer(tmp_path)


def test_damaged_positions_are_named(tmp_path: Path) -> None:
    folder = write_set(tmp_path) / FOLDER / "Classification" / "img2"
    path = folder / "img2_epithelial.mat"
    whole = path.read_bytes()
    for damaged in (b"", b"no positions at all", whole[: len(whole) - 20], whole[:150]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"positions from .*img2_epithelial\.mat: .*Warwick"):
            ColonCancer(tmp_path)
    savemat(path, {"positions": np.zeros((3, 2))})
    with pytest.raises(DataError, match="has no 'detection'"):
        ColonCancer(tmp_path)
    for xy in (np.zeros((2, 3)), np.full((1, 2), np.nan)):
        savemat(path, {"detection": xy})
        with pytest.raises(DataError, match=r"two columns \(x, y\), but their shape"):
            ColonCancer(tmp_path)


@pytest.mark.skipif(not REAL.is_dir(), reason="the colon cancer images are not here")
def test_the_real_images() -> None:
    dataset = ColonCancer(REAL)
    assert len(dataset) == 100
    assert int(dataset.labels.sum()) == 51
    assert dataset.gather([0, 75]).images.sizes == [(500, 500)] * 2
    assert sum(len(dataset.truth(i)) for i in range(100)) == 7722
    splits = colon_cancer_splits(REAL, fold=3)
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [81, 9, 10]
