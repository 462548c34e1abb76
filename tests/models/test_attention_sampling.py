from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from foveate import AttentionSampling, Prediction, Sampler, Sequential, Systematic, Unordered
from foveate.coordinates import Grid
from foveate.errors import InputError
from foveate.images import as_batch, read_patches
from foveate.models import (
    Attention,
    ContrastPrior,
    ConvAttention,
    ConvFeature,
    DeepMIL,
    Jitter,
    LeNetFeature,
    LocatedFeature,
    MILAttention,
    PooledAttention,
    UniformAttention,
)
from foveate.sampling.chance import Share
from models.building import (
    FixedAttention,
    check_full_model,
    enumerable_model,
    photographs,
    small_model,
)
from problems import UNBIASED, Outcomes

no_shapes = pytest.mark.usefixtures("unchecked_shapes")


def test_the_record() -> None:
    out = small_model()(photographs())
    assert isinstance(out, Prediction)
    assert out.logits.shape == (4, 5)
    assert out.log_attention is not None
    assert out.log_attention.shape == (4, 20, 15)
    assert out.draw is not None
    assert out.draw.index.shape == (4, 6)
    assert out.yx_level0 is not None
    assert out.yx_level0.shape == (4, 6, 2)
    assert out.patches is not None
    assert out.patches.dtype == torch.uint8
    torch.testing.assert_close(
        out.patches, read_patches(photographs_again(out), out.yx_level0, (16, 12))
    )


def photographs_again(out: Prediction) -> Tensor:
    torch.manual_seed(0)
    small_model()
    return photographs(len(out.logits))


@pytest.mark.parametrize(("sampler", "outcomes_of"), UNBIASED, ids=lambda value: repr(value)[:11])
def test_every_weight_gets_the_gradient_of_the_full_model(
    sampler: Sampler,
    outcomes_of: Callable[[Tensor, int], Outcomes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All draws of the whole model, enumerated: values and gradients of every parameter."""
    model, image, outcomes = enumerable_model(sampler, outcomes_of)
    monkeypatch.setattr(torch, "rand", lambda shape, **_: outcomes.chance.reshape(shape))
    out = model(image.expand(len(outcomes.probability), -1, -1, -1))
    check_full_model(model, image, outcomes.probability @ out.logits)


@pytest.mark.parametrize("margin", [0, 4])
def test_the_patch_is_read_where_the_attention_points(margin: int) -> None:
    for row, column in [(0, 0), (4, 8), (2, 3)]:
        logits = torch.full((5, 9), -50.0)
        logits[row, column] = 50.0
        attention = FixedAttention(logits)
        attention.margin = margin  # type: ignore[assignment]
        model = small_model(attention=attention, n_patches=1, overview_size=(48, 80))
        grid = Grid((5, 9), (48, 80), (margin, margin))
        y, x = grid.centre_level0(torch.tensor([row, column]), (400, 300)).long().tolist()
        image = torch.zeros(1, 3, 400, 300, dtype=torch.uint8)
        image[:, :, y, x] = 255
        patches = model(image).patches
        assert patches is not None
        found = patches[0, 0, 0].nonzero()[0]
        assert (found - torch.tensor([8, 6])).abs().max() <= 1


def test_the_border_is_what_no_cell_covers() -> None:
    model = small_model(attention=Attention(PooledAttention(3)), overview_size=(40, 80))
    assert model.border == (0.1, 0.05)
    assert small_model().border == (0.0, 0.0)


def test_eval_is_deterministic_and_ignores_the_rest_of_the_batch() -> None:
    model, images = small_model().eval(), photographs()
    together, again = model(images), model(images)
    torch.manual_seed(5)
    alone = torch.cat([model(image[None]).logits for image in images])
    assert torch.equal(together.logits, again.logits)
    torch.testing.assert_close(together.logits, alone)


def test_a_generator_decides_the_draw_in_either_mode() -> None:
    model, images = small_model(), photographs()
    for mode in (True, False):
        model.train(mode)
        one, same, other = (
            model(images, generator=torch.Generator().manual_seed(seed)).draw.index
            for seed in (1, 1, 2)
        )
        assert torch.equal(one, same)
        assert not torch.equal(one, other)


def test_deep_mil_bends_patches_by_its_generator_too() -> None:
    """The halves of a batch, in two processes, are bent as they are in one."""
    images, seen = photographs(), []
    parts: Any = ConvFeature(3, (4, 8), (3, 3), (2, 2), (1, 1)), nn.Linear(8, 5)
    model = DeepMIL(MILAttention(8), *parts, patch_size=(16, 12), grid=(3, 3), jitter=Jitter(0.2))
    model.feature.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model(images, torch.Generator().manual_seed(1))
    for rank, half in enumerate(images.split(2)):
        share = Share("cpu", rank, processes=2)
        share.manual_seed(1)
        model(half, share)
    assert torch.equal(seen[0], torch.cat(seen[1:]))


def test_a_generator_decides_how_patches_are_bent() -> None:
    images, seen = photographs(), []
    model = small_model(jitter=Jitter(0.2))
    model.feature.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    for seed in (1, 1, 2):
        out = model(images, torch.Generator().manual_seed(seed))
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])
    assert not torch.allclose(seen[2], out.patches.flatten(0, 1) / 255)
    # Without training they are as they were read, whatever decides the draw.
    out = model.eval()(images, torch.Generator().manual_seed(1))
    torch.testing.assert_close(seen[3], out.patches.flatten(0, 1) / 255)


def test_bytes_and_floats_are_the_same_picture() -> None:
    model, images = small_model(overview_size=(200, 150)).eval(), photographs()
    torch.testing.assert_close(model(images).logits, model(images.float() / 255).logits)


def test_a_list_of_one_size_is_a_batch() -> None:
    model, images = small_model().eval(), photographs()
    together, listed = model(images), model(list(images))
    torch.testing.assert_close(together.logits, listed.logits)
    assert torch.equal(together.yx_level0, listed.yx_level0)
    arrays = [image.permute(1, 2, 0).numpy() for image in images]
    torch.testing.assert_close(together.logits, model(arrays).logits)


def test_images_of_different_sizes_in_one_batch() -> None:
    model = small_model().eval()
    images = [photographs(1, h, w)[0] for h, w in [(200, 150), (90, 400), (10, 8)]]
    listed = model(images)
    for row, image in enumerate(images):
        alone = model(image[None])
        torch.testing.assert_close(listed.logits[row], alone.logits[0])
        assert torch.equal(listed.yx_level0[row], alone.yx_level0[0])


def test_features_may_know_where_they_are() -> None:
    seen = []

    class Spy(LocatedFeature):
        def forward(self, patches: Tensor, location: Tensor) -> Tensor:
            seen.append(location)
            return super().forward(patches, location)

    model = small_model(
        feature=Spy(LeNetFeature(3), 32),
        head=nn.Linear(32, 2),
        pass_location=True,
        patch_size=(20, 16),
    )
    out = model(photographs())
    expected = (out.yx_level0 + torch.tensor([10, 8])) / torch.tensor([200, 150])
    torch.testing.assert_close(seen[0].view(4, 6, 2), expected, rtol=0, atol=0.51 / 150)


def test_uniform_attention_is_the_blind_baseline() -> None:
    model = small_model(attention=UniformAttention((10, 10)))
    out = model(photographs())
    torch.testing.assert_close(out.log_attention.exp(), torch.full((4, 10, 10), 0.01))
    torch.testing.assert_close(out.draw.weight, torch.full((4, 6), 1 / 6))
    out.logits.sum().backward()


class LargestNew(TorchDispatchMode):
    """Records the most bytes that any one operation allocates."""

    bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        known = {a.untyped_storage().data_ptr() for a in args if isinstance(a, Tensor)}
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, tuple | list) else [out]:
            if isinstance(tensor, Tensor) and tensor.untyped_storage().data_ptr() not in known:
                self.bytes = max(self.bytes, tensor.numel() * tensor.element_size())
        return out


@no_shapes
@pytest.mark.parametrize("make", [lambda x: x, list, lambda x: x.float()])
def test_no_operation_allocates_more_for_a_larger_image(make: Callable[[Tensor], Any]) -> None:
    model = small_model(overview_size=(64, 64), attention=PooledAttention(3))
    largest = []
    for side in (1000, 2000, 4000):
        images = make(torch.zeros(1, 3, side, side, dtype=torch.uint8))
        with LargestNew() as mode:  # type: ignore[no-untyped-call]
            model(images).logits.sum().backward()
        largest.append(mode.bytes)
    assert largest[0] > 0
    assert max(largest) <= 1.02 * largest[0]  # tiles are cut to whole pixels


@no_shapes
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestCuda:
    @pytest.mark.parametrize("sampler", [Systematic(), Unordered(), Sequential()], ids=repr)
    def test_the_host_never_waits(self, sampler: Sampler) -> None:
        model, images = small_model(sampler=sampler).cuda(), photographs().cuda()
        model(images).logits.sum().backward()  # what is loaded lazily may wait once
        torch.cuda.set_sync_debug_mode("error")
        try:
            for batch in (images, list(images)):
                model(batch).logits.sum().backward()
        finally:
            torch.cuda.set_sync_debug_mode("default")
        assert model.head.weight.grad.isfinite().all()

    @pytest.mark.parametrize("sampler", [Systematic(), Unordered(), Sequential()], ids=repr)
    def test_a_captured_graph_draws_anew_at_each_replay(self, sampler: Sampler) -> None:
        model, images = small_model(sampler=sampler).cuda(), photographs().cuda()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(images).logits.sum().backward()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = model(images)
            out.logits.sum().backward()
        draws = []
        for _ in range(3):
            graph.replay()
            draws.append(out.draw.index.clone())
            torch.testing.assert_close(
                out.patches, read_patches(images, out.yx_level0, model.patch_size)
            )
        assert not torch.equal(draws[0], draws[1])

    @pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
    def test_mixed_precision_keeps_attention_and_draw_in_float32(self, dtype: torch.dtype) -> None:
        # On the GPU only: torch's half-precision products crash on some virtual CPUs.
        model = small_model().cuda()
        with torch.autocast("cuda", dtype=dtype):
            out = model(photographs().cuda())
        assert out.log_attention.dtype == out.draw.weight.dtype == torch.float32
        total = out.log_attention.exp().sum((1, 2))
        torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-5)
        out.logits.float().sum().backward()
        assert all(parameter.grad is not None for parameter in model.parameters())

    def test_images_may_stay_on_the_host(self) -> None:
        model, images = small_model().cuda().eval(), photographs()
        torch.testing.assert_close(
            model(images).logits, model(images.cuda()).logits, rtol=1e-3, atol=1e-4
        )
        torch.testing.assert_close(
            model(list(images)).logits, model(images.cuda()).logits, rtol=1e-3, atol=1e-4
        )


def test_the_state_dict_is_stable() -> None:
    """Checkpoints depend on these names; a change needs a migration."""
    assert [name for name in small_model().state_dict() if "feature" not in name] == [
        "attention.network.layers.0.weight",
        "attention.network.layers.0.bias",
        "attention.network.layers.1.weight",
        "attention.network.layers.1.bias",
        "attention.network.layers.2.weight",
        "attention.prior.strength",
        "head.weight",
        "head.bias",
    ]
    model, other = small_model().eval(), small_model().eval()
    other.load_state_dict(model.state_dict())
    images = photographs()
    assert torch.equal(model(images).logits, other(images).logits)


def test_it_learns_where_to_look() -> None:
    """Bright squares of one of two textures, found and told apart from labels alone."""
    generator = torch.Generator().manual_seed(0)
    images = torch.zeros(64, 1, 256, 256)
    labels = torch.arange(64) % 2
    stripes = (torch.arange(16) % 4 < 2).float().expand(16, 16)
    for image, label in zip(images, labels, strict=True):
        y, x = torch.randint(0, 240, (2,), generator=generator).tolist()
        image[0, y : y + 16, x : x + 16] = stripes if label else stripes.T
    model = AttentionSampling(
        Attention(ConvAttention(1), ContrastPrior(), smoothing=1e-4),
        ConvFeature(1, (8, 16), (3, 3), (1, 2), (1, 1)),
        nn.Linear(16, 2),
        patch_size=(24, 24),
        n_patches=4,
        overview_size=(32, 32),
    )
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(40):
        optimiser.zero_grad()
        nn.functional.cross_entropy(4 * model(images).logits, labels).backward()
        optimiser.step()
    model.eval()
    out = model(images)
    assert (out.logits.argmax(-1) == labels).float().mean() > 0.9
    overview = as_batch(images).overviews((32, 32))[:, 0]
    on_target = (out.log_attention.exp() * (overview > 0.05)).sum((1, 2))
    assert on_target.mean() > 0.5


@no_shapes
def test_bad_settings_say_what_to_do() -> None:
    with pytest.raises(InputError, match="n_patches must be at least 1, but is 0"):
        small_model(n_patches=0)
    with pytest.raises(InputError, match=r"patch_size must be \(height, width\)"):
        small_model(patch_size=(0, 10))
    with pytest.raises(InputError, match=r"overview_size must be \(height, width\)"):
        small_model(overview_size=(10, 10.5))
    with pytest.raises(InputError, match="cannot draw n=301 cells without replacement from 300"):
        small_model(n_patches=301)(photographs())


def test_a_diverged_attention_network_is_named() -> None:
    model = small_model()
    nn.init.constant_(model.head.weight, float("nan"))  # a diverged head is the loss's to notice
    assert model(photographs()).logits.isnan().all()
    for parameter in model.attention.parameters():
        nn.init.constant_(parameter, float("nan"))
    with pytest.raises(InputError, match="image 0 of the batch holds NaN"):
        model(photographs())
