"""What a training step costs: milliseconds and megabytes for each image.

Images are random bytes in host memory, so that their way to the device is counted. Overviews that
attention sampling needs are made before, as a loader's worker does; where kernels read the images
in place, only overviews and patches go that way. A step is the forward and the backward pass.
"""

from __future__ import annotations

import dataclasses
import gc
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from foveate.experiments.gauge import EXACT, megabytes_of, milliseconds_of
from foveate.images import ImageBatch, TensorBatch
from foveate.kernels import plain_pytorch
from foveate.training import Classifier, Settings, build_model
from foveate.training.allocation import keep_freed_memory
from foveate.training.recording import RecordedStep, Values
from foveate.types import Size

_BATCHES = 3
"""Batches that take turns on a GPU, so that none is read from a cache."""

_SMALL = 1000
"""Height and width of images that are enough to load all libraries with."""


@dataclass(frozen=True)
class Shape:
    """The images and classes that a step is measured on.

    Attributes:
        size: height and width of the images.
        channels: their channels.
        classes: how many classes.
        batch_size: images in a step.
    """

    size: Size
    channels: int
    classes: int
    batch_size: int


@dataclass(frozen=True)
class Options:
    """How a step is made.

    Attributes:
        recorded: whether a GPU replays it.
        half: whether what is safe is computed in bfloat16.
        channels_last: whether channels lie together in memory.
        kernels: whether a GPU reads images by kernels of our own, in place where it can.
        kept: whether overviews are there already: kept from an earlier epoch, or made by the
            workers of a loader.
    """

    recorded: bool = True
    half: bool = False
    channels_last: bool = True
    kernels: bool = True
    kept: bool = True


PLAIN = Options(recorded=False, half=False, channels_last=False, kernels=False, kept=False)
"""PyTorch as it comes."""


@dataclass(frozen=True)
class Cost:
    """What a step costs for each image.

    Attributes:
        milliseconds: the median over repetitions.
        spread: half the distance between their quartiles.
        megabytes: the most memory in use at one time, beside the weights, what libraries keep for
            good and, on the CPU, the images; a GPU's copy of them counts.
    """

    milliseconds: float
    spread: float
    megabytes: float

    def as_dict(self) -> dict[str, float]:
        """The cost as plain values."""
        return dataclasses.asdict(self)


def measure_cost(
    settings: Settings,
    shape: Shape,
    device: torch.device,
    options: Options | None = None,
    repeat: int = 20,
) -> Cost:
    """Measure a training step of an untrained model.

    Args:
        settings: what the model is.
        shape: what it is measured on.
        device: where; on the CPU it is measured in a process of its own.
        options: how the step is made; as training makes it by default.
        repeat: how often to repeat it; slow steps are repeated less.
    """
    options = options or Options()
    if device.type == "cpu":
        request = {
            "settings": settings.as_dict(),
            "shape": dataclasses.asdict(shape),
            "options": dataclasses.asdict(options),
            "repeat": repeat,
        }
        # To give memory back at once takes time, so the two are measured apart.
        middle, spread = _apart("time", request, {})
        (megabytes,) = _apart("memory", request, EXACT)
    else:
        _load_libraries(settings, shape, device, options)
        step = prepare_step(settings, shape, device, options)
        megabytes = megabytes_of(step, device)
        middle, spread = milliseconds_of(step, device, repeat)
    each = shape.batch_size
    return Cost(middle / each, spread / each, megabytes / each)


def _apart(what: str, request: dict[str, Any], environment: dict[str, str]) -> list[float]:
    """Measure in a process of its own."""
    code = "from foveate.experiments import cost; cost.measure_here()"
    command = [sys.executable, "-c", code, what, json.dumps(request)]
    printed = subprocess.check_output(command, env=os.environ | environment, text=True)
    numbers: list[float] = json.loads(printed.splitlines()[-1])
    return numbers


def measure_here() -> None:
    """What the process of its own does."""
    what, request = sys.argv[1], json.loads(sys.argv[2])
    settings = Settings.from_dict(request["settings"])
    shape = Shape(**request["shape"] | {"size": tuple(request["shape"]["size"])})
    device = torch.device("cpu")
    options = Options(**request["options"])
    if options != PLAIN:
        keep_freed_memory()  # where memory is measured, the environment has it given back
    step = prepare_step(settings, shape, device, options)
    step()  # what is loaded and kept for good is not the step's
    if what == "memory":
        numbers = [megabytes_of(step, device)]
    else:
        numbers = [*milliseconds_of(step, device, request["repeat"])]
    sys.stdout.write(json.dumps(numbers) + "\n")


def prepare_step(
    settings: Settings, shape: Shape, device: torch.device, options: Options
) -> Callable[[], Any]:
    """A step of an untrained model that can be made again and again.

    Args:
        settings: what the model is.
        shape: what it is made on.
        device: where.
        options: how it is made.
    """
    model = build_model(settings, shape.channels, shape.classes)
    names = tuple(map(str, range(shape.classes)))
    classifier = Classifier(model, settings, names, shape.channels).to(device).train()
    if options.channels_last:
        classifier.to(memory_format=torch.channels_last)
    labels = (torch.arange(shape.batch_size) % shape.classes).to(device)
    on_gpu = device.type == "cuda"
    batches = [_images(settings, shape, on_gpu, options) for _ in range(_BATCHES if on_gpu else 1)]
    return _step(classifier, batches, labels, device, options)


def _load_libraries(
    settings: Settings, shape: Shape, device: torch.device, options: Options
) -> None:
    """Make a small step: what is loaded and kept for good is not the step's."""
    height, width = shape.size
    size = (min(height, _SMALL), min(width, _SMALL))
    small = dataclasses.replace(shape, size=size, batch_size=1)
    prepare_step(settings, small, device, options)()
    gc.collect()


def _images(settings: Settings, shape: Shape, on_gpu: bool, options: Options) -> TensorBatch:
    bytes_of = (shape.batch_size, shape.channels, *shape.size)
    images = TensorBatch(torch.randint(0, 256, bytes_of, dtype=torch.uint8))
    if options.kept and settings.method in ("ats", "uniform"):
        images = images.prefetch(settings.overview_size)
    return images.pin_memory() if on_gpu else images


def _step(
    classifier: Classifier,
    batches: list[TensorBatch],
    labels: Tensor,
    device: torch.device,
    options: Options,
) -> Callable[[], Any]:
    turns = itertools.cycle(batches)
    seeds = itertools.count()

    def objective(images: ImageBatch, labels: Tensor, generator: torch.Generator) -> Values:
        with torch.autocast(device.type, torch.bfloat16, enabled=options.half):
            return classifier.objective(images, labels, generator)

    replay = RecordedStep(objective, classifier)
    generator = torch.Generator(device)

    def step() -> None:
        images = next(turns).to(device, non_blocking=True)
        if options.recorded and device.type == "cuda":
            replay(images, labels, next(seeds))
            return
        classifier.zero_grad()
        objective(images, labels, generator)["objective"].backward()

    def plain_step() -> None:
        with plain_pytorch():
            step()

    return step if options.kernels else plain_step
