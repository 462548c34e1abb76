"""Looking first and classifying later, with a model that has learnt in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from foveate import Sampler, read_patches
from foveate.coordinates import Grid
from foveate.models import LeNetFeature
from models.building import photographs, small_model
from problems import UNBIASED, Outcomes


class FixedAttention(nn.Module):
    """Logits that are a weight themselves."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, overview: Tensor) -> Tensor:
        return self.logits.expand(len(overview), *self.logits.shape)


@pytest.mark.parametrize("training", [True, False])
def test_a_model_that_has_not_changed_sees_what_it_would_have_seen(
    training: bool, device: torch.device
) -> None:
    model, images = small_model().to(device).train(training), photographs().to(device)

    def chance() -> torch.Generator | None:
        return torch.Generator(device).manual_seed(3) if training else None

    glance = model.look(images, chance())
    first, second = model(images, chance()), model(images, glance=glance)
    assert not glance.log_attention.requires_grad
    assert torch.equal(glance.yx_level0, second.yx_level0)
    assert torch.equal(first.patches, second.patches)
    assert torch.equal(first.draw.weight, second.draw.weight)
    torch.testing.assert_close(first.logits, second.logits)


def test_attention_is_that_of_now() -> None:
    model, images = small_model(), photographs()
    glance = model.look(images)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    out = model(images, glance=glance)
    assert not torch.equal(out.log_attention, glance.log_attention)
    out.logits.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_a_look_leaves_no_trace() -> None:
    attention = nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 1, 1))
    model = small_model(attention=attention).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.look(photographs())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize(("sampler", "outcomes_of"), UNBIASED, ids=lambda value: repr(value)[:11])
def test_every_weight_gets_the_gradient_of_the_full_model_of_now(
    sampler: Sampler,
    outcomes_of: Callable[[Tensor, int], Outcomes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All draws of the whole model, enumerated, with an update between look and forward."""
    logits = torch.tensor([[0.3, -0.5, 2.0], [0.0, 1.0, -1.0]], dtype=torch.float64)
    model = small_model(
        attention=FixedAttention(logits),
        feature=LeNetFeature(3, channels=4),
        head=nn.Linear(4, 2),
        patch_size=(16, 16),
        n_patches=3,
        sampler=sampler,
    ).double()
    image = torch.rand(1, 3, 60, 90, dtype=torch.float64)
    outcomes = outcomes_of(logits.flatten().softmax(0).view(2, 3), 3)
    images = image.expand(len(outcomes.probability), -1, -1, -1)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "rand", lambda shape, **_: outcomes.chance.reshape(shape))
        glance = model.look(images)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter)
    mean = outcomes.probability @ model(images, glance=glance).logits

    grid = Grid((2, 3), (20, 15))
    corners = grid.patch_corner(grid.cell_of(torch.arange(6)), (60, 90), (16, 16))
    features = model.feature(read_patches(image, corners[None], (16, 16))[0])
    full = model.head(model.attention(image)[0].flatten().softmax(0) @ features)
    torch.testing.assert_close(mean, full, rtol=0, atol=1e-10)
    for output in (0, 1):
        got = torch.autograd.grad(mean[output], list(model.parameters()), retain_graph=True)
        expected = torch.autograd.grad(full[output], list(model.parameters()), retain_graph=True)
        torch.testing.assert_close(got, expected, rtol=0, atol=1e-10)
