"""`foveate convert`: a large flat image as a tiled pyramid, of which any part is read fast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from foveate.cli.console import app, console
from foveate.errors import InputError


@app.command("convert")
def convert_command(
    source: Annotated[Path, typer.Argument(metavar="IN", help="an image of any size")],
    target: Annotated[Path, typer.Argument(metavar="OUT.tif", help="the file to make")],
    tile: Annotated[int, typer.Option(help="side of the tiles, a multiple of 16")] = 512,
    quality: Annotated[int, typer.Option(help="JPEG quality, from 1 to 100")] = 90,
    force: Annotated[bool, typer.Option("--force", help="replace a file that exists")] = False,
) -> None:
    """Make a tiled pyramid of a large flat image.

    JPEG, PNG and stripped TIFF files must be decoded as a whole for every
    look at a part of them. The file this makes is read in parts.
    """
    from foveate.images import convert_image

    if target.suffix.lower() not in (".tif", ".tiff"):
        raise InputError(
            f"a tiled pyramid is a TIFF file, but {target} has another ending; use .tif"
        )
    if target.exists() and not force:
        raise InputError(f"{target} exists; add --force to replace it, or choose another name")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("converting", total=1.0)
        made = convert_image(
            source,
            target,
            tile=tile,
            quality=quality,
            progress=lambda share: progress.update(task, completed=share),
        )
    before, after = source.stat().st_size / 2**20, made.stat().st_size / 2**20
    console.print(f"{escape(str(made))}: {after:.1f} MB, from {before:.1f} MB")
