"""A step's forward and backward pass recorded once, as a CUDA graph, and replayed from then on.

So is the look at a batch whose patches are to be read ahead.

At small batches a step is bound by the launching of some hundreds of kernels, not by their work; a
recorded step launches once. What differs from step to step is copied to where the recording reads:
the labels, and the tensors that overviews and patches are read from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from foveate.images import Choice, ImageBatch, SeenBatch, keep_until_read
from foveate.types import Int64

T = TypeVar("T")
Values = dict[str, Tensor]
Step = Callable[[ImageBatch, Tensor, torch.Generator], Values]
"""What a step measures; its gradient is that of the entry `objective`."""

_WARM_UP = 3


class HeldBatch:
    """A batch that stays where it is in memory while its content is replaced.

    Args:
        batch: the first content; it must be read from tensors.
    """

    def __init__(self, batch: ImageBatch) -> None:
        self._first = batch
        self._sources = [source.clone() for source in batch.sources]

    def batch(self) -> ImageBatch:
        """The batch; one that has remembered nothing yet, so that all reading is recorded."""
        return self._first.with_sources(tuple(self._sources))

    def fits(self, batch: ImageBatch) -> bool:
        """Whether another batch can take this one's place."""
        return batch.kind == self._first.kind and (
            [_layout(source) for source in batch.sources] == [*map(_layout, self._sources)]
        )

    def replace(self, batch: ImageBatch) -> None:
        """Take another batch's content."""
        torch._foreach_copy_(self._sources, list(batch.sources), non_blocking=True)


class RecordedStep:
    """Replays a training step; its gradients are left in the parameters.

    Args:
        step: what is recorded; nothing in it may make the host wait for the device.
        module: whose parameters it trains.
        clip: the largest norm of the gradient; 0 leaves it as it is.
    """

    def __init__(self, step: Step, module: nn.Module, clip: float = 0) -> None:
        self.step = step
        self.module = module
        self.clip = clip
        self._graph: torch.cuda.CUDAGraph | None = None

    def knows(self, images: ImageBatch) -> bool:
        """Whether a step with such images is recorded."""
        return self._graph is not None and self._held.fits(images)

    def __call__(self, images: ImageBatch, labels: Int64[Tensor, " b"], seed: int) -> Values:
        """Make the step with other images.

        Args:
            images: a batch of the kind and shape of the first.
            labels: their classes.
            seed: decides the draws.
        """
        if not self.knows(images):
            self._record(images, labels)
        else:
            self._held.replace(images)
            self._labels.copy_(labels, non_blocking=True)
        assert self._graph is not None
        self._generator.manual_seed(seed)
        self._graph.replay()
        if images.reads_host:  # what is on the device alone is in the order of its stream
            keep_until_read(images)
        # Somebody may have let go of the gradients since, as Lightning does before it validates.
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        return self._values

    def _record(self, images: ImageBatch, labels: Tensor) -> None:
        self._held, self._labels = HeldBatch(images), labels.clone()
        self._generator = torch.Generator(labels.device)
        buffers = [(buffer, buffer.clone()) for buffer in self.module.buffers()]
        self._graph, self._values = _recorded(self._make, self._generator)
        # To warm up was no step: running means and the like are as they were.
        for buffer, before in buffers:
            buffer.copy_(before)
        self._gradients = [(parameter, parameter.grad) for parameter in self.module.parameters()]

    def _make(self) -> Values:
        # Gradients that do not exist yet are made in the recording, which then overwrites them.
        for parameter in self.module.parameters():
            parameter.grad = None
        values = self.step(self._held.batch(), self._labels, self._generator)
        values["objective"].backward()
        if self.clip > 0:
            nn.utils.clip_grad_norm_(self.module.parameters(), self.clip)
        return {name: value.detach() for name, value in values.items()}


class RecordedLook:
    """Replays the decision where to look.

    Args:
        choose: what is recorded; it leaves the model as it is.
    """

    def __init__(self, choose: Callable[[SeenBatch, torch.Generator], Choice]) -> None:
        self.choose = choose
        self._graph: torch.cuda.CUDAGraph | None = None

    def knows(self, images: SeenBatch) -> bool:
        """Whether a look at such images is recorded."""
        return self._graph is not None and self._held.fits(images)

    def __call__(self, images: SeenBatch, seed: int) -> Choice:
        """Look at other images.

        Args:
            images: a batch of the kind and shape of the first.
            seed: decides the draws.
        """
        if not self.knows(images):
            self._held = HeldBatch(images)
            self._generator = torch.Generator(images.known.device)
            self._graph, self._choice = _recorded(self._make, self._generator)
        else:
            self._held.replace(images)
        assert self._graph is not None
        self._generator.manual_seed(seed)
        self._graph.replay()
        # The next look overwrites it, perhaps before the step that it is for.
        return self._choice.holding(self._choice.packed.data.clone())

    def _make(self) -> Choice:
        batch = self._held.batch()
        assert isinstance(batch, SeenBatch)
        return self.choose(batch, self._generator)


def _recorded(make: Callable[[], T], generator: torch.Generator) -> tuple[torch.cuda.CUDAGraph, T]:
    """What a function launches, as a graph, and what it returns, which each replay overwrites."""
    side = _side_stream(generator.device)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(_WARM_UP):
            make()
            # Weights that autocast has cast would be taken for those of every replay to come.
            torch.clear_autocast_cache()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph, stream=side):
        made = make()
    torch.clear_autocast_cache()  # nor may anybody else take those of the recording
    return graph, made


@functools.cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for all recordings: on each that it is called on, cuBLAS keeps memory of its own."""
    return torch.cuda.Stream(device)


def _layout(tensor: Tensor) -> tuple[torch.Size, torch.dtype, torch.device]:
    return tensor.shape, tensor.dtype, tensor.device
