"""A user's images from end to end, but for training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PillowImage

from foveate.datasets import Manifest, Problem, Splits, write_problems
from foveate.errors import DataError
from foveate.images import PooledBatch

OVERVIEW = (10, 12)


def write_image(
    path: Path, value: int = 100, size: tuple[int, int] = (40, 48), mode: str = "RGB"
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    colours = np.full((*size, 3), value, np.uint8)
    PillowImage.fromarray(colours).convert(mode).save(path)


def write_set(folder: Path, images: int = 6) -> Path:
    """Two labels, and a table of them."""
    lines = ["path,label"]
    for i in range(images):
        for value, label in enumerate(["no", "yes"]):
            name = f"{label}{i}.png"
            write_image(folder / name, i + 120 * value + 5)
            lines.append(f"{name},{label}")
    return rewrite(folder, lines)


def rewrite(folder: Path, lines: list[str]) -> Path:
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    return folder / "labels.csv"


def lines_of(table: Path) -> list[str]:
    return table.read_text().splitlines()


def names(splits: Splits) -> dict[str, list[str]]:
    parts = {"train": splits.train, "validation": splits.validation, "test": splits.test}
    return {name: [part.name(i) for i in range(len(part))] for name, part in parts.items()}


def kinds(manifest: Manifest) -> list[tuple[str, str]]:
    return [(problem.kind, problem.where) for problem in manifest.problems]


def test_images_are_divided_opened_and_kept(tmp_path: Path) -> None:
    manifest = Manifest(write_set(tmp_path))
    splits = manifest.load(OVERVIEW)
    assert not manifest.problems
    assert (manifest.sizes, manifest.channels) == ([(40, 48)] * 12, 3)
    assert manifest.dealt == ("validation", "test")
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [8, 2, 2]
    assert splits.train.classes == ("no", "yes")
    for part in (splits.train, splits.validation, splits.test):
        batch = part.gather(range(len(part)))
        assert isinstance(batch.images, PooledBatch)
        colours = batch.images.overviews(OVERVIEW)[:, 0, 5, 5]
        assert ((colours > 100).long() == batch.labels).all()
        said = [part.classes[label] for label in batch.labels.tolist()]
        assert all(part.name(i).startswith(name) for i, name in enumerate(said))


def test_the_same_parts_again_whatever_happens_to_the_files(tmp_path: Path) -> None:
    table = write_set(tmp_path, images=20)
    first = names(Manifest(table, seed=3).load(OVERVIEW))
    assert names(Manifest(table, seed=3).load(OVERVIEW)) == first
    assert names(Manifest(table, seed=4).load(OVERVIEW)) != first
    gone = first["train"][0]
    (tmp_path / gone).unlink()
    rewrite(tmp_path, [lines_of(table)[0], *reversed(lines_of(table)[1:])])
    again = names(Manifest(table, seed=3).load(OVERVIEW))
    for part, found in again.items():
        assert set(found) == set(first[part]) - {gone}


def test_a_split_that_was_written_is_read_again(tmp_path: Path) -> None:
    manifest = Manifest(write_set(tmp_path), seed=1)
    first = names(manifest.load(OVERVIEW))
    manifest.write_split(tmp_path / "split.csv")
    second = Manifest(tmp_path / "split.csv", seed=2)
    assert second.fingerprint is None
    again = names(second.load(OVERVIEW))
    assert again == {part: [str(tmp_path / name) for name in first[part]] for part in first}


def test_damage_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    table = write_set(tmp_path, images=8)
    (tmp_path / "no0.png").unlink()
    (tmp_path / "no1.png").write_text("no image")
    noise = np.random.default_rng(0).integers(0, 256, (90, 90, 3), dtype=np.uint8)
    PillowImage.fromarray(noise).save(tmp_path / "half.png")
    whole = (tmp_path / "half.png").read_bytes()
    (tmp_path / "half.png").write_bytes(whole[: len(whole) // 2])
    rewrite(
        tmp_path, [*lines_of(table), "half.png,yes", "lone.png,rare", "yes0.png,", "yes1.png,no"]
    )
    manifest = Manifest(table)
    splits = manifest.load(OVERVIEW)
    assert kinds(manifest) == [
        ("no label", "line 20: yes0.png"),
        ("two labels", "line 5, line 21: yes1.png"),
        ("one image", "label rare"),
        ("missing file", "line 2: no0.png"),
        ("unreadable file", "line 4: no1.png"),
        ("unreadable file", "line 18: half.png"),
    ]
    assert splits.train.classes == ("no", "yes")
    used = {name for found in names(splits).values() for name in found}
    assert used == {f"no{i}.png" for i in range(2, 8)} | {f"yes{i}.png" for i in (0, *range(2, 8))}

    write_problems(manifest.problems, tmp_path / "problems.csv")
    written = (tmp_path / "problems.csv").read_text().splitlines()
    assert len(written) == 7
    assert written[3] == "label rare,one image,only lone.png has it; two are needed,yes"


def test_a_label_that_can_not_be_learnt_is_left_out(tmp_path: Path) -> None:
    table = write_set(tmp_path)
    for i in range(2):
        (tmp_path / f"broken{i}.png").write_text("no image")
    write_image(tmp_path / "tested.png")
    said = [f"{line},{'test' if '0' in line else 'train'}" for line in lines_of(table)[1:]]
    said += ["broken0.png,x,train", "broken1.png,x,train", "tested.png,y,test", "gone.png,y,test"]
    rewrite(tmp_path, ["path,label,split", *said])
    manifest = Manifest(table)
    splits = manifest.load(OVERVIEW)
    assert splits.train.classes == ("no", "yes")
    assert (
        Problem(
            "nothing to learn from",
            "label x",
            "none of its 2 images is for training and can be read",
        )
        in manifest.problems
    )
    assert "label y" in [problem.where for problem in manifest.problems]
    assert "tested.png" not in names(splits)["test"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["path,label", "a.png,x", "b.png,y"], r"none of the 2 images .* label x: one image"),
        (["path,label", "gone.png,x", "c.png,x"], r"line 2: gone.png: missing file.*paths start"),
        (["path,label", "a.png,x", "b.png,x"], "two labels or more .* the labels x can be used"),
        (
            ["path,label,split", "a.png,x,test", "b.png,x,test"],
            "the labels none can be used, with images: 0 for train, 0 for validation, 0 for test",
        ),
    ],
)
def test_too_little_to_train_on_says_what_is_missing(
    tmp_path: Path, lines: list[str], message: str
) -> None:
    write_image(tmp_path / "a.png")
    write_image(tmp_path / "b.png")
    with pytest.raises(DataError, match=message):
        Manifest(rewrite(tmp_path, lines)).load(OVERVIEW)


def test_a_table_for_evaluation_has_the_classes_of_the_model(tmp_path: Path) -> None:
    write_image(tmp_path / "a.png")
    write_image(tmp_path / "b.png")
    table = rewrite(tmp_path, ["path,label,split", "a.png,yes,test", "b.png,maybe,test"])
    manifest = Manifest(table, classes=("no", "yes"))
    splits = manifest.load(OVERVIEW)
    assert kinds(manifest) == [("unknown label", "label maybe")]
    assert splits.test.classes == ("no", "yes")
    assert splits.test.labels.tolist() == [1]
    assert len(splits.train) == 0


@pytest.mark.parametrize(("modes", "channels"), [("LL", 1), (["L", "RGB"], 3)])
def test_grey_stays_grey_only_if_all_of_it_is(
    tmp_path: Path, modes: list[str], channels: int
) -> None:
    table = write_set(tmp_path)
    for i in range(6):
        write_image(tmp_path / f"no{i}.png", mode=modes[0])
        write_image(tmp_path / f"yes{i}.png", mode=modes[1])
    manifest = Manifest(table)
    splits = manifest.load(OVERVIEW)
    assert manifest.channels == splits.train.channels == channels
    assert splits.train.gather([0, 1]).images.overviews(OVERVIEW).shape == (2, channels, *OVERVIEW)
    assert Manifest(table, channels=3).channels == 3


def test_numbers_come_in_their_order(tmp_path: Path) -> None:
    lines = ["path,label"]
    for label in ("none", "100", "50"):
        for i in range(3):
            write_image(tmp_path / f"{label}-{i}.png")
            lines.append(f"{label}-{i}.png,{label}")
    assert Manifest(rewrite(tmp_path, lines)).load(OVERVIEW).train.classes == ("50", "100", "none")


def test_boxes_are_the_truth_and_bad_ones_are_worth_a_word(tmp_path: Path) -> None:
    table = write_set(tmp_path)
    boxes = tmp_path / "boxes.csv"
    boxes.write_text(
        "path,label,x0,y0,x1,y1\nyes0.png,yes,1,2,3,4\nyes0.png,no,9,9,9,9\nother.png,yes,1,1,1,1\n"
    )
    splits = Manifest(table).load(OVERVIEW)
    for part in (splits.train, splits.validation, splits.test):
        for i in range(len(part)):
            expected = [[2.0, 1.0, 4.0, 3.0]] if part.name(i) == "yes0.png" else []
            assert part.truth(i).tolist() == expected
    boxes.write_text("path,label,x0,y0,x1,y1\nyes0.png,yes,1,2,three,4\n")
    manifest = Manifest(table)
    manifest.load(OVERVIEW)
    assert kinds(manifest) == [("boxes", "boxes.csv")]
    assert not manifest.problems[0].left_out


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    manifest = Manifest(write_set(tmp_path), progress=lambda *what: told.append(what))
    manifest.load(OVERVIEW, progress=lambda *what: told.append(what))
    assert told == [(what, i, 12) for what in ("opening", "reading") for i in range(1, 13)]
