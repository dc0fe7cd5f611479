"""Residual networks, by the shapes of their parameters."""

import torch
from torch import nn


def _conv(inputs, outputs, size=3, stride=1, groups=1, dilation=1):
    return nn.Conv2d(inputs, outputs, size, stride, dilation if size == 3 else 0, dilation, groups, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(
        self,
        inplanes,
        planes,
        stride=1,
        downsample=None,
        groups=1,
        base_width=64,
        dilation=1,
        norm_layer=nn.BatchNorm2d,
    ):
        super().__init__()
        self.conv1 = _conv(inplanes, planes, 3, stride)
        self.bn1 = norm_layer(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = _conv(planes, planes)
        self.bn2 = norm_layer(planes)
        self.downsample, self.stride = downsample, stride

    def forward(self, x):
        identity = x
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.conv2(out)
        out = self.bn2(out)
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        out = self.relu(out)
        return out


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(
        self,
        inplanes,
        planes,
        stride=1,
        downsample=None,
        groups=1,
        base_width=64,
        dilation=1,
        norm_layer=nn.BatchNorm2d,
    ):
        super().__init__()
        width = int(planes * (base_width / 64.0)) * groups
        self.conv1 = _conv(inplanes, width, 1)
        self.bn1 = norm_layer(width)
        self.conv2 = _conv(width, width, 3, stride, groups, dilation)
        self.bn2 = norm_layer(width)
        self.conv3 = _conv(width, planes * self.expansion, 1)
        self.bn3 = norm_layer(planes * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample, self.stride = downsample, stride

    def forward(self, x):
        identity = x
        out = self.conv1(x)
        out = self.bn1(out)
        out = self.relu(out)
        out = self.conv2(out)
        out = self.bn2(out)
        out = self.relu(out)
        out = self.conv3(out)
        out = self.bn3(out)
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        out = self.relu(out)
        return out


class ResNet(nn.Module):
    def __init__(
        self,
        block,
        layers,
        num_classes=1000,
        zero_init_residual=False,
        groups=1,
        width_per_group=64,
        norm_layer=nn.BatchNorm2d,
        **kwargs,
    ):
        super().__init__()
        self._norm_layer, self.inplanes, self.groups, self.base_width = norm_layer, 64, groups, width_per_group
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = norm_layer(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], 2)
        self.layer3 = self._make_layer(block, 256, layers[2], 2)
        self.layer4 = self._make_layer(block, 512, layers[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)

    def _make_layer(self, block, planes, blocks, stride=1):
        downsample = None
        if stride != 1 or self.inplanes != planes * block.expansion:
            downsample = nn.Sequential(
                _conv(self.inplanes, planes * block.expansion, 1, stride), self._norm_layer(planes * block.expansion)
            )
        layers = [block(self.inplanes, planes, stride, downsample, self.groups, self.base_width, 1, self._norm_layer)]
        self.inplanes = planes * block.expansion
        for _ in range(1, blocks):
            layers.append(
                block(
                    self.inplanes, planes, groups=self.groups, base_width=self.base_width, norm_layer=self._norm_layer
                )
            )
        return nn.Sequential(*layers)

    def _forward_impl(self, x):
        x = self.conv1(x)
        x = self.bn1(x)
        x = self.relu(x)
        x = self.maxpool(x)
        x = self.layer1(x)
        x = self.layer2(x)
        x = self.layer3(x)
        x = self.layer4(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        x = self.fc(x)
        return x

    def forward(self, x):
        return self._forward_impl(x)


def pretrained(make):
    def maker(pretrained=False, progress=True, *, weights=None, **settings):
        # Weights that were trained have the same shapes as new ones, and values are not known here anyway.
        return make(**settings)

    return maker


def _maker(block, layers, **settings):
    return pretrained(lambda **kwargs: ResNet(block, layers, **{**settings, **kwargs}))


resnet18, resnet34 = _maker(BasicBlock, [2, 2, 2, 2]), _maker(BasicBlock, [3, 4, 6, 3])
resnet50, resnet101, resnet152 = (_maker(Bottleneck, layers) for layers in ([3, 4, 6, 3], [3, 4, 23, 3], [3, 8, 36, 3]))
wide_resnet50_2 = _maker(Bottleneck, [3, 4, 6, 3], width_per_group=128)
resnext50_32x4d = _maker(Bottleneck, [3, 4, 6, 3], groups=32, width_per_group=4)


class _Weights:
    DEFAULT = IMAGENET1K_V1 = IMAGENET1K_V2 = None


ResNet18_Weights = ResNet34_Weights = ResNet50_Weights = ResNet101_Weights = ResNet152_Weights = _Weights


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name.endswith("_Weights"):
        return _Weights
    from torchvision._more_models import MAKERS

    if name in MAKERS:
        return MAKERS[name]
    from _refused import Missing

    return Missing(f"torchvision.models.{name}", "write the model out with torch.nn")
