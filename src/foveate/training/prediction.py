"""What a trained model makes of image files: a stream of them, any of which may be damaged.

A few images are in memory at a time, however many there are and however large. What comes out for
an image does not depend on the images beside it, but for rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from foveate.errors import DataError, FoveateError, InputError
from foveate.images import Image, ListBatch, open_image
from foveate.training.module import Classifier
from foveate.training.trainer import Hardware
from foveate.types import Draw, Float, Prediction, Size

_MISHAPS = (FoveateError, OSError, MemoryError, RuntimeError)
"""What may be wrong with one image; torch's own errors, such as no memory, are RuntimeErrors."""
_NAN = "check its pixels, and whether training diverged"


@dataclass(frozen=True)
class Predicted:
    """An image, and what the model made of it.

    Attributes:
        path: the image, as it was named.
        image: the image itself, still open until the next is asked for.
        out: the prediction, of a batch of one, in this machine's own memory.
    """

    path: str
    image: Image
    out: Prediction


@dataclass(frozen=True)
class Failed:
    """An image that could not be predicted.

    Attributes:
        path: the image, as it was named.
        error: why.
    """

    path: str
    error: FoveateError


def predict_images(
    classifier: Classifier,
    paths: Sequence[str],
    *,
    batch_size: int = 1,
    workers: int = 0,
    draws: int = 0,
    device: torch.device | str | None = None,
) -> Iterator[Predicted | Failed]:
    """Predict images, one after the other.

    Args:
        classifier: a trained model.
        paths: files or addresses, of any sizes and formats; all are opened with the model's
            channels.
        batch_size: images that go through the model together.
        workers: processes that open images and read overviews ahead; 0 does so in this one.
        draws: 0 draws patches without chance. More draw so many times at random: probabilities are
            the mean over draws, and the patches those of all draws, each weighing less.
        device: where the model runs; None takes a GPU if there is one.

    Returns:
        For each path in turn its prediction, or why there is none.

    Raises:
        InputError: for numbers that can not be, or draws of a model that draws nothing.
    """
    for name, value, least in [
        ("batch_size", batch_size, 1),
        ("workers", workers, 0),
        ("draws", draws, 0),
    ]:
        if value < least:
            raise InputError(f"{name} must be at least {least}, but is {value}")
    if draws > 0 and not classifier.draws:
        raise InputError(f"a {classifier.settings.method} model draws nothing; leave draws at 0")
    return _stream(
        classifier.to(device or Hardware().device).eval(), paths, batch_size, workers, draws
    )


def _stream(
    classifier: Classifier, paths: Sequence[str], batch_size: int, workers: int, draws: int
) -> Iterator[Predicted | Failed]:
    overview_size: Size | None = getattr(classifier.model, "overview_size", None)
    loader: DataLoader[_Opened] = DataLoader(
        list(paths),  # type: ignore[arg-type]
        # Chance is the image's own, whatever it is in a batch with.
        batch_size=1 if draws else batch_size,
        collate_fn=_Opener(classifier.channels, overview_size),
        num_workers=workers,
    )
    for opened in loader:
        predictions = iter(_predict(classifier, opened.batch, draws))
        for path, image in opened.images:
            if isinstance(image, FoveateError):
                yield Failed(path, image)
                continue
            out = next(predictions)
            if isinstance(out, Exception):
                yield Failed(path, _own(path, out))
            elif not out.logits.isfinite().all():
                yield Failed(
                    path, DataError(f"the model's scores of {path} are not finite; {_NAN}")
                )
            else:
                yield Predicted(path, image, out)
            image.close()


@dataclass(frozen=True)
class _Opened:
    """Some images, or why they could not be opened, and those that could as a batch."""

    images: list[tuple[str, Image | FoveateError]]
    batch: ListBatch | None


class _Opener:
    """Opens images and reads their overviews, perhaps in a worker process.

    Args:
        channels: that images are opened with.
        overview_size: of the overviews; None for a model that wants none.
    """

    def __init__(self, channels: int, overview_size: Size | None) -> None:
        self.channels = channels
        self.overview_size = overview_size

    def __call__(self, paths: list[str]) -> _Opened:
        images = [(path, self._open(path)) for path in paths]
        batch = _batch_of(images)
        if batch is None or self.overview_size is None:
            return _Opened(images, batch)
        try:
            return _Opened(images, batch.prefetch(self.overview_size))
        except _MISHAPS:
            # One of them: which one shows when each is read alone.
            images = [(path, self._check(path, image)) for path, image in images]
            return _Opened(images, _batch_of(images))

    def _open(self, path: str) -> Image | FoveateError:
        try:
            return open_image(path, channels=self.channels)
        except _MISHAPS as error:
            return _own(path, error)

    def _check(self, path: str, image: Image | FoveateError) -> Image | FoveateError:
        if isinstance(image, FoveateError) or self.overview_size is None:
            return image
        try:
            image.overview(self.overview_size)
        except _MISHAPS as error:
            return _own(path, error)
        return image


def _own(path: str, error: Exception) -> FoveateError:
    """An error of any library as one of ours, which names the image and travels well."""
    if isinstance(error, FoveateError):
        return error
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return DataError(f"cannot predict {path}: {reason}; replace it or leave it out")


def _batch_of(images: list[tuple[str, Image | FoveateError]]) -> ListBatch | None:
    good = [image for _, image in images if isinstance(image, Image)]
    return ListBatch(good) if good else None


def _predict(
    classifier: Classifier, batch: ListBatch | None, draws: int
) -> list[Prediction | Exception]:
    """The prediction of each image of a batch; alone if they do not go together."""
    if batch is None:
        return []
    try:
        out = _forward(classifier, batch, draws)
    except _MISHAPS as error:
        if len(batch) == 1:
            return [error]
        alone = [_predict(classifier, ListBatch([image]), draws) for image in batch.images]
        return [out for (out,) in alone]
    rows = [slice(row, row + 1) for row in range(len(batch))]
    return [_changed(out, itemgetter(row)) for row in rows]


@torch.inference_mode()
def _forward(classifier: Classifier, batch: ListBatch, draws: int) -> Prediction:
    batch = batch.to(classifier.device)
    if draws == 0:
        return _changed(classifier(batch), Tensor.cpu)
    outs = []
    for number in range(draws):
        generator = torch.Generator(classifier.device).manual_seed(number)
        outs.append(_changed(classifier(batch, generator), Tensor.cpu))
    return _mean_of(outs)


def _changed(out: Prediction, change: Callable[[Tensor], Tensor]) -> Prediction:
    """A prediction with each of its tensors changed."""

    def maybe(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else change(tensor)

    draw = None if out.draw is None else Draw(change(out.draw.index), change(out.draw.weight))
    return Prediction(
        change(out.logits),
        maybe(out.log_attention),
        draw,
        maybe(out.yx_level0),
        maybe(out.patches),
    )


def _mean_of(outs: list[Prediction]) -> Prediction:
    """Several draws of the same images as one that is as large as all of them.

    Its probabilities are the mean of theirs, and its weights are theirs divided by their number.
    """
    logs: Float[Tensor, "m b k"] = torch.stack([out.logits.log_softmax(-1) for out in outs])
    draws = [out.draw for out in outs if out.draw is not None]
    corners = [out.yx_level0 for out in outs if out.yx_level0 is not None]
    patches = [out.patches for out in outs if out.patches is not None]
    return Prediction(
        logs.logsumexp(0) - math.log(len(outs)),
        outs[0].log_attention,
        Draw(
            torch.cat([draw.index for draw in draws], dim=1),
            torch.cat([draw.weight for draw in draws], dim=1) / len(outs),
        ),
        torch.cat(corners, dim=1),
        torch.cat(patches, dim=1),
    )
