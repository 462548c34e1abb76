"""A step's forward and backward pass recorded once, as a CUDA graph, and replayed from then on.

At small batches a step is bound by the launching of some hundreds of kernels, not by their work; a
recorded step launches once. What differs from step to step is copied to where the recording reads:
the labels, the overviews, and the tensors that patches are read from.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from foveate.images import ImageBatch
from foveate.types import Int64, Num, Size

Values = dict[str, Tensor]
Step = Callable[[ImageBatch, Tensor, torch.Generator], Values]
"""What a step measures; its gradient is that of the entry `objective`."""

_WARM_UP = 3


class HeldBatch(ImageBatch):
    """A batch that stays where it is in memory while its content is replaced.

    Args:
        batch: the first content; its patches must be read from tensors.
    """

    def __init__(self, batch: ImageBatch) -> None:
        self.kind = batch
        self._sources = tuple(source.clone() for source in batch.sources)
        self._overviews: dict[Size, Tensor] = {}

    @property
    def sizes(self) -> list[Size]:
        """See `ImageBatch.sizes`."""
        return self.kind.sizes

    def overviews(self, size: Size) -> Num[Tensor, "b c h w"]:
        """See `ImageBatch.overviews`; those of a size that was asked for once are replaced too."""
        if size not in self._overviews:
            self._overviews[size] = self.kind.overviews(size).clone()
        return self._overviews[size]

    @property
    def sources(self) -> tuple[Tensor, ...]:
        """See `ImageBatch.sources`."""
        return self._sources

    def read_from(
        self, sources: tuple[Tensor, ...], yx_level0: Int64[Tensor, "b n 2"], size: Size
    ) -> Num[Tensor, "b n c p q"]:
        """See `ImageBatch.read_from`."""
        return self.kind.read_from(sources, yx_level0, size)

    def fits(self, batch: ImageBatch) -> bool:
        """Whether another batch can take this one's place."""
        return (
            type(batch) is type(self.kind)
            and batch.sizes == self.sizes
            and [_layout(source) for source in batch.sources] == [*map(_layout, self._sources)]
        )

    def replace(self, batch: ImageBatch) -> None:
        """Take another batch's content."""
        for held, source in zip(self._sources, batch.sources, strict=True):
            held.copy_(source, non_blocking=True)
        for size, held in self._overviews.items():
            held.copy_(batch.overviews(size), non_blocking=True)


class RecordedStep:
    """Replays a training step; its gradients are left in the parameters.

    Args:
        step: what is recorded; nothing in it may make the host wait for the device.
        module: whose parameters it trains.
    """

    def __init__(self, step: Step, module: nn.Module) -> None:
        self.step = step
        self.module = module
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, images: ImageBatch, labels: Int64[Tensor, " b"], seed: int) -> Values:
        """Make the step with other images.

        Args:
            images: a batch of the kind and shape of the first.
            labels: their classes.
            seed: decides the draws.
        """
        if self._graph is None or not self._held.fits(images):
            self._record(images, labels)
        else:
            self._held.replace(images)
            self._labels.copy_(labels, non_blocking=True)
        assert self._graph is not None
        self._generator.manual_seed(seed)
        self._graph.replay()
        # Somebody may have let go of the gradients since, as Lightning does before it validates.
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        return self._values

    def _record(self, images: ImageBatch, labels: Tensor) -> None:
        self._held, self._labels = HeldBatch(images), labels.clone()
        self._generator = torch.Generator(labels.device)
        buffers = [(buffer, buffer.clone()) for buffer in self.module.buffers()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UP):
                self._forget_gradient()
                self._make()
        torch.cuda.current_stream().wait_stream(side)
        # Gradients that do not exist yet are made in the recording, which then overwrites them.
        self._forget_gradient()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self._generator)
        with torch.cuda.graph(graph):
            values = self._make()
        # To warm up was no step: running means and the like are as they were.
        for buffer, before in buffers:
            buffer.copy_(before)
        self._graph, self._values = graph, values
        self._gradients = [(parameter, parameter.grad) for parameter in self.module.parameters()]

    def _make(self) -> Values:
        # Weights that autocast has cast before would be taken for those of every step to come.
        torch.clear_autocast_cache()
        values = self.step(self._held, self._labels, self._generator)
        values["objective"].backward()
        return {name: value.detach() for name, value in values.items()}

    def _forget_gradient(self) -> None:
        for parameter in self.module.parameters():
            parameter.grad = None


def _layout(tensor: Tensor) -> tuple[torch.Size, torch.dtype, torch.device]:
    return tensor.shape, tensor.dtype, tensor.device
