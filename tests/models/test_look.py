"""Looking first and classifying later, with a model that has learnt in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from foveate import Sampler
from models.building import check_full_model, enumerable_model, photographs, small_model
from problems import UNBIASED, Outcomes


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
    model, image, outcomes = enumerable_model(sampler, outcomes_of)
    images = image.expand(len(outcomes.probability), -1, -1, -1)
    with monkeypatch.context() as patch:
        patch.setattr(torch, "rand", lambda shape, **_: outcomes.chance.reshape(shape))
        glance = model.look(images)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter)
    check_full_model(model, image, outcomes.probability @ model(images, glance=glance).logits)
