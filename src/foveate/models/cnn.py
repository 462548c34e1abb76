"""A plain CNN on the whole image, at full resolution or below: the other baseline."""

from __future__ import annotations

from torch import nn

from foveate.errors import InputError
from foveate.images import Images, as_batch
from foveate.models.inputs import check_size, form_of
from foveate.types import Prediction, Size


class CNN(nn.Module):
    """Sees all of every image at once, so its cost grows with the image.

    Args:
        feature: maps images (b, c, h, w) to vectors (b, d).
        head: maps those to class scores.
        scale: what the images are scaled by, for images of one size; 1 is full resolution.
        size: or the height and width that all images are scaled to.

    Example:
        >>> import torch
        >>> from foveate.models import resnet8_cnn
        >>> model = CNN(resnet8_cnn(3), nn.Linear(32, 4), scale=0.5)
        >>> model(torch.rand(2, 3, 60, 80)).logits.shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        feature: nn.Module,
        head: nn.Module,
        *,
        scale: float = 1.0,
        size: Size | None = None,
    ) -> None:
        super().__init__()
        if scale <= 0:
            raise InputError(f"scale must be above 0, but is {scale}")
        self.feature = feature
        self.head = head
        self.scale = scale
        self.size = None if size is None else check_size("size", size)

    def forward(self, images: Images) -> Prediction:
        """Classify a batch of images."""
        batch = as_batch(images)
        size = self.size or self._scaled(batch.sizes)
        inputs = batch.overview_inputs(size, form_of(self, mixed=True))
        return Prediction(self.head(self.feature(inputs)))

    def _scaled(self, sizes: list[Size]) -> Size:
        if len(set(sizes)) > 1:
            raise InputError(
                f"cannot scale images of {len(set(sizes))} different sizes into one batch; "
                "give CNN a size instead of a scale"
            )
        height, width = sizes[0]
        return max(1, round(height * self.scale)), max(1, round(width * self.scale))
