"""Models besides residual networks, layer by layer: their parameters, and what they keep for the backward."""

import torch
from torch import nn

from torchvision.models import pretrained


class _Classifier(nn.Module):
    def forward(self, x):
        x = self.features(x)
        x = self.avgpool(x)
        x = torch.flatten(x, 1)
        x = self.classifier(x)
        return x


class AlexNet(_Classifier):
    def __init__(self, num_classes=1000, dropout=0.5):
        super().__init__()
        sizes = ((3, 64, 11, 4, 2), (64, 192, 5, 1, 2), (192, 384, 3, 1, 1), (384, 256, 3, 1, 1), (256, 256, 3, 1, 1))
        layers = []
        for i, size in enumerate(sizes):
            layers += [nn.Conv2d(*size), nn.ReLU(inplace=True)] + ([nn.MaxPool2d(3, 2)] if i in (0, 1, 4) else [])
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(dropout),
            nn.Linear(256 * 6 * 6, 4096),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(inplace=True),
            nn.Linear(4096, num_classes),
        )


_VGG = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


class VGG(_Classifier):
    def __init__(self, features, num_classes=1000, init_weights=True, dropout=0.5):
        super().__init__()
        self.features = features
        self.avgpool = nn.AdaptiveAvgPool2d((7, 7))
        self.classifier = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, 4096),
            nn.ReLU(True),
            nn.Dropout(p=dropout),
            nn.Linear(4096, num_classes),
        )


def _vgg(depth, has_norm):
    def make(**settings):
        layers, inputs = [], 3
        for count, outputs in zip(_VGG[depth], (64, 128, 256, 512, 512)):
            for _ in range(count):
                layers.append(nn.Conv2d(inputs, outputs, 3, padding=1))
                if has_norm:
                    layers.append(nn.BatchNorm2d(outputs))
                layers.append(nn.ReLU(inplace=True))
                inputs = outputs
            layers.append(nn.MaxPool2d(2, 2))
        return VGG(nn.Sequential(*layers), **settings)

    return pretrained(make)


class Encoder1DBlock(nn.Module):
    def __init__(self, heads, width, mlp_width, dropout, attention_dropout, norm):
        super().__init__()
        self.ln_1 = norm(width)
        self.self_attention = nn.MultiheadAttention(width, heads, dropout=attention_dropout, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.ln_2 = norm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, mlp_width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(mlp_width, width),
            nn.Dropout(dropout),
        )

    def forward(self, input):
        x = self.ln_1(input)
        x, _ = self.self_attention(x, x, x, need_weights=False)
        x = self.dropout(x)
        x = x + input
        y = self.ln_2(x)
        y = self.mlp(y)
        return x + y


class VisionTransformer(nn.Module):
    def __init__(
        self,
        image_size,
        patch_size,
        num_layers,
        num_heads,
        hidden_dim,
        mlp_dim,
        dropout=0.0,
        attention_dropout=0.0,
        num_classes=1000,
    ):
        super().__init__()
        self.patch_size, self.hidden_dim = patch_size, hidden_dim
        self.conv_proj = nn.Conv2d(3, hidden_dim, patch_size, patch_size)
        self.class_token = nn.Parameter(torch.zeros(1, 1, hidden_dim))

        def norm(width):
            return nn.LayerNorm(width, eps=1e-6)

        self.encoder = _Encoder(
            (image_size // patch_size) ** 2 + 1,
            num_layers,
            num_heads,
            hidden_dim,
            mlp_dim,
            dropout,
            attention_dropout,
            norm,
        )
        self.heads = nn.Sequential(nn.Linear(hidden_dim, num_classes))

    def forward(self, x):
        n, _, height, width = x.shape
        x = self.conv_proj(x)
        x = x.reshape(n, self.hidden_dim, (height // self.patch_size) * (width // self.patch_size))
        x = x.permute(0, 2, 1)
        batch_class_token = self.class_token.expand(n, -1, -1)
        x = torch.cat([batch_class_token, x], dim=1)
        x = self.encoder(x)
        x = x[:, 0]
        x = self.heads(x)
        return x


class _Encoder(nn.Module):
    def __init__(self, length, num_layers, heads, width, mlp_width, dropout, attention_dropout, norm):
        super().__init__()
        self.pos_embedding = nn.Parameter(torch.empty(1, length, width).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.Sequential(
            *(Encoder1DBlock(heads, width, mlp_width, dropout, attention_dropout, norm) for _ in range(num_layers))
        )
        self.ln = norm(width)

    def forward(self, input):
        input = input + self.pos_embedding
        return self.ln(self.layers(self.dropout(input)))


def _vit(patch_size, num_layers, num_heads, hidden_dim, mlp_dim, image_size=224):
    def make(**settings):
        sizes = {"image_size": image_size, **settings}
        return VisionTransformer(
            patch_size=patch_size,
            num_layers=num_layers,
            num_heads=num_heads,
            hidden_dim=hidden_dim,
            mlp_dim=mlp_dim,
            **sizes,
        )

    return pretrained(make)


class _DenseLayer(nn.Module):
    def __init__(self, inputs, growth, bottleneck, drop_rate):
        super().__init__()
        self.norm1, self.relu1 = nn.BatchNorm2d(inputs), nn.ReLU(inplace=True)
        self.conv1 = nn.Conv2d(inputs, bottleneck * growth, 1, bias=False)
        self.norm2, self.relu2 = nn.BatchNorm2d(bottleneck * growth), nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(bottleneck * growth, growth, 3, padding=1, bias=False)
        self.drop_rate = drop_rate

    def _bottleneck(self, inputs):
        concatenated = torch.cat(inputs, 1)
        return self.conv1(self.relu1(self.norm1(concatenated)))

    def forward(self, inputs):
        bottleneck = self._bottleneck(inputs)
        features = self.conv2(self.relu2(self.norm2(bottleneck)))
        if self.drop_rate > 0:
            features = nn.functional.dropout(features, p=self.drop_rate, training=self.training)
        return features


class _DenseBlock(nn.ModuleDict):
    def __init__(self, count, inputs, bottleneck, growth, drop_rate):
        super().__init__()
        for i in range(count):
            self.add_module(f"denselayer{i + 1}", _DenseLayer(inputs + i * growth, growth, bottleneck, drop_rate))

    def forward(self, init_features):
        features = [init_features]
        for _, layer in self.items():
            features.append(layer(features))
        return torch.cat(features, 1)


class DenseNet(nn.Module):
    def __init__(
        self,
        growth_rate=32,
        block_config=(6, 12, 24, 16),
        num_init_features=64,
        bn_size=4,
        drop_rate=0,
        num_classes=1000,
    ):
        super().__init__()
        layers = {
            "conv0": nn.Conv2d(3, num_init_features, 7, 2, 3, bias=False),
            "norm0": nn.BatchNorm2d(num_init_features),
            "relu0": nn.ReLU(inplace=True),
            "pool0": nn.MaxPool2d(3, 2, 1),
        }
        width = num_init_features
        for i, count in enumerate(block_config):
            layers[f"denseblock{i + 1}"] = _DenseBlock(count, width, bn_size, growth_rate, drop_rate)
            width += count * growth_rate
            if i != len(block_config) - 1:
                layers[f"transition{i + 1}"] = nn.Sequential(
                    nn.BatchNorm2d(width),
                    nn.ReLU(inplace=True),
                    nn.Conv2d(width, width // 2, 1, bias=False),
                    nn.AvgPool2d(2, 2),
                )
                width //= 2
        layers["norm5"] = nn.BatchNorm2d(width)
        self.features = nn.Sequential()
        for name, layer in layers.items():
            self.features.add_module(name, layer)
        self.classifier = nn.Linear(width, num_classes)

    def forward(self, x):
        features = self.features(x)
        out = nn.functional.relu(features, inplace=True)
        out = nn.functional.adaptive_avg_pool2d(out, (1, 1))
        out = torch.flatten(out, 1)
        out = self.classifier(out)
        return out


def _densenet(**sizes):
    return pretrained(lambda **settings: DenseNet(**{**sizes, **settings}))


MAKERS = {
    "alexnet": pretrained(AlexNet),
    **{f"vgg{depth}{'_bn' * has_norm}": _vgg(depth, has_norm) for depth in _VGG for has_norm in (False, True)},
    "vit_b_16": _vit(16, 12, 12, 768, 3072),
    "vit_b_32": _vit(32, 12, 12, 768, 3072),
    "vit_l_16": _vit(16, 24, 16, 1024, 4096),
    "vit_l_32": _vit(32, 24, 16, 1024, 4096),
    "vit_h_14": _vit(14, 32, 16, 1280, 5120),
    "densenet121": _densenet(),
    "densenet161": _densenet(growth_rate=48, block_config=(6, 12, 36, 24), num_init_features=96),
    "densenet169": _densenet(block_config=(6, 12, 32, 32)),
    "densenet201": _densenet(block_config=(6, 12, 48, 32)),
    "AlexNet": AlexNet,
    "VGG": VGG,
    "VisionTransformer": VisionTransformer,
    "DenseNet": DenseNet,
}
