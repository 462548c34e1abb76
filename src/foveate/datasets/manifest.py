"""A user's own images: found in a CSV file or class folders, divided, checked and loaded.

What can not be used is left out and named in `Manifest.problems`, and the rest goes on. Labels with
one image are left out, since nothing learnt from one image can be tested; so are labels of which no
image for training can be read.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import torch

from foveate.datasets.boxes import read_boxes
from foveate.datasets.class_folder import read_folder
from foveate.datasets.classes import known_labels, learnt_classes, repeated_labels
from foveate.datasets.dataset import Splits, Subset
from foveate.datasets.files import Kept, Progress, decoded_bytes, open_files, read_files
from foveate.datasets.manifest_dataset import ManifestDataset, TrainingPart
from foveate.datasets.parts import divide, divided_groups, unnamed_parts
from foveate.datasets.problem import Problem
from foveate.datasets.room import usual_room
from foveate.datasets.table import PARTS, Table, read_csv
from foveate.errors import DataError
from foveate.images import Image
from foveate.types import Size


def read_table(source: str | PathLike[str]) -> Table:
    """Read a user's labels, from a CSV file or from class folders; no image is opened.

    Args:
        source: a CSV file (see `read_csv`), a folder with a `labels.csv`, or a folder of classes
            (see `read_folder`).

    Raises:
        DataError: where it is neither, or names no image.
    """
    path = Path(source)
    if path.is_dir() and (path / "labels.csv").is_file():
        path = path / "labels.csv"
    table = read_folder(path) if path.is_dir() else read_csv(path)
    if not table.rows:
        first = f" (the first problem: {table.problems[0]})" if table.problems else ""
        raise DataError(f"{path} names no image that can be used{first}; add lines of path,label")
    return table


class Manifest:
    """A user's images, found and opened; `load` makes a data set of them.

    Args:
        source: see `read_table`.
        seed: decides which image goes where, as far as the table does not say (see `divide`).
        classes: the labels of interest, in order; None for all that can be trained on.
        channels: 3 for colour or 1 for grey; None is colour, or grey if all images are.
        progress: is told how far the opening of the files is.

    Attributes:
        labels: those of all images, whether they could be opened or not.
        rows: the images that could be opened.
        problems: all that is wrong with others.
        dealt: the parts that the table does not name, and that images were dealt out to.
        fingerprint: changes when the parts could; None where the table names every part itself.

    Raises:
        DataError: where no image is left.
    """

    def __init__(
        self,
        source: str | PathLike[str],
        seed: int = 0,
        classes: Sequence[str] | None = None,
        channels: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        table = read_table(source)
        self.source = table.source
        self.problems: list[Problem] = list(table.problems)
        self.wanted = None if classes is None else tuple(classes)
        parts = divide(table.rows, seed)
        self.dealt = unnamed_parts(table.rows)
        self.fingerprint = table.fingerprint if self.dealt else None
        self.problems += divided_groups(table.rows, parts)
        if classes is None:
            labels, unused = repeated_labels(table.rows)
        else:
            labels, unused = known_labels(table.rows, classes)
        self.problems += unused

        chosen = [i for i, row in enumerate(table.rows) if row.label in labels]
        opened = open_files([table.rows[i] for i in chosen], channels, progress)
        self.problems += [problem for problem in opened if isinstance(problem, Problem)]
        pairs = zip(chosen, opened, strict=True)
        good = [(i, image) for i, image in pairs if isinstance(image, Image)]
        if not good:
            raise DataError(
                f"none of the {len(table.rows)} images that {self.source} names can be used (the "
                f"first problem: {self.problems[0]}); paths start at the folder of the CSV file"
            )
        self.labels = [table.rows[i].label for i in chosen]
        self.rows = [table.rows[i] for i, _ in good]
        self.parts = [parts[i] for i, _ in good]
        self.images = [image for _, image in good]
        self.dataset: ManifestDataset | None = None
        self.members: dict[str, list[int]] = {}

    @property
    def sizes(self) -> list[Size]:
        """The (height, width) of each image."""
        return [image.size for image in self.images]

    @property
    def channels(self) -> int:
        """Channels of the images."""
        return self.images[0].channels

    @property
    def bytes(self) -> int:
        """What the images take once they are decoded."""
        return decoded_bytes(self.images)

    def load(
        self,
        overview_size: Size,
        memory: int | None = None,
        strict: bool = False,
        progress: Progress | None = None,
    ) -> Splits:
        """Read the images, keep what fits into memory, and leave out what is damaged.

        Args:
            overview_size: height and width of the overviews that will be asked for.
            memory: how many bytes of decoded images may be kept (see `read_files`); None for
                `usual_room()`.
            strict: whether a file that fails later, in training, ends it; otherwise it is left out
                from then on.
            progress: is told how far the reading is.

        Raises:
            DataError: where too few images are left to train on.
        """
        room = usual_room() if memory is None else memory
        kept, wrong = read_files(self.rows, self.images, overview_size, room, progress)
        self.problems += [problem for problem in wrong if problem is not None]
        good = [i for i, problem in enumerate(wrong) if problem is None]
        classes = self.wanted or self._learnt(good)
        number_of = {name: number for number, name in enumerate(classes)}
        labels = torch.tensor([number_of.get(row.label, -1) for row in self.rows])
        self.members = {
            part: [i for i in good if self.parts[i] == part and labels[i] >= 0] for part in PARTS
        }
        if self.wanted is None:
            self._check_enough(classes)
        self.dataset = self._dataset(labels, classes, kept, strict)
        return Splits(
            TrainingPart(self.dataset, self.members["train"]),
            Subset(self.dataset, self.members["validation"]),
            Subset(self.dataset, self.members["test"]),
            spare=kept.spare,
        )

    def write_split(self, path: Path) -> None:
        """Write which image is in which part, as a table that can be read again."""
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["path", "label", "split", "group"])
            for part in PARTS:
                for row in (self.rows[i] for i in self.members[part]):
                    writer.writerow([row.path, row.label, part, row.group])

    def failures(self) -> list[str]:
        """The files that failed after they had been loaded."""
        return [] if self.dataset is None else self.dataset.failures()

    def _learnt(self, good: Sequence[int]) -> tuple[str, ...]:
        learnt = [self.rows[i].label for i in good if self.parts[i] == "train"]
        classes, problems = learnt_classes(self.labels, learnt)
        self.problems += problems
        return classes

    def _check_enough(self, classes: Sequence[str]) -> None:
        count = {part: len(self.members[part]) for part in PARTS}
        if len(classes) < 2 or not all(count.values()):
            left = ", ".join(f"{number} for {part}" for part, number in count.items())
            raise DataError(
                f"to train takes two labels or more and images in each part, but of {self.source} "
                f"the labels {', '.join(classes) or 'none'} can be used, with images: {left}; add "
                f"images, or mend the {len(self.problems)} problems"
            )

    def _dataset(
        self, labels: torch.Tensor, classes: tuple[str, ...], kept: Kept, strict: bool
    ) -> ManifestDataset:
        folder = self.source if self.source.is_dir() else self.source.parent
        boxes, problems = read_boxes(folder / "boxes.csv", self.rows)
        self.problems += problems
        names = [row.name for row in self.rows]
        return ManifestDataset(names, self.images, labels, classes, kept, boxes, strict)
