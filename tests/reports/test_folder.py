from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from foveate.errors import InputError
from foveate.reports import PredictionFolder, Record, fingerprint

CLASSES = ("cat", "dog")
ABOUT: dict[str, Any] = {"checkpoint": "a.ckpt", "sha256": "123", "draws": 0}


def open_folder(path: Path, **about: Any) -> PredictionFolder:
    return PredictionFolder(path / "out", CLASSES, ABOUT | about)


def record(path: str) -> Record:
    return Record(path, (10, 20), {"cat": 0.25, "dog": 0.75})


def table(folder: PredictionFolder) -> list[list[str]]:
    with folder.table.open(newline="") as file:
        return list(csv.reader(file))


def test_a_table_and_a_record_for_each_image(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    assert folder.missing(["a/x.png", "b/x.png"]) == ["a/x.png", "b/x.png"]
    for path in ("a/x.png", "b/x.png"):
        folder.add(record(path))
    assert table(folder) == [
        ["path", "label", "cat", "dog"],
        ["a/x.png", "dog", "0.25", "0.75"],
        ["b/x.png", "dog", "0.25", "0.75"],
    ]
    files = [folder.file(path, ".json") for path in ("a/x.png", "b/x.png")]
    assert files[0] != files[1]
    assert [json.loads(file.read_text())["path"] for file in files] == ["a/x.png", "b/x.png"]


def test_files_of_one_name_never_meet(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    paths = ["x.png", "x.tif", "a/x.png", "s3://one/x.png", "s3://two/x.png", "x .png", "x_.png"]
    assert len({folder.file(path, ".json") for path in paths}) == len(paths)


@pytest.mark.parametrize(
    "name", ['a, "b".png', "two\nlines.png", "[red]x.png", "näme.png", "\udcff"]
)
def test_odd_names_come_back(tmp_path: Path, name: str) -> None:
    folder = open_folder(tmp_path)
    folder.missing([name])
    folder.add(record(name))
    assert open_folder(tmp_path).missing([name, "other.png"]) == ["other.png"]
    assert folder.file(name, ".json").parent == folder.folder / "predictions"


def test_a_later_run_goes_on(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    folder.missing(["a", "b"])
    folder.add(record("a"))
    again = open_folder(tmp_path, checkpoint="moved.ckpt")
    assert again.missing(["a", "b", "c", "b"]) == ["b", "c"]
    again.add(record("c"))
    assert [line[0] for line in table(again)] == ["path", "a", "c"]


@pytest.mark.parametrize("cut", ["b,do", "b,dog,0.25,0.7", '"b', "b,dog\n", "b,dog,0.25,0.75,9\n"])
def test_a_line_that_is_not_whole_is_dropped(tmp_path: Path, cut: str) -> None:
    folder = open_folder(tmp_path)
    folder.missing(["a", "b"])
    folder.add(record("a"))
    folder.add(record("b"))
    whole = folder.table.read_text()
    folder.table.write_text(whole[: whole.rindex("b,")] + cut)
    again = open_folder(tmp_path)
    assert again.missing(["a", "b"]) == ["b"]
    again.add(record("b"))
    assert table(again)[1:] == [["a", "dog", "0.25", "0.75"], ["b", "dog", "0.25", "0.75"]]


def test_a_line_without_its_files_is_done_anew(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    folder.missing(["a", "b", "c"])
    for path in ("a", "b", "c"):
        folder.add(record(path))
    folder.file("a", ".json").unlink()
    folder.file("b", ".jpg").write_text("a picture")
    again = open_folder(tmp_path)
    assert again.missing(["a"]) == ["a"]
    # What is not asked for now keeps its line, whatever files it has.
    assert again.missing(["b"], [".json", ".jpg"]) == []
    assert [line[0] for line in table(again)] == ["path", "b", "c"]


def test_failures_are_those_of_the_last_run(tmp_path: Path) -> None:
    folder = open_folder(tmp_path)
    folder.fail("a", "it is damaged")
    folder.fail("b", "it is missing, too")
    lines = list(csv.reader((folder.folder / "failed.csv").read_text().splitlines()))
    assert lines == [["path", "reason"], ["a", "it is damaged"], ["b", "it is missing, too"]]
    assert folder.failed == {"a": "it is damaged", "b": "it is missing, too"}
    open_folder(tmp_path)
    assert not (folder.folder / "failed.csv").exists()


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({"sha256": "456"}, r"holds predictions of a.ckpt with sha256 123, and those of a.ckpt"),
        ({"draws": 3}, r"with draws 0, and those of a.ckpt with draws 3 do not belong with them"),
    ],
)
def test_another_checkpoint_needs_another_folder(
    tmp_path: Path, about: dict[str, Any], message: str
) -> None:
    folder = open_folder(tmp_path)
    folder.missing(["a"])
    folder.add(record("a"))
    with pytest.raises(InputError, match=message):
        open_folder(tmp_path, **about)


def test_a_folder_without_predictions_is_begun_anew(tmp_path: Path) -> None:
    open_folder(tmp_path, draws=7).missing(["a"])
    assert open_folder(tmp_path).missing(["a"]) == ["a"]


def test_what_foveate_did_not_write_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "predictions.csv").write_text("mine")
    with pytest.raises(InputError, match="did not write; choose another --out"):
        open_folder(tmp_path)
    assert (tmp_path / "out" / "predictions.csv").read_text() == "mine"
    (tmp_path / "out" / "about.json").write_text("{")
    with pytest.raises(InputError, match=r"its about.json is damaged"):
        open_folder(tmp_path)


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    for name, content in [("a", b"x"), ("b", b"x"), ("c", b"y")]:
        (tmp_path / name).write_bytes(content)
    a, b, c = (fingerprint(tmp_path / name) for name in "abc")
    assert a == b != c
