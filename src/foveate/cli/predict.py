"""`foveate predict`: what a trained model makes of image files, and where it looked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from foveate import __version__
from foveate.cli.console import app, console
from foveate.errors import DataError, FoveateError, InputError

if TYPE_CHECKING:
    from foveate.reports import PredictionFolder
    from foveate.training import Classifier, Predicted

LISTED = 20
"""The most failures listed on the screen; failed.csv has all."""


@app.command("predict")
def predict_command(
    checkpoint: Annotated[Path, typer.Argument(help="a best.ckpt that `foveate train` wrote")],
    images: Annotated[
        list[str],
        typer.Argument(
            help="image files or addresses, folders of them, or CSV files with the column path"
        ),
    ],
    out: Annotated[Path, typer.Option(help="folder to leave the predictions in")],
    pictures: Annotated[bool, typer.Option(help="draw attention and patches of each image")] = True,
    geojson: Annotated[
        bool,
        typer.Option(
            "--geojson", help="write patches and attention for QuPath, and maps of GeoTIFF files"
        ),
    ] = False,
    draws: Annotated[
        int, typer.Option(help="random draws to average over; 0 draws without chance")
    ] = 0,
    batch_size: Annotated[int, typer.Option(help="images that are looked at together")] = 1,
    workers: Annotated[int, typer.Option(help="processes that open images ahead")] = 0,
    strict: Annotated[
        bool, typer.Option("--strict", help="end at the first image that fails")
    ] = False,
) -> None:
    """Classify images and say where the model looked.

    Leaves predictions.csv and, for each image, a JSON file and a picture in
    one folder. Interrupted, the same command goes on where it stopped. An
    image that can not be read is named and left out.
    """
    from foveate.cli.inputs import find_images
    from foveate.reports.folder import FILES
    from foveate.training import Failed, load_classifier, predict_images

    classifier = load_classifier(checkpoint)
    attends = classifier.settings.method != "cnn"
    if geojson and not attends:
        raise InputError("a cnn model does not attend to places; leave --geojson away")
    endings = [".json", *([".jpg"] if pictures and attends else []), *([".geojson"] * geojson)]
    paths = find_images(images, leave_out=out / FILES)
    with _writing(out):
        folder = _open_folder(out, checkpoint, classifier, draws)
        todo = folder.missing(paths, endings)
        if len(todo) < len(paths):
            console.print(f"{len(paths) - len(todo)} of {len(paths)} images are done already")
        stream = predict_images(
            classifier, todo, batch_size=batch_size, workers=workers, draws=draws
        )
        with _progress() as progress:
            task = progress.add_task("predicting", total=len(todo), failed="")
            for seen in stream:
                error = (
                    seen.error
                    if isinstance(seen, Failed)
                    else _write(folder, seen, classifier, endings)
                )
                if error is not None:
                    folder.fail(seen.path, str(error))
                    if strict:
                        raise error
                    progress.update(task, failed=f"{len(folder.failed)} failed")
                progress.advance(task)
    _finish(folder, len(paths))


def _open_folder(
    out: Path, checkpoint: Path, classifier: Classifier, draws: int
) -> PredictionFolder:
    from foveate.reports import PredictionFolder, fingerprint

    about = {
        "checkpoint": str(checkpoint),
        "sha256": fingerprint(checkpoint),
        "classes": list(classifier.classes),
        "draws": draws,
        "foveate": __version__,
    }
    return PredictionFolder(out, classifier.classes, about)


def _write(
    folder: PredictionFolder, seen: Predicted, classifier: Classifier, endings: list[str]
) -> FoveateError | None:
    """Write all that is asked for of an image; gives the error, if damage shows only now."""
    try:
        _write_files(folder, seen, classifier, endings)
    except FoveateError as error:
        return error
    return None


def _write_files(
    folder: PredictionFolder, seen: Predicted, classifier: Classifier, endings: list[str]
) -> None:
    """Write all files of an image, and at last its line."""
    from foveate.images import as_batch
    from foveate.reports import draw_attention, geojson_of, record_of, write_heatmap

    border = getattr(classifier.model, "border", (0.0, 0.0))
    size = seen.image.size
    record = record_of(seen.path, size, seen.out, 0, classifier.classes, border)
    if ".jpg" in endings:
        likely = record.probabilities[record.label]
        title = f"{Path(seen.path).name}: {record.label}, {likely:.1%}"
        picture = folder.file(seen.path, ".jpg")
        draw_attention(as_batch([seen.image]), seen.out, 0, picture, title, border=border)
    if ".geojson" in endings:
        where = seen.image.georeference
        if where is not None:
            write_heatmap(record, where, folder.file(seen.path, ".attention.tif"))
            on_map = json.dumps(geojson_of(record, where=where))
            folder.file(seen.path, ".map.geojson").write_text(on_map)
        folder.file(seen.path, ".geojson").write_text(json.dumps(geojson_of(record)))
    folder.add(record)


@contextmanager
def _writing(out: Path) -> Iterator[None]:
    """Say what went wrong with the results; what goes wrong with images is caught before."""
    try:
        yield
    except OSError as error:
        raise InputError(
            f"cannot write to {out}: {error.strerror or error}; mend it or choose another --out, "
            "and the same command goes on"
        ) from error
    except KeyboardInterrupt:
        console.print(f"stopped; the same command goes on where it was, in {escape(str(out))}")
        raise typer.Exit(130) from None


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("[red]{task.fields[failed]}"),
        console=console,
    )


def _finish(folder: PredictionFolder, asked: int) -> None:
    """Say where everything is, and what is missing."""
    failed = folder.failed
    if failed:
        table = Table("image", "what is wrong", title=f"{len(failed)} of {asked} images failed")
        for path, reason in list(failed.items())[:LISTED]:
            table.add_row(escape(path), escape(reason))
        if len(failed) > LISTED:
            table.add_row("…", f"and {len(failed) - LISTED} more")
        console.print(table)
    console.print(f"predictions {escape(str(folder.table))}")
    if failed:
        console.print(f"failures    {escape(str(folder.folder / 'failed.csv'))}")
    if len(failed) == asked:
        raise DataError(f"none of {asked} images could be predicted; failed.csv says why")
