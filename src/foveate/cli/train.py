"""`foveate train`: train a model, test it, and draw where it looks."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from foveate.cli.console import app, console, parse_size, show_progress
from foveate.cli.names import DatasetName, Method, Recipe, find_dataset
from foveate.cli.own_data import OwnData, find_again, find_own_data

if TYPE_CHECKING:
    from foveate.datasets import Splits
    from foveate.training import Run, Settings

PICTURES = 6
ANYTIME = {
    "root",
    "strict",
    "memory",
    "out",
    "resume",
    "patience",
    "accelerator",
    "devices",
    "nodes",
    "strategy",
    "precision",
    "workers",
    "compile_mode",
    "readers",
}
"""What may differ between a run and its continuation."""


@app.command("train")
def train_command(
    context: typer.Context,
    dataset: Annotated[
        str,
        typer.Argument(
            help=f"{', '.join(DatasetName)}; or your own: a CSV file with the columns path,label "
            "(and perhaps split,group), or a folder with one subfolder for each class"
        ),
    ] = DatasetName.digits.value,
    root: Annotated[Path | None, typer.Option(help="the folder the data set lies in")] = None,
    method: Annotated[
        Method, typer.Option(help="attention sampling, deep MIL, a CNN, or blind sampling")
    ] = Method.ats,
    recipe: Annotated[
        Recipe, typer.Option(help="ours (AdamW, one cycle, contrast prior) or the paper's (Adam)")
    ] = Recipe.default,
    out: Annotated[
        Path | None,
        typer.Option(help="folder to leave the run in", show_default="runs/DATASET-METHOD-TIME"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="go on from the last checkpoint in --out")
    ] = False,
    n_patches: Annotated[int | None, typer.Option(help="patches drawn from an image")] = None,
    patch_size: Annotated[str | None, typer.Option(help="their size, such as 50x50")] = None,
    overview_size: Annotated[str | None, typer.Option(help="size of the overview")] = None,
    attention: Annotated[
        str | None, typer.Option(help="network: conv, deep, pooled or coarse")
    ] = None,
    feature: Annotated[
        str | None,
        typer.Option(help="network: conv, deep, small, lenet, ilse, resnet8, resnet8-max"),
    ] = None,
    sampler: Annotated[
        str | None,
        typer.Option(help="systematic, unordered, sequential, replacement or topk"),
    ] = None,
    scale: Annotated[float | None, typer.Option(help="of the images, for the CNN")] = None,
    gated: Annotated[bool | None, typer.Option(help="deep MIL with gated attention")] = None,
    prior: Annotated[bool | None, typer.Option(help="start the attention at contrast")] = None,
    curiosity: Annotated[
        float | None, typer.Option(help="share of the attention that goes to contrast in training")
    ] = None,
    augment: Annotated[bool | None, typer.Option(help="vary brightness and position")] = None,
    any_way_up: Annotated[
        bool | None, typer.Option(help="with --augment, mirror and turn images too")
    ] = None,
    tint: Annotated[
        float | None, typer.Option(help="with --augment, how far colours vary apart")
    ] = None,
    jitter: Annotated[
        float | None, typer.Option(help="how far patches are turned, scaled and slanted")
    ] = None,
    read_ahead: Annotated[
        bool | None,
        typer.Option(
            help="read patches from files while steps before theirs are trained on",
            show_default="if a GPU trains, or files are remote",
        ),
    ] = None,
    steps_ahead: Annotated[
        int | None,
        typer.Option(
            help="how many steps before theirs: more keep more cores busy",
            show_default="3",
        ),
    ] = None,
    painted: Annotated[
        int | None,
        typer.Option(help="photographs with painted signs to add, for the two of speed limits"),
    ] = None,
    class_weights: Annotated[bool | None, typer.Option(help="rare classes count more")] = None,
    label_smoothing: Annotated[
        float | None, typer.Option(help="share of a label that is spread over all classes")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="passes over the training images")] = None,
    passes: Annotated[int | None, typer.Option(help="through the images in an epoch")] = None,
    batch_size: Annotated[int | None, typer.Option(help="images in a step")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="the largest")] = None,
    entropy: Annotated[
        float | None, typer.Option(help="how much entropy of the attention is worth")
    ] = None,
    guidance: Annotated[
        float | None, typer.Option(help="how much attention on painted signs is worth")
    ] = None,
    fold: Annotated[int | None, typer.Option(help="test fold, for cross-validation")] = None,
    seed: Annotated[int, typer.Option(help="decides data, weights, order and draws")] = 0,
    patience: Annotated[
        int | None, typer.Option(help="stop after as many epochs without improvement")
    ] = None,
    accelerator: Annotated[str, typer.Option(help="cpu, gpu or auto")] = "auto",
    devices: Annotated[str, typer.Option(help="how many")] = "auto",
    nodes: Annotated[int, typer.Option(help="machines")] = 1,
    strategy: Annotated[str, typer.Option(help="Lightning's name, such as ddp")] = "auto",
    precision: Annotated[str, typer.Option(help="auto, 32-true or bf16-mixed")] = "auto",
    workers: Annotated[int, typer.Option(help="processes that read images")] = 0,
    memory: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="GiB of your own images that are kept decoded in memory",
            show_default="a quarter of it",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="end if anything is wrong with your own images")
    ] = False,
    compile_mode: Annotated[
        str,
        typer.Option(
            "--compile",
            help="auto replays recorded steps on a GPU; full also fuses layers; off does neither",
        ),
    ] = "auto",
    readers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="processes that read patches of files beside the training",
            show_default="one on each core if a GPU trains, else none",
        ),
    ] = None,
) -> None:
    """Train a model, test it, and draw where it looks.

    Without arguments it learns, in a few minutes, which digit is the most
    frequent among a few small ones in megapixel images.

    Of your own images it checks every file first, and chooses overview,
    patches and networks from their sizes; the run leaves out what can not
    be read, and says so.
    """
    from foveate.datasets import usual_room
    from foveate.training import Hardware, Settings, check_unused, settings_for, train

    hardware = Hardware(
        accelerator, devices, nodes, strategy, precision, workers, compile_mode, readers
    )
    room = usual_room(hardware.processes) if memory is None else int(memory * 2**30)
    if resume:
        folder = _run_to_resume(context, out)
        settings = Settings.load(folder / "settings.json")
        if root is not None:
            settings = dataclasses.replace(settings, root=str(root))
        own = find_again(settings, room, strict) if settings.dataset == "manifest" else None
        console.print(_describe(settings))
        splits = _painted(settings) if own is None else own.splits
        with _stoppable(folder):
            run = train(settings, folder, hardware, resume=True, patience=patience, splits=splits)
        _finish(run, own)
        return
    overrides = {
        "method": method.value,
        "seed": seed,
        "fold": fold,
        "n_patches": n_patches,
        "patch_size": parse_size("--patch-size", patch_size),
        "overview_size": parse_size("--overview-size", overview_size),
        "attention": attention,
        "feature": feature,
        "sampler": sampler,
        "scale": scale,
        "gated": gated,
        "prior": prior,
        "curiosity": curiosity,
        "augment": augment,
        "any_way_up": any_way_up,
        "tint": tint,
        "jitter": jitter,
        "read_ahead": read_ahead,
        "steps_ahead": steps_ahead,
        "painted": painted,
        "class_weights": class_weights,
        "label_smoothing": label_smoothing,
        "epochs": epochs,
        "passes": passes,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "entropy": entropy,
        "guidance": guidance,
    }
    chosen = find_dataset(dataset)
    name = chosen.value if isinstance(chosen, DatasetName) else chosen.absolute().stem
    folder = out or Path("runs") / f"{name}-{method}-{datetime.now():%Y%m%d-%H%M%S}"
    check_unused(folder)  # to say so after a look at all images is too late
    if isinstance(chosen, DatasetName):
        where = None if root is None else str(root)
        settings = settings_for(chosen.value, recipe.value, root=where, **overrides)
        console.print(_describe(settings))
        splits = _painted(settings)
        with _stoppable(folder):
            run = train(settings, folder, hardware, patience=patience, splits=splits)
        _finish(run)
        return
    if root is not None:
        raise typer.BadParameter(f"{dataset} says where its images are; leave --root away")
    own = find_own_data(chosen, recipe.value, overrides, room, strict, hardware.on_gpu)
    own.leave(folder)
    console.print(_describe(own.settings))
    with _stoppable(folder):
        run = train(own.settings, folder, hardware, patience=patience, splits=own.splits)
    _finish(run, own)


@contextmanager
def _stoppable(folder: Path) -> Iterator[None]:
    """Say how a run that is interrupted goes on."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit) as stop:
        # Lightning makes an exit of an interrupt.
        if not any(isinstance(error, KeyboardInterrupt) for error in (stop, stop.__context__)):
            raise
        if (folder / "last.ckpt").is_file():
            then = f"`foveate train --resume --out {escape(str(folder))}` goes on"
        else:
            then = "the first epoch was not over, and there is nothing to go on from"
        console.print(f"\nstopped; {then}")
        raise typer.Exit(130) from None


def _painted(settings: Settings) -> Splits | None:
    """The data of a run with painted signs, painted before the eyes of who waits for it."""
    from foveate.training import build_splits

    if settings.painted == 0:
        return None
    with show_progress() as progress:
        return build_splits(settings, progress)


def _run_to_resume(context: typer.Context, out: Path | None) -> Path:
    """The folder to go on in; what decides a run is read from there and can not be given again."""
    if out is None:
        raise typer.BadParameter("--resume needs --out, the folder of the run to go on with")
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in ANYTIME and source is not None and source.name == "COMMANDLINE":
            option = name if name == "dataset" else "--" + name.replace("_", "-")
            raise typer.BadParameter(
                f"--resume takes its settings from the run in {out}; leave {option} away"
            )
    return out


def _describe(settings: Settings) -> str:
    name = settings.root if settings.dataset == "manifest" else settings.dataset
    what = f"[bold]{escape(str(name))}[/bold], {settings.method}, {settings.recipe} recipe"
    if settings.method in ("ats", "uniform"):
        (h, w), (p, q) = settings.overview_size, settings.patch_size
        what += f": {settings.n_patches} patches of {p}x{q}, overview {h}x{w}"
    epochs = f"{settings.epochs} epoch" + ("s" if settings.epochs > 1 else "")
    return f"{what}, {epochs}, seed {settings.seed}"


def _finish(run: Run, own: OwnData | None = None) -> None:
    """Draw curves and attention, and say where everything is."""
    import torch

    from foveate.reports import draw_attention, draw_curves
    from foveate.training import read_log

    draw_curves(read_log(run.curves), run.folder / "curves.png")
    pictures = run.folder / "attention"
    test = run.splits.test
    batch = test.gather(range(min(PICTURES, len(test))))
    classifier = run.classifier.cpu().eval()
    with torch.no_grad():
        out = classifier(batch.images)
    border = getattr(classifier.model, "border", (0.0, 0.0))
    if out.log_attention is not None:
        pictures.mkdir(exist_ok=True)
        for row, guess in enumerate(out.logits.argmax(-1).tolist()):
            said, true = test.classes[guess], test.classes[int(batch.labels[row])]
            title = f"{test.name(row)}: {true}, said {said}"
            path = pictures / f"{row:03d}.png"
            draw_attention(batch.images, out, row, path, title, test.truth(row), border)
    console.print(f"\ntest error [bold]{run.metrics['test/error']:.2%}[/bold]")
    console.print(f"checkpoint {run.checkpoint}")
    console.print(f"curves     {run.folder / 'curves.png'}, numbers in {run.curves}")
    if out.log_attention is not None:
        console.print(f"attention  {pictures}/")
    if own is not None:
        own.show_failures()
