"""`foveate reproduce`: the paper's tables and figures."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from foveate.cli.console import app, console
from foveate.errors import RunError


class Experiment(StrEnum):
    """What can be reproduced."""

    megapixel_mnist = "megapixel-mnist"
    colon_cancer = "colon-cancer"
    speed_limits = "speed-limits"
    gtsdb_speed_limits = "gtsdb-speed-limits"


@app.command("reproduce")
def reproduce_command(
    experiment: Annotated[Experiment, typer.Argument(help="which part of the paper")],
    root: Annotated[Path, typer.Option(help="the folder the data set lies in")],
    out: Annotated[
        Path | None, typer.Option(help="folder for results", show_default="reproduced/EXPERIMENT")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="little data and few steps: minutes on two cores")
    ] = False,
    seeds: Annotated[int, typer.Option(help="how many seeds, counted from 0")] = 3,
    rows: Annotated[str | None, typer.Option(help="only these rows, such as 'ATS-10;U-10'")] = None,
    jobs: Annotated[
        int, typer.Option(help="runs to make at a time; they share the GPU or the cores")
    ] = 1,
    accelerator: Annotated[str, typer.Option(help="cpu, gpu or auto")] = "auto",
    precision: Annotated[str, typer.Option(help="auto, 32-true or bf16-mixed")] = "auto",
    costs: Annotated[bool, typer.Option(help="measure time and memory of each method")] = True,
) -> None:
    """Make the paper's tables and figures anew.

    Leaves results.json, results.md and pictures in one folder. Interrupted,
    the same command goes on where it stopped.
    """
    from foveate.experiments import (
        PLANS,
        RESULTS,
        draw_figures,
        load_outcomes,
        run_plan,
        write_tables,
    )
    from foveate.training import Hardware

    for name, value in (("--seeds", seeds), ("--jobs", jobs)):
        if value < 1:
            raise typer.BadParameter(f"{name} must be at least 1, but is {value}")
    folder = out or Path("reproduced") / (experiment.value + ("-quick" if quick else ""))
    make_plan = PLANS[experiment.value]
    plan = make_plan(str(root), range(1 if quick else seeds), quick)
    if rows is not None:
        plan.only(row.strip() for row in rows.split(";"))
    console.print(f"[bold]{plan.title}[/bold]: {len(plan.trials)} runs, results in {folder}")
    hardware = Hardware(accelerator=accelerator, devices="1", precision=precision)
    failed = None
    try:
        run_plan(
            plan,
            folder,
            hardware,
            jobs=jobs,
            costs=costs,
            progress=console.is_terminal,
            tell=lambda done, of, name: console.print(f"run {done + 1} of {of}: {name}"),
        )
    except RunError as error:
        failed = error  # the others are shown first
    # Rows and seeds that were asked for before, in the same folder, are shown too.
    outcomes = load_outcomes(folder / RESULTS)
    if failed is not None and not outcomes:
        raise failed
    known = {outcome.settings["seed"] for outcome in outcomes.values()}
    plan = make_plan(str(root), sorted(known), quick)
    plan.made(outcomes)
    text = write_tables(plan, outcomes)
    (folder / "results.md").write_text(text)
    pictures = draw_figures(plan, outcomes, folder)
    console.print(text, markup=False, soft_wrap=True)
    console.print(f"tables  {folder / 'results.md'}, all numbers in {folder / 'results.json'}")
    console.print(f"figures {', '.join(str(picture) for picture in pictures)}")
    if failed is not None:
        raise failed
