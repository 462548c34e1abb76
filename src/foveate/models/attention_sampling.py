"""The model: look at an overview, draw patches where it matters, decide from their features."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from foveate.coordinates import Grid
from foveate.errors import InputError
from foveate.images import ImageBatch, Images, as_batch
from foveate.models.attention import log_normalise, margin_of
from foveate.models.inputs import check_size, form_of
from foveate.models.jitter import Jitter
from foveate.sampling import Sampler, Systematic, carry_over, expectation
from foveate.types import Draw, Float, Glance, Prediction, Size


class AttentionSampling(nn.Module):
    """Attention sampling (Katharopoulos & Fleuret 2019), with an exactly unbiased gradient.

    In training, cells are drawn at random; in `eval()` they are drawn without chance, and an
    image's prediction does not depend on the others in its batch. A generator passed to `forward`
    makes random draws in either mode.

    Args:
        attention: maps an overview (b, c, *overview_size) to logits of the cells, (b, h, w) or (b,
            1, h, w), normalised or not; `margin` is its attribute if it loses border pixels.
        feature: maps patches (b * n, c, *patch_size) to vectors (b * n, d) of norm 1.
        head: maps z (b, d) to class scores (b, k).
        patch_size: height and width of the patches, in full-resolution pixels.
        n_patches: how many patches to draw.
        overview_size: height and width of the overview.
        sampler: how to draw.
        pass_location: whether `feature` takes a second argument, where each patch's centre lies in
            the image: (b * n, 2), (y, x) from 0 to 1.
        jitter: bends patches in training, before `feature` sees them.

    Example:
        >>> from foveate.models import ConvAttention, ConvFeature
        >>> model = AttentionSampling(
        ...     ConvAttention(3), ConvFeature(3), nn.Linear(64, 2),
        ...     patch_size=(32, 32), n_patches=5, overview_size=(50, 50),
        ... )
        >>> out = model(torch.randint(0, 256, (4, 3, 1000, 800), dtype=torch.uint8))
        >>> out.logits.shape, out.log_attention.shape, out.patches.shape
        (torch.Size([4, 2]), torch.Size([4, 50, 50]), torch.Size([4, 5, 3, 32, 32]))
    """

    def __init__(
        self,
        attention: nn.Module,
        feature: nn.Module,
        head: nn.Module,
        *,
        patch_size: Size,
        n_patches: int,
        overview_size: Size,
        sampler: Sampler | None = None,
        pass_location: bool = False,
        jitter: Jitter | None = None,
    ) -> None:
        super().__init__()
        if n_patches < 1:
            raise InputError(f"n_patches must be at least 1, but is {n_patches}")
        self.attention = attention
        self.feature = feature
        self.head = head
        self.patch_size = check_size("patch_size", patch_size)
        self.n_patches = n_patches
        self.overview_size = check_size("overview_size", overview_size)
        self.sampler = Systematic() if sampler is None else sampler
        self.pass_location = pass_location
        self.jitter = jitter

    @property
    def border(self) -> tuple[float, float]:
        """The share of an image's height and width, on each side, that no cell covers."""
        margin, overview = margin_of(self.attention), self.overview_size
        return margin[0] / overview[0], margin[1] / overview[1]

    def cell_grid(self, log_attention: Float[Tensor, "b h w"]) -> Grid:
        """Where the cells of an attention map lie."""
        rows, columns = log_attention.shape[1:]
        return Grid((rows, columns), self.overview_size, margin_of(self.attention))

    def forward(
        self,
        images: Images,
        generator: torch.Generator | None = None,
        glance: Glance | None = None,
    ) -> Prediction:
        """Classify a batch of images.

        Args:
            images: a (b, c, H, W) uint8 or float tensor, or a list of images of any sizes. They
                may be elsewhere than the model: only overviews and patches are moved.
            generator: where the random numbers of the draw, and of jitter, come from.
            glance: what `look` decided for the same images. Then nothing is drawn: the estimate is
                for the attention of now, from the patches that were chosen then.
        """
        batch = as_batch(images)
        log_attention = self._attend(batch)
        grid = self.cell_grid(log_attention)
        if glance is None:
            draw = self._draw(log_attention, generator)
            yx_level0 = grid.patch_corners(grid.cell_of(draw.index), batch.extents, self.patch_size)
        else:
            draw = carry_over(glance.draw, glance.log_attention, log_attention)
            yx_level0 = glance.yx_level0

        form = form_of(self, mixed=True)
        patches, inputs = batch.read_inputs(yx_level0, self.patch_size, form)
        seen = [inputs if self.jitter is None else self.jitter(inputs, generator)]
        if self.pass_location:
            location = grid.location(grid.cell_of(draw.index))
            seen.append(location.flatten(0, 1).to(form_of(self).dtype))
        features = self.feature(*seen).unflatten(0, draw.index.shape)
        z = expectation(log_attention, draw, features)
        return Prediction(self.head(z), log_attention, draw, yx_level0, patches)

    @torch.no_grad()
    def look(self, images: Images, generator: torch.Generator | None = None) -> Glance:
        """Decide where to look, so that patches can be read before `forward` needs them.

        The model may learn in between: `forward` weighs the draw for the attention that it then
        has, and value and gradient stay exactly unbiased (see `carry_over`).

        Args:
            images: the images, of which only overviews are read.
            generator: where the draw's random numbers come from.

        Example:
            >>> from foveate.models import ConvAttention, ConvFeature
            >>> model = AttentionSampling(
            ...     ConvAttention(3), ConvFeature(3), nn.Linear(64, 2),
            ...     patch_size=(32, 32), n_patches=5, overview_size=(50, 50),
            ... )
            >>> images = torch.randint(0, 256, (4, 3, 1000, 800), dtype=torch.uint8)
            >>> glance = model.look(images)
            >>> out = model(images, glance=glance)
            >>> torch.equal(out.draw.index, glance.draw.index)
            True
        """
        batch = as_batch(images)
        # To look is no step: running means and the like stay as they are.
        buffers = [(buffer, buffer.clone()) for buffer in self.attention.buffers()]
        log_attention = self._attend(batch)
        for buffer, before in buffers:
            buffer.copy_(before)
        draw = self._draw(log_attention, generator)
        grid = self.cell_grid(log_attention)
        corners = grid.patch_corners(grid.cell_of(draw.index), batch.extents, self.patch_size)
        return Glance(log_attention, draw, corners)

    def _attend(self, batch: ImageBatch) -> Float[Tensor, "b h w"]:
        overview = batch.overview_inputs(self.overview_size, form_of(self))
        # Where to look is decided in full precision, whatever the features are computed in.
        with torch.autocast(overview.device.type, enabled=False):
            return log_normalise(self.attention(overview))

    def _draw(
        self, log_attention: Float[Tensor, "b h w"], generator: torch.Generator | None
    ) -> Draw:
        if self.training or generator is not None:
            return self.sampler.draw(log_attention, self.n_patches, generator)
        return self.sampler.draw_settled(log_attention, self.n_patches)
