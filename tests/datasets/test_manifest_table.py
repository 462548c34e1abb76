from __future__ import annotations

from pathlib import Path

import pytest

from foveate.datasets import read_table
from foveate.datasets.table import Row, read_csv
from foveate.errors import DataError


def table(folder: Path, text: str, encoding: str = "utf-8") -> Path:
    path = folder / "labels.csv"
    path.write_text(text, encoding=encoding)
    return path


def kinds(path: Path) -> list[tuple[str, str]]:
    return [(problem.kind, problem.where) for problem in read_csv(path).problems]


def test_rows_say_file_label_part_and_group(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "path,label,split,group,note\n"
        "a/b.png, cat ,Train,p1,x\n"
        f"{tmp_path}/c.png,dog,val,,\n"
        "s3://bucket/d.tif,dog,test,p2,\n",
    )
    assert read_csv(path).rows == (
        Row("line 2", "a/b.png", str(tmp_path / "a/b.png"), "cat", "train", "p1"),
        Row("line 3", f"{tmp_path}/c.png", str(tmp_path / "c.png"), "dog", "validation"),
        Row("line 4", "s3://bucket/d.tif", "s3://bucket/d.tif", "dog", "test", "p2"),
    )
    assert not read_csv(path).problems


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("label;path\nx;a,1.png\ny;b.png\n", "utf-8"),
        ("path\tlabel\na,1.png\tx\nb.png\ty\n", "utf-8"),
        ('Path,LABEL\r\n"a,1.png",x\r\n\r\nb.png,y', "utf-8-sig"),
    ],
    ids=["semicolons", "tabs", "what spreadsheets write"],
)
def test_tables_as_programs_write_them(tmp_path: Path, text: str, encoding: str) -> None:
    rows = read_csv(table(tmp_path, text, encoding)).rows
    assert [(row.name, row.label) for row in rows] == [("a,1.png", "x"), ("b.png", "y")]


def test_what_can_not_be_used_is_named_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        "path,label,split\n"
        "good.png,x,train\n"
        ",x,train\n"
        "empty.png,,train\n"
        "short.png\n"
        "odd.png,x,holdout\n"
        "unsaid.png,x,\n"
        "a.png,b.png,x,train\n"
        "./good.png,x,train\n"
        "both.png,x,train\n"
        "both.png,y,test\n"
        "also good.png,y,test\n",
    )
    read = read_csv(path)
    assert [row.name for row in read.rows] == ["good.png", "also good.png"]
    assert kinds(path) == [
        ("no path", "line 3"),
        ("no label", "line 4: empty.png"),
        ("no label", "line 5: short.png"),
        ("unknown split", "line 6: odd.png"),
        ("too many fields", "line 8"),
        ("named twice", "line 9: ./good.png"),
        ("no split", "line 7: unsaid.png"),
        ("two labels", "line 10, line 11: both.png"),
    ]
    assert all(problem.left_out for problem in read.problems)
    assert "'x' and 'y'" in str(read.problems[-1])


def test_the_fingerprint_is_that_of_the_rows_and_not_of_their_place(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    text = "path,label\na.png,x\nb.png,y\n"
    first = read_csv(table(tmp_path / "here", text)).fingerprint
    assert (
        first == read_csv(table(tmp_path / "there", "path,label\nb.png,y\na.png,x\n")).fingerprint
    )
    assert first != read_csv(table(tmp_path / "there", text + "c.png,y\n")).fingerprint
    assert first != read_csv(table(tmp_path / "there", text.replace("x", "y"))).fingerprint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"file,class\na.png,x\n", "must have the columns path,label .* but has file,class; add"),
        (b"", "must have the columns path,label in its first line, but has none"),
        (b"path,label\n", "names no image that can be used; add lines of path,label"),
        (b"path,label\na.png,\n", r"can be used \(the first problem: line 2: a.png: no label"),
        (b"\x89PNG\r\n\x1a\n\xff\xfe", "is no CSV file, as it is not text in UTF-8"),
    ],
)
def test_what_is_no_table_says_what_to_do(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "labels.csv").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_table(tmp_path / "labels.csv")


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"cannot read .*labels\.csv: No such file .*check the path"
    ):
        read_table(tmp_path / "labels.csv")


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def test_class_folders(tmp_path: Path) -> None:
    touch(tmp_path, "cat/2.JPG", "cat/deep/1.png", "dog/a.svs")
    touch(tmp_path, "dog/notes.txt", "dog/.hidden.png", ".cache/a.png", "stray.png", "cat/.x/b.png")
    read = read_table(tmp_path)
    assert [(row.name, row.label, row.part) for row in read.rows] == [
        ("cat/2.JPG", "cat", ""),
        ("cat/deep/1.png", "cat", ""),
        ("dog/a.svs", "dog", ""),
    ]
    assert read.rows[0].path == str(tmp_path / "cat/2.JPG")


def test_class_folders_in_the_parts(tmp_path: Path) -> None:
    touch(tmp_path, "train/cat/1.png", "val/dog/2.png", "test/cat/3.png")
    assert [(row.label, row.part) for row in read_table(tmp_path).rows] == [
        ("cat", "test"),
        ("cat", "train"),
        ("dog", "validation"),
    ]


def test_a_folder_with_a_table_is_the_table(tmp_path: Path) -> None:
    touch(tmp_path, "images/1.png")
    table(tmp_path, "path,label\nimages/1.png,cat\n")
    assert [row.label for row in read_table(tmp_path).rows] == ["cat"]


def test_a_folder_without_classes_says_what_to_do(tmp_path: Path) -> None:
    touch(tmp_path, "1.png", "notes/a.txt")
    with pytest.raises(DataError, match="no class folders with images in them; lay them out as"):
        read_table(tmp_path)
