"""Attention sampling, the baselines it is compared with, and the networks they are built from."""

from foveate.models.attention import Attention, ConvAttention, PooledAttention, UniformAttention
from foveate.models.attention_sampling import AttentionSampling
from foveate.models.cnn import CNN
from foveate.models.contrast import ContrastPrior
from foveate.models.features import ConvFeature, IlseFeature, LeNetFeature, LocatedFeature, UnitNorm
from foveate.models.guidance import guidance
from foveate.models.head import ScaledLinear
from foveate.models.initialise import glorot_
from foveate.models.jitter import Jitter
from foveate.models.mil import DeepMIL, MILAttention
from foveate.models.resnet import ResNet, resnet8, resnet8_cnn, resnet8_max, resnet16_cnn
from foveate.models.timm_feature import TimmFeature

__all__ = [
    "CNN",
    "Attention",
    "AttentionSampling",
    "ContrastPrior",
    "ConvAttention",
    "ConvFeature",
    "DeepMIL",
    "IlseFeature",
    "Jitter",
    "LeNetFeature",
    "LocatedFeature",
    "MILAttention",
    "PooledAttention",
    "ResNet",
    "ScaledLinear",
    "TimmFeature",
    "UniformAttention",
    "UnitNorm",
    "glorot_",
    "guidance",
    "resnet8",
    "resnet8_cnn",
    "resnet8_max",
    "resnet16_cnn",
]
