"""`foveate bench`: what a training step costs, for every method."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from foveate.cli.console import app, console
from foveate.errors import InputError


@app.command("bench")
def bench_command(
    out: Annotated[Path, typer.Option(help="folder for bench.json, bench.md and bench.png")] = Path(
        "bench"
    ),
    device: Annotated[str, typer.Option(help="cpu, cuda or auto")] = "auto",
    quick: Annotated[
        bool, typer.Option("--quick", help="fewer cases; under two minutes on two cores")
    ] = False,
) -> None:
    """Measure time and memory of a training step for every method, side by side."""
    import torch

    from foveate.experiments import bench_table, describe_machine, draw_bench, run_bench
    from foveate.training import Hardware

    if device not in ("auto", "cpu", "cuda"):
        raise typer.BadParameter(f"--device must be cpu, cuda or auto, but is {device!r}")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("there is no CUDA device; leave --device away")
    with console.status("") as status:
        lines = run_bench(torch.device(device), quick=quick, tell=status.update)
    table = bench_table(lines)
    machine = describe_machine(Hardware(accelerator="cpu" if device == "cpu" else "gpu"))
    about = {"machine": machine, "date": f"{datetime.now(UTC):%Y-%m-%d}", "quick": quick}
    out.mkdir(parents=True, exist_ok=True)
    values = about | {"lines": [line.as_dict() for line in lines]}
    (out / "bench.json").write_text(json.dumps(values, indent=1) + "\n")
    (out / "bench.md").write_text(f"{machine}, {about['date']}\n\n{table}")
    draw_bench(lines, out / "bench.png")
    console.print(table, markup=False, soft_wrap=True)
    console.print(f"{machine}; numbers in {out / 'bench.json'}, plot in {out / 'bench.png'}")
