"""Our kernels against PyTorch: in Triton's interpreter, as test_kernels.py runs it, or on a GPU."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from foveate.images import (
    AugmentedBatch,
    Form,
    ImagePool,
    PooledBatch,
    Stack,
    TensorBatch,
    Variation,
)
from foveate.images.memory import resample
from foveate.images.memory.device_reads import kernels_for
from foveate.images.memory.variation import Lens
from foveate.kernels import plain_pytorch

pytest.importorskip("triton")
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cpu") if INTERPRETED else torch.device("cuda", 0)
pytestmark = pytest.mark.skipif(
    not INTERPRETED and not torch.cuda.is_available(), reason="needs a GPU"
)

WHERE = ["device"] if INTERPRETED else ["device", "pinned"]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "contiguous": lambda pixels: pixels,
    "channels last": lambda pixels: pixels.contiguous(memory_format=torch.channels_last),
    "turned": lambda pixels: pixels.mT.contiguous().mT,
    "sliced": lambda pixels: pixels.repeat(2, 1, 1, 2)[::2, :, :, 1:61:2],
}


def bytes_of(count: int, channels: int, height: int, width: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    shape = (count, channels, height, width)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def put(pixels: Tensor, where: str) -> Tensor:
    """The pixels where a kernel is to read them, lying in memory as they do."""
    if INTERPRETED:
        return pixels
    if where == "device":
        return pixels.to(DEVICE)
    pinned = pixels.as_strided((pixels.untyped_storage().nbytes(),), (1,), 0).pin_memory()
    return pinned.as_strided(pixels.shape, pixels.stride(), pixels.storage_offset())


def variation(mirror: tuple[bool, bool], turn: bool, channels: int, b: int = 4) -> Variation:
    generator = torch.Generator().manual_seed(1)
    drawn = Variation.draw(b, (7, 9), generator, shift=0.5, tint=0.1 if channels > 1 else 0.0)
    own = torch.arange(b) % 2 == 0
    return Variation(drawn.shift, drawn.gain, drawn.bias, torch.tensor([mirror] * b), own & turn)


@pytest.fixture(autouse=True)
def used() -> None:
    """The kernels are in use; else all of this would compare PyTorch with itself."""
    assert kernels_for(put(bytes_of(1, 1, 2, 2), "device"), DEVICE)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [1, 3])
def test_patches_are_those_of_pytorch(layout: str, channels: int, where: str) -> None:
    plain = LAYOUTS[layout](bytes_of(5, channels, 40, 30))
    pixels = put(plain, where)
    yx = torch.randint(-15, 45, (4, 3, 2), generator=torch.Generator().manual_seed(0))
    index = torch.tensor([4, 0, 2, 2])
    for dtype, channels_last in zip(DTYPES, (channels == 3, True, False), strict=True):
        form = Form(DEVICE, dtype, channels_last)
        stack = Stack(pixels, index.to(DEVICE))
        patches, inputs = stack.inputs(yx.to(DEVICE), (11, 13), form)
        with plain_pytorch():
            reference = Form(torch.device("cpu"), dtype, channels_last)
            expected = Stack(plain, index).inputs(yx, (11, 13), reference)
        assert torch.equal(patches.cpu(), expected[0])
        # The interpreter cuts bfloat16 off where a GPU rounds.
        cut_off = 2**-8 if INTERPRETED and dtype == torch.bfloat16 else 0.0
        torch.testing.assert_close(inputs.cpu(), expected[1], rtol=0, atol=cut_off)
        assert inputs.dtype == dtype
        assert inputs.is_contiguous(memory_format=form.memory_format)


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize("mirror", list(itertools.product((False, True), repeat=2)))
def test_varied_patches_are_those_of_pytorch(mirror: tuple[bool, bool], turn: bool) -> None:
    side = 30
    yx = torch.randint(-15, 30, (4, 3, 2), generator=torch.Generator().manual_seed(0))
    for channels, channels_last in ((1, False), (3, True)):
        plain = bytes_of(4, channels, side, side)
        lens = Lens(variation(mirror, turn, channels), (7, 7), turn)
        there = Lens(lens.variation.to(DEVICE), (7, 7), turn)
        form = Form(DEVICE, torch.float32, channels_last)
        _, inputs = Stack(put(plain, "device")).inputs(yx.to(DEVICE), (8, 8), form, there)
        whole = Stack(put(plain, "device")).whole_inputs(form, there)
        with plain_pytorch():
            reference = Form(torch.device("cpu"), torch.float32, channels_last)
            assert torch.equal(inputs.cpu(), Stack(plain).inputs(yx, (8, 8), reference, lens)[1])
            assert torch.equal(whole.cpu(), Stack(plain).whole_inputs(reference, lens))


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("turn", [False, True])
def test_images_of_different_sizes_are_those_of_pytorch(turn: bool, where: str) -> None:
    plain = bytes_of(3, 3, 30, 30)
    sizes = [(30, 20), (18, 30), (25, 25)]
    for image, (height, width) in zip(plain, sizes, strict=True):
        image[:, height:] = 0
        image[:, :, width:] = 0
    pixels, extent = put(plain, where), torch.tensor(sizes)
    index = torch.tensor([2, 0, 1, 1])
    yx = torch.randint(-15, 30, (4, 3, 2), generator=torch.Generator().manual_seed(0))
    varied = Lens(variation((True, False), turn, 3), (7, 7), turn)
    there = Lens(varied.variation.to(DEVICE), (7, 7), turn)
    stack = Stack(pixels, index.to(DEVICE), extent=extent.to(DEVICE))
    for lens, on_device in ((None, None), (varied, there)):
        got = stack.inputs(yx.to(DEVICE), (8, 8), Form(DEVICE), on_device)
        with plain_pytorch():
            reference = Stack(plain, index, extent=extent)
            expected = reference.inputs(yx, (8, 8), Form(torch.device("cpu")), lens)
        assert torch.equal(got[0].cpu(), expected[0])
        assert torch.equal(got[1].cpu(), expected[1])


@pytest.mark.parametrize("where", WHERE)
def test_images_are_found_by_their_address(where: str) -> None:
    plain = bytes_of(3, 3, 40, 30)
    others = put(bytes_of(3, 3, 40, 30, seed=1), where)
    pixels = put(plain, where)
    address = pixels.data_ptr() + torch.arange(3, device=DEVICE) * pixels.stride(0)
    yx = torch.tensor([[[5, 6], [-3, 25]]] * 3, device=DEVICE)
    patches, _ = Stack(others, address=address).inputs(yx, (9, 8), Form(DEVICE))
    assert torch.equal(patches.cpu(), Stack(plain).read(yx.cpu(), (9, 8)))


@pytest.mark.parametrize("kind", ["tensor", "pooled"])
@pytest.mark.parametrize("turns", [False, True])
def test_augmented_batches_are_those_of_pytorch(kind: str, turns: bool) -> None:
    pixels = bytes_of(6, 3, 18, 18)
    where = torch.tensor([5, 1, 1, 3])
    pooled = PooledBatch(ImagePool(pixels), where, where)
    inner = TensorBatch(pixels[where]) if kind == "tensor" else pooled
    batch = AugmentedBatch(inner, variation((True, False), turns, 3), (9, 9), turns)
    yx = torch.tensor([[[5, 6], [-3, 12]]] * 4)
    with plain_pytorch():
        form = Form(torch.device("cpu"))
        patches, inputs = batch.read_inputs(yx, (8, 8), form)
        overviews = batch.overviews((9, 9))
        assert torch.equal(batch.overview_inputs((9, 9), form), overviews)
        assert torch.equal(batch.read_patches(yx, (8, 8)), patches)
        assert torch.equal(patches.flatten(0, 1), inputs)
    form = Form(DEVICE)
    moved = batch.to(DEVICE)
    got_patches, got_inputs = moved.read_inputs(yx.to(DEVICE), (8, 8), form)
    assert torch.equal(got_patches.cpu(), patches)
    assert torch.equal(got_inputs.cpu(), inputs)
    got = moved.overview_inputs((9, 9), form).cpu()
    # The overviews themselves may differ by a level, where a half is rounded.
    assert (got - overviews).abs().max() <= 1.5 / 255


@pytest.mark.parametrize(
    ("layout", "size"),
    [
        ("contiguous", (7, 11)),
        ("contiguous", (3, 5)),
        ("channels last", (20, 30)),
        ("turned", (9, 15)),
        ("sliced", (23, 37)),
    ],
)
def test_overviews_are_those_of_pytorch_to_a_level(layout: str, size: tuple[int, int]) -> None:
    plain = LAYOUTS[layout](bytes_of(2, 2, 20, 30))
    got = resample.resample(put(plain, "device"), size)
    with plain_pytorch():
        expected = resample.resample(plain, size)
    away = (got.cpu().int() - expected.int()).abs()
    assert away.max() <= 1
    assert (away > 0).float().mean() < 0.02


@pytest.mark.parametrize("value", [0, 255])
def test_black_and_white_stay_so(value: int) -> None:
    images = torch.full((1, 1, 17, 23), value, dtype=torch.uint8)
    assert (resample.resample(put(images, "device"), (5, 7)) == value).all()


def test_the_operator_is_well_formed() -> None:
    pixels, yx = put(bytes_of(2, 3, 20, 20), "device"), torch.zeros(2, 1, 2).long().to(DEVICE)
    varied = list(variation((True, True), True, 3, b=2).to(DEVICE).tensors)
    for corners, tensors in ((yx, []), (None, []), (yx, varied), (None, varied)):
        for extent in (None, torch.tensor([[20, 20], [15, 18]], device=DEVICE)):
            arguments = (pixels, None, None, extent, corners, [20, 20], DEVICE, torch.float32, True)
            checks = torch.library.opcheck(
                torch.ops.foveate.gather_inputs.default,
                (*arguments, tensors, [5, 5], bool(tensors)),
            )
            assert set(checks.values()) == {"SUCCESS"}


@pytest.mark.skipif(INTERPRETED, reason="needs a GPU")
def test_a_pool_on_the_host_shows_what_one_on_the_device_does() -> None:
    pixels = bytes_of(6, 3, 50, 40)
    where = torch.tensor([5, 1, 3])
    yx, form = torch.tensor([[[5, 6], [-3, 25]]] * 3, device=DEVICE), Form(DEVICE)
    pools = [ImagePool(pixels, resident=resident) for resident in (False, True)]
    assert pools[0].on(DEVICE).is_pinned()
    assert pools[1].on(DEVICE).device == DEVICE
    host, device = (PooledBatch(pool, where, where).to(DEVICE) for pool in pools)
    for size in ((9, 8), (50, 40)):
        assert torch.equal(host.overview_inputs(size, form), device.overview_inputs(size, form))
    for got, expected in zip(
        host.read_inputs(yx, (8, 8), form), device.read_inputs(yx, (8, 8), form), strict=True
    ):
        assert torch.equal(got, expected)


@pytest.mark.skipif(INTERPRETED, reason="needs a GPU")
def test_pinned_images_with_known_overviews_stay_on_the_host() -> None:
    pixels = bytes_of(3, 3, 50, 40)
    known = TensorBatch(pixels).prefetch((9, 8))
    moved = known.pin_memory().to("cuda")
    assert moved.pixels.is_pinned()
    assert moved.overviews((9, 8)).device.type == "cuda"
    assert TensorBatch(pixels).pin_memory().to("cuda").pixels.device.type == "cuda"
    yx, form = torch.tensor([[[5, 6], [-3, 25]]] * 3), Form(DEVICE)
    patches, _ = moved.read_inputs(yx.to(DEVICE), (8, 8), form)
    assert torch.equal(patches.cpu(), known.read_patches(yx, (8, 8)))
    with plain_pytorch():
        assert known.pin_memory().to("cuda").pixels.device.type == "cuda"
