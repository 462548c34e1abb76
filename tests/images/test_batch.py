from __future__ import annotations

import torch

from foveate.images import ImageBatch, ListBatch, TensorBatch, as_batch


def test_what_becomes_what() -> None:
    tensor = torch.zeros(2, 3, 8, 9)
    assert isinstance(as_batch(tensor), TensorBatch)
    assert isinstance(as_batch(tensor.permute(0, 2, 3, 1).numpy()), TensorBatch)
    assert isinstance(as_batch(list(tensor)), ListBatch)
    batch = as_batch(tensor)
    assert as_batch(batch) is batch
    assert (len(batch), batch.sizes) == (2, [(8, 9)] * 2)


def test_an_overview_of_the_image_s_own_size_is_the_image() -> None:
    tensor = torch.rand(2, 3, 8, 9)
    assert as_batch(tensor).overviews((8, 9)) is tensor


def test_batches_move(device: torch.device) -> None:
    tensors = as_batch(torch.rand(2, 3, 8, 9)).to(device)
    assert tensors.overviews((4, 4)).device.type == device.type
    listed = as_batch([torch.rand(3, 8, 9)])
    assert listed.to(device) is listed
    if device.type == "cuda":
        pinned = as_batch(torch.rand(2, 3, 8, 9)).pin_memory()
        assert isinstance(pinned, TensorBatch)
        assert pinned.pixels.is_pinned()
        assert isinstance(listed.pin_memory(), ImageBatch)
