from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from foveate.errors import FoveateError, InputError, MissingExtraError
from foveate.models import (
    ConvFeature,
    IlseFeature,
    Jitter,
    LeNetFeature,
    LocatedFeature,
    ResNet,
    TimmFeature,
    UnitNorm,
    glorot_,
    resnet8,
    resnet8_cnn,
    resnet8_max,
    resnet16_cnn,
)

FEATURES = [
    (ConvFeature(3), (50, 50), 64),
    (ConvFeature(3, (16, 32, 64), strides=(2, 2, 1), pools=(1, 1, 1)), (32, 32), 64),
    (LeNetFeature(3), (50, 50), 32),
    (IlseFeature(3), (27, 27), 512),
    (IlseFeature(3, (40, 31), 100), (40, 31), 100),
    (resnet8(3), (100, 100), 32),
    (resnet8_max(3), (100, 100), 128),
]


@pytest.mark.parametrize(("network", "size", "length"), FEATURES)
def test_features_have_norm_one(network: Any, size: tuple[int, int], length: int) -> None:
    feature = network(torch.rand(4, 3, *size))
    assert feature.shape == (4, length)
    assert network.out_features == length
    torch.testing.assert_close(feature.norm(dim=-1), torch.ones(4))


def test_half_precision_features_are_normalised_in_single_precision() -> None:
    feature = UnitNorm()(torch.rand(4, 7).bfloat16())
    assert feature.dtype == torch.float32
    torch.testing.assert_close(feature.norm(dim=-1), torch.ones(4))


def convolutions(network: nn.Module) -> list[nn.Conv2d]:
    """Those of the main path: 3x3 and larger."""
    layers = [layer for layer in network.modules() if isinstance(layer, nn.Conv2d)]
    return [layer for layer in layers if layer.kernel_size[0] > 1]


def test_the_paper_s_layers() -> None:
    assert [c.kernel_size[0] for c in convolutions(LeNetFeature(1))] == [7, 3, 3, 3]
    assert [c.out_channels for c in convolutions(LeNetFeature(1))] == [32] * 4
    assert [(c.kernel_size[0], c.out_channels) for c in convolutions(IlseFeature(3))] == [
        (4, 36),
        (3, 48),
    ]
    assert [c.out_channels for c in convolutions(resnet8(3))] == [32] * 7  # and the head
    assert [c.out_channels for c in convolutions(resnet8_cnn(3))] == [32] * 8
    widths = [c.out_channels for c in convolutions(resnet16_cnn(1))]
    assert widths == [32] * 5 + [64] * 4 + [128] * 4 + [256] * 2  # 15, and the head


def test_cnn_features_keep_their_length() -> None:
    feature = resnet16_cnn(1)(torch.rand(2, 1, 64, 64))
    assert feature.shape == (2, 256)
    assert not torch.allclose(feature.norm(dim=-1), torch.ones(2))


def test_location_changes_the_feature() -> None:
    network = LocatedFeature(LeNetFeature(1), 32)
    patches = torch.rand(1, 1, 20, 20).expand(2, -1, -1, -1)
    feature = network(patches, torch.tensor([[0.0, 0.0], [1.0, 1.0]]))
    torch.testing.assert_close(feature.norm(dim=-1), torch.ones(2))
    assert not torch.allclose(feature[0], feature[1])


def test_glorot_bounds_weights_and_clears_biases() -> None:
    layer: Any = glorot_(nn.Sequential(nn.Conv2d(8, 8, 3), nn.Linear(10, 2)))
    assert layer[0].weight.abs().max() <= (6 / (72 + 72)) ** 0.5
    assert layer[1].bias.abs().max() == 0


def test_sizes_that_do_not_fit_say_so() -> None:
    with pytest.raises(InputError, match=r"at least 9x9, but has \(8, 27\)"):
        IlseFeature(3, (8, 27))
    with pytest.raises(InputError, match="one entry for each layer, but have 2, 3, 3 and 3"):
        ConvFeature(1, (8, 8))
    with pytest.raises(InputError, match="one entry for each block, but have 2 and 3"):
        ResNet(1, (8, 8))


def test_without_timm_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'foveate\[timm\]'") as caught:
        TimmFeature("resnet18")
    assert isinstance(caught.value, FoveateError | ImportError)


def test_timm_is_asked_for_a_headless_backbone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}

    class Backbone(nn.Module):
        num_features = 5
        pretrained_cfg = SimpleNamespace(mean=(0.4, 0.5, 0.6), std=(0.5, 0.5, 0.5)).__dict__

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x.mean((2, 3)), x.new_ones(len(x), 2)], dim=1)

    def create_model(name: str, **options: Any) -> Backbone:
        asked.update(options, name=name)
        return Backbone()

    timm = ModuleType("timm")
    monkeypatch.setattr(timm, "create_model", create_model, raising=False)
    monkeypatch.setitem(sys.modules, "timm", timm)
    feature = TimmFeature("tiny", in_channels=3, drop_rate=0.1)
    assert asked == {
        "name": "tiny",
        "pretrained": False,
        "in_chans": 3,
        "num_classes": 0,
        "drop_rate": 0.1,
    }
    grey = feature(torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1).expand(2, 3, 8, 8))
    torch.testing.assert_close(grey[:, :3], torch.zeros(2, 3))
    torch.testing.assert_close(grey.norm(dim=-1), torch.ones(2))


@pytest.mark.parametrize("in_channels", [1, 3])
def test_a_real_timm_backbone(in_channels: int) -> None:
    pytest.importorskip("torchvision", exc_type=ImportError)
    pytest.importorskip("timm")
    feature = TimmFeature("resnet10t", in_channels=in_channels)
    out = feature(torch.rand(2, in_channels, 64, 64))
    assert out.shape == (2, feature.out_features)
    torch.testing.assert_close(out.norm(dim=-1), torch.ones(2))


def test_jitter_bends_each_patch_in_training_only() -> None:
    jitter, patches = Jitter(0.2), torch.rand(2, 1, 32, 32)
    twins = patches[:1].repeat(2, 1, 1, 1)
    first, second = jitter(twins)
    assert not torch.equal(first, second)
    assert torch.equal(Jitter(0.0)(patches), patches)
    assert torch.equal(jitter.eval()(patches), patches)
    # What comes from outside the patch does not reach its middle.
    flat = torch.ones(8, 3, 33, 33)
    torch.testing.assert_close(jitter.train()(flat)[..., 8:25, 8:25], flat[..., 8:25, 8:25])


def test_jitter_keeps_type_and_gradient() -> None:
    patches = torch.rand(2, 1, 16, 16, dtype=torch.bfloat16, requires_grad=True)
    bent = Jitter(0.1)(patches)
    assert bent.dtype == torch.bfloat16
    bent.float().sum().backward()
    assert patches.grad is not None
