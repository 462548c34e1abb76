from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image as PillowImage

from foveate.datasets.speed_limits import (
    GtsdbSpeedLimits,
    SpeedLimits,
    gtsdb_speed_limits_splits,
    speed_limits_splits,
)
from foveate.errors import DataError, InputError

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "gtsdb-speed-limits"

SIGNS = {
    "empty": "",
    "unmarked": "MISC_SIGNS;MISC_SIGNS;",
    "fifty": "VISIBLE, 30.0, 20.5, 10.0, 5.0, PROHIBITORY, 50_SIGN;",
    "other": "VISIBLE, 30.0, 20.0, 10.0, 5.0, PROHIBITORY, 90_SIGN;",
    "blurred": "BLURRED, 30.0, 20.0, 10.0, 5.0, PROHIBITORY, 80_SIGN;",
    "larger wins": "VISIBLE, 9, 9, 8, 8, PROHIBITORY, 50_SIGN;"
    "VISIBLE, 8, 8, 4, 4, PROHIBITORY, 70_SIGN;VISIBLE, 7, 7, 5, 5, PROHIBITORY, 70_SIGN;",
    "visible wins": "OCCLUDED, 99, 99, 0, 0, PROHIBITORY, 50_SIGN;MISC_SIGNS;"
    "VISIBLE, 9, 9, 8, 8, PROHIBITORY, 80_SIGN;BLURRED, 9, 9, 8, 8, PROHIBITORY, 80_SIGN;",
    "side road": "SIDE_ROAD, 9, 9, 8, 8, PROHIBITORY, 50_SIGN;"
    "VISIBLE, 9, 9, 8, 8, INFORMATION, PEDESTRIAN_CROSSING;",
    "garbage": "VISIBLE, 30.0a, 20.0\x85, 10.0., 5.é, PROHIBITORY, 50_SIGN;",
}


def write_swedish(root: Path, signs: dict[str, str] = SIGNS, inner: str = "") -> Path:
    for name in ("Set1", "Set2"):
        folder = root / name / inner.format(name)
        folder.mkdir(parents=True)
        for image in signs:
            PillowImage.new("RGB", (16, 12)).save(folder / f"{image}.jpg")
        lines = "".join(f"{image}.jpg:{entry}\n" for image, entry in signs.items())
        (root / name / "annotations.txt").write_text(lines, encoding="latin-1")
    return root


def write_german(root: Path, labels: str = "none 50 100 30 50", boxes: str = "") -> Path:
    (root / "images").mkdir(parents=True)
    lines = ["path,label"]
    for i, label in enumerate(labels.split()):
        PillowImage.new("RGB", (16, 12)).save(root / "images" / f"{i}.jpg")
        lines.append(f"images/{i}.jpg,{label}")
    (root / "labels.csv").write_text("\n".join(lines) + "\n")
    if boxes:
        (root / "boxes.csv").write_text(f"path,label,x0,y0,x1,y1\n{boxes}\n")
    return root


@pytest.mark.parametrize("inner", ["", "{}Part0"])
def test_signs_decide_the_label_and_whether_an_image_counts(tmp_path: Path, inner: str) -> None:
    dataset = SpeedLimits(write_swedish(tmp_path, inner=inner), "train")
    found = {dataset.name(i): dataset.classes[dataset.labels[i]] for i in range(len(dataset))}
    assert dataset.classes == ("none", "50", "70", "80")
    assert found == {
        "empty.jpg": "none",
        "unmarked.jpg": "none",
        "fifty.jpg": "50",
        "larger wins.jpg": "70",
        "visible wins.jpg": "80",
        "garbage.jpg": "50",
    }
    assert dataset.gather([0, 3]).images.sizes == [(12, 16)] * 2
    assert pickle.loads(pickle.dumps(dataset)).name(3) == dataset.name(3)


def test_truth_is_the_visible_signs_of_the_label(tmp_path: Path) -> None:
    dataset = SpeedLimits(write_swedish(tmp_path), "test")
    truth = {dataset.name(i): dataset.truth(i).tolist() for i in range(len(dataset))}
    assert truth == {
        "empty.jpg": [],
        "unmarked.jpg": [],
        "fifty.jpg": [[5, 10, 20.5, 30]],
        "larger wins.jpg": [[4, 4, 8, 8], [5, 5, 7, 7]],
        "visible wins.jpg": [[8, 8, 9, 9]],
        "garbage.jpg": [[5, 10, 20, 30]],
    }


def test_the_second_set_is_the_test(tmp_path: Path) -> None:
    signs = {f"{name} {i}": SIGNS[name] for name in ("empty", "fifty") for i in range(20)}
    splits = speed_limits_splits(write_swedish(tmp_path, signs), keep=True)
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [34, 6, 40]
    assert splits.validation.labels.bincount().tolist() == [3, 3]
    assert isinstance(splits.test, SpeedLimits)
    assert {path.parts[-2] for path in splits.test.paths} == {"Set2"}
    assert splits.test.keep


def test_german_classes_rise_after_none(tmp_path: Path) -> None:
    dataset = GtsdbSpeedLimits(write_german(tmp_path))
    assert dataset.classes == ("none", "30", "50", "100")
    assert dataset.labels.tolist() == [0, 2, 3, 1, 2]
    assert dataset.name(4) == "4.jpg"
    assert dataset.truth(1).shape == (0, 4)
    assert dataset.gather([0, 3]).images.sizes == [(12, 16)] * 2


def test_german_truth_is_the_boxes_of_the_label(tmp_path: Path) -> None:
    boxes = "images/1.jpg,50,1,2,3,4\nimages/1.jpg,30,5,6,7,8\nimages/1.jpg,50,9,8,11,10.5\n"
    dataset = GtsdbSpeedLimits(write_german(tmp_path, boxes=boxes + "images/99.jpg,50,1,2,3,4"))
    assert dataset.truth(1).tolist() == [[2, 1, 4, 3], [8, 9, 10.5, 11]]
    assert dataset.truth(0).shape == (0, 4)


def test_german_parts_are_disjoint_and_stratified(tmp_path: Path) -> None:
    write_german(tmp_path, "none 50 " * 20)
    splits = gtsdb_speed_limits_splits(tmp_path)
    parts = [splits.train, splits.validation, splits.test]
    assert [part.labels.bincount().tolist() for part in parts] == [[14, 14], [3, 3], [3, 3]]
    names = [part.name(i) for part in parts for i in range(len(part))]
    assert len(set(names)) == 40
    again = gtsdb_speed_limits_splits(tmp_path).test
    other = gtsdb_speed_limits_splits(tmp_path, seed=1).test
    assert [again.name(i) for i in range(6)] == names[-6:]
    assert [other.name(i) for i in range(6)] != names[-6:]


def test_missing_swedish_data_says_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="parts of SpeedLimits are 'train' and 'test', not 'all'"):
        SpeedLimits(tmp_path, "all")
    with pytest.raises(DataError, match=r"cannot find .*annotations\.txt .*Linköping University"):
        SpeedLimits(tmp_path, "train")
    write_swedish(tmp_path)
    (tmp_path / "Set1" / "blurred.jpg").unlink()  # left out, so that nobody misses it
    assert len(SpeedLimits(tmp_path, "train")) == 6
    (tmp_path / "Set1" / "fifty.jpg").unlink()
    with pytest.raises(DataError, match=r"cannot find .*fifty\.jpg \(1 of 6 .*Linköping"):
        SpeedLimits(tmp_path, "train")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("no colon", r"line 2 of .*annotations\.txt: no name before a colon in 'no colon'; get"),
        (":VISIBLE, 1, 1, 0, 0, A, 50_SIGN;", "line 2 of .*: no name before"),
        ("a.jpg:VISIBLE, 1, 1, 0;", "line 2 of .*: a sign of 4 fields, not 7"),
        ("a.jpg:VISIBLE, 1, b, 0, 0, A, 50_SIGN;", "line 2 of .*: 'b' instead of a number"),
        ("a.jpg:BLURRED, 1, 1, 0, 0, A, 50_SIGN;", "names no image of any class"),
    ],
)
def test_damaged_annotations_are_named(tmp_path: Path, line: str, message: str) -> None:
    write_swedish(tmp_path)
    (tmp_path / "Set1" / "annotations.txt").write_text(f"\n{line}\n")
    with pytest.raises(DataError, match=f"{message}.*Linköping University"):
        SpeedLimits(tmp_path, "train")


def test_missing_german_data_says_where_to_get_it(tmp_path: Path) -> None:
    source = "from the German Traffic Sign Detection Benchmark"
    with pytest.raises(DataError, match=rf"cannot find .*labels\.csv .*{source}"):
        GtsdbSpeedLimits(tmp_path)
    write_german(tmp_path)
    (tmp_path / "images" / "3.jpg").unlink()
    with pytest.raises(DataError, match=rf"cannot find .*3\.jpg \(1 of 5 .*{source}"):
        GtsdbSpeedLimits(tmp_path)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("labels.csv", "", "columns path,label in its first line, but has none"),
        ("labels.csv", "path,class\n", "but has path,class; add"),
        ("labels.csv", "path,label\n", "names no image"),
        ("labels.csv", "path,label\na,fast\n", r"line 2 of .* but says 'a', 'fast'; correct"),
        ("labels.csv", "path,label\na\n", "line 2 of .* but says 'a', ''"),
        ("labels.csv", "path,label\na,50\na,30\n", "line 3 of .* a new path"),
        ("boxes.csv", "path,label,x0,y0\n", "columns path,label,x0,y0,x1,y1"),
        ("boxes.csv", "path,label,x0,y0,x1,y1\na,50,1,2,3,x\n", "line 2 of .* 1, 2, 3, x"),
    ],
)
def test_damaged_tables_are_named(tmp_path: Path, file: str, text: str, message: str) -> None:
    write_german(tmp_path)
    (tmp_path / file).write_text(text)
    with pytest.raises(DataError, match=message):
        GtsdbSpeedLimits(tmp_path)


@pytest.mark.skipif(not REAL.is_dir(), reason="the German road scenes are not here")
def test_the_real_images() -> None:
    dataset = GtsdbSpeedLimits(REAL)
    counts = Counter(dataset.classes[label] for label in dataset.labels)
    expected = {"none": 386, "30": 46, "50": 50, "60": 16, "70": 23, "80": 24, "100": 23, "120": 28}
    assert counts == expected
    assert dataset.classes == tuple(expected)
    assert [len(dataset.truth(i)) > 0 for i in range(596)] == (dataset.labels > 0).tolist()
    assert dataset.gather([0, 595]).images.sizes == [(800, 1360)] * 2
    splits = gtsdb_speed_limits_splits(REAL)
    sizes = [len(part) for part in (splits.train, splits.validation, splits.test)]
    assert sum(sizes) == 596
    assert sizes[0] == pytest.approx(0.7 * 596, abs=8)
