#!/usr/bin/env python3
"""Lists the convolutions of networks that people train, without their batch.

    pip install torch torchvision torchaudio timm transformers diffusers segmentation-models-pytorch ultralytics
    python scripts/networks.py > networks.txt
    python scripts/networks.py 2 sequences > more.txt                # two processes; what `sequences` lists alone

A line is a name, the size of its images, and a convolution as PyTorch asks cuDNN for it: whether it is transposed, how many of its
images one image of the batch becomes, dimensions; then input (without batch), filter, output (without batch), stride, padding, dilation.
Networks are made on the meta device and run once there, with two images, so that neither a GPU nor much memory is needed.
"""

import sys
from functools import partial
from multiprocessing import Pool

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

SIZES = [32, 64, 96, 112, 128, 160, 192, 224, 256, 288, 299, 320, 384, 448, 512]
FEW = [96, 128, 160, 192, 224, 256, 288, 320, 384, 448, 512]

TORCHVISION = """alexnet convnext_tiny convnext_small convnext_base convnext_large densenet121 densenet169 densenet201 efficientnet_b0
efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_v2_s efficientnet_v2_m googlenet inception_v3 maxvit_t
mnasnet1_0 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small regnet_x_400mf regnet_x_1_6gf regnet_x_3_2gf regnet_x_8gf regnet_y_400mf
regnet_y_800mf regnet_y_1_6gf regnet_y_3_2gf regnet_y_8gf regnet_y_16gf resnet18 resnet34 resnet50 resnet101 resnet152 resnext50_32x4d
resnext101_32x8d shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x2_0 squeezenet1_0 squeezenet1_1 swin_t swin_s swin_b swin_v2_t
vgg11 vgg11_bn vgg13 vgg16 vgg16_bn vgg19 vgg19_bn vit_b_16 vit_b_32 vit_l_16 wide_resnet50_2""".split()
SEGMENTATION = "deeplabv3_resnet50 deeplabv3_resnet101 deeplabv3_mobilenet_v3_large fcn_resnet50 fcn_resnet101 lraspp_mobilenet_v3_large".split()
TIMM = """resnet10t resnet14t resnet26 resnet26d resnet50d resnetv2_50 resnetv2_101 resnet50_gn resnet101d seresnet50 seresnext50_32x4d
ecaresnet50d skresnet34 resnext50_32x4d res2net50_26w_4s resnest50d cspresnet50 cspdarknet53 darknet53 hrnet_w18 hrnet_w32 dla34 dla60 dpn68
dpn92 densenet121 vovnet39a ese_vovnet39b selecsls60 regnety_008 regnety_016 regnety_032 regnety_040 regnety_080 regnetx_008 regnetz_c16
efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_lite0 tf_efficientnet_b0 tf_efficientnet_b3 tf_efficientnetv2_s
tf_efficientnetv2_b0 efficientnetv2_rw_s mobilenetv2_100 mobilenetv2_140 mobilenetv3_large_100 mobilenetv3_small_100 mobilenetv4_conv_small
mobilenetv4_conv_medium mobilenetv4_hybrid_medium mnasnet_100 fbnetc_100 spnasnet_100 ghostnet_100 ghostnetv2_100 rexnet_100 rexnet_150
mobileone_s0 mobileone_s1 repvgg_a0 repvgg_b0 hardcorenas_a lcnet_100 tinynet_a nf_resnet50 nfnet_f0 dm_nfnet_f0 eca_nfnet_l0 convnext_atto
convnext_pico convnext_nano convnext_tiny convnext_small convnextv2_atto convnextv2_nano convnextv2_tiny convnextv2_base edgenext_small
inception_next_tiny convmixer_768_32 mambaout_tiny caformer_s18 convformer_s18 poolformer_s12 poolformerv2_s12 inception_v4
inception_resnet_v2 xception41 xception65 legacy_xception legacy_seresnet50 nasnetalarge pnasnet5large vgg16 vit_tiny_patch16_224
vit_small_patch16_224 vit_small_patch32_224 vit_base_patch16_224 vit_base_patch32_224 vit_base_patch8_224 vit_small_patch8_224
vit_large_patch16_224 vit_large_patch14_224 vit_huge_patch14_224 vit_small_patch14_dinov2 vit_base_patch14_dinov2 vit_large_patch14_dinov2
deit_small_patch16_224 beit_base_patch16_224 eva02_small_patch14_224 swin_tiny_patch4_window7_224 swin_base_patch4_window7_224
swin_large_patch4_window7_224 swinv2_tiny_window8_256 maxvit_tiny_tf_224 coatnet_0_rw_224 coat_tiny levit_256 pit_s_224 pvt_v2_b0 pvt_v2_b2
twins_svt_small xcit_small_12_p16_224 cait_s24_224 mobilevit_s mobilevitv2_100 efficientformer_l1 efficientformerv2_s0 efficientvit_b1
efficientvit_m2 fastvit_t8 fastvit_sa12 repvit_m1 nextvit_small tiny_vit_5m_224 gcvit_tiny focalnet_tiny_srf davit_tiny crossvit_small_240
volo_d1_224 visformer_small vit_relpos_small_patch16_224 vit_base_r50_s16_224 hiera_tiny_224 mvitv2_tiny hgnet_tiny hgnetv2_b0 rdnet_tiny
starnet_s2 tresnet_m botnet26t_256 samvit_base_patch16_224 mixer_b16_224""".split()
# Whose convolutions are those of patches, for the most part.
FIXED = "vit_ deit beit eva swin cait xcit volo crossvit twins pit_ levit gcvit focal hiera mvit mixer maxvit coat davit".split()
VIDEO = "r3d_18 mc3_18 r2plus1d_18 s3d".split()
SMP = "Unet:resnet18 Unet:resnet34 Unet:resnet50 Unet:efficientnet-b0 UnetPlusPlus:resnet34 FPN:resnet34 FPN:resnet50 DeepLabV3Plus:resnet34 DeepLabV3Plus:resnet50 Linknet:resnet34 PSPNet:resnet34 MAnet:resnet34 PAN:resnet34".split()
DETECTION = "retinanet_resnet50_fpn fcos_resnet50_fpn fasterrcnn_resnet50_fpn fasterrcnn_mobilenet_v3_large_fpn".split()


class Seen(TorchDispatchMode):
    def __init__(self, images):
        super().__init__()
        self.images, self.found = images, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if function is torch.ops.aten.convolution.default:
            x, w, _, stride, padding, dilation, transposed = args[:7]
            x, w, y = list(x.shape), list(w.shape), list(result.shape)
            dims = len(w) - 2

            def wide(given):
                return list(given) * (dims if len(given) == 1 else 1)

            stride, padding, dilation = wide(stride), wide(padding), wide(dilation)
            if dims == 1:
                x, w, y = (v[:2] + [1] + v[2:] for v in (x, w, y))
                stride, padding, dilation, dims = [1] + stride, [0] + padding, [1] + dilation, 2
            if x[0] % self.images == 0:
                line = [int(transposed), x[0] // self.images, dims, *x[1:], *w, *y[1:], *stride, *padding, *dilation]
                self.found[" ".join(map(str, line))] = True
        return result


def conv(*layers):
    return nn.Sequential(*layers)


def digits():
    return conv(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.MaxPool2d(2))


def digits_padded():
    return conv(nn.Conv2d(1, 16, 5, padding=2), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5, padding=2), nn.MaxPool2d(2))


def lenet(channels):
    return lambda: conv(nn.Conv2d(channels, 6, 5), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5))


def small_colors():
    layers, inside = [], 3
    for outside in (32, 64, 128, 256):
        layers += [stack(inside, [(outside, 3, 1, 1)] * 2, nn.Conv2d), nn.MaxPool2d(2)]
        inside = outside
    return conv(*layers[:-1])


def atari():
    return conv(nn.Conv2d(4, 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3))


def gan(channels, width, size):
    def discriminator():
        layers, inside, at = [nn.Conv2d(channels, width, 4, 2, 1)], width, size // 2
        while at > 4:
            layers.append(nn.Conv2d(inside, inside * 2, 4, 2, 1))
            inside, at = inside * 2, at // 2
        return conv(*layers, nn.Conv2d(inside, 1, 4, 1, 0))

    return discriminator


def generator(channels, width, size, noise=100):
    def made():
        inside = width * size // 8
        layers, at = [nn.ConvTranspose2d(noise, inside, 4, 1, 0)], 4
        while at < size // 2:
            layers.append(nn.ConvTranspose2d(inside, inside // 2, 4, 2, 1))
            inside, at = inside // 2, at * 2
        return conv(*layers, nn.ConvTranspose2d(inside, channels, 4, 2, 1))

    return made


class UNet(nn.Module):
    def __init__(self, channels, width, has_transposed=True):
        super().__init__()

        def double(a, b):
            return conv(nn.Conv2d(a, b, 3, padding=1), nn.Conv2d(b, b, 3, padding=1))

        sizes = [width * 2**n for n in range(5)]
        self.down = nn.ModuleList([double(a, b) for a, b in zip([channels, *sizes], sizes)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(sizes, sizes[1:])])
        self.join = nn.ModuleList([double(b, a) for a, b in zip(sizes, sizes[1:])])
        self.out = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = kept.pop()
        for up, join in reversed(list(zip(self.up, self.join))):
            across, x = kept.pop(), up(x)
            # An image of an odd size is padded.
            x = nn.functional.pad(x, (0, across.shape[3] - x.shape[3], 0, across.shape[2] - x.shape[2]))
            x = join(torch.cat([across, x], 1))
        return self.out(x)


def autoencoder():
    down = stack(3, [(outside, 3, 2, 1) for outside in (32, 64, 128, 256)], nn.Conv2d)
    return conv(down, stack(256, [(outside, 3, 2, 1, 1) for outside in (128, 64, 32, 3)], nn.ConvTranspose2d))


def small_resnet(depth):
    def made():
        import torchvision

        model = torchvision.models.get_model(depth)
        model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        return model

    return made


def translation():
    down = stack(3, [(64, 7), (128, 3, 2, 1), (256, 3, 2, 1)], nn.Conv2d)
    up = stack(256, [(128, 3, 2, 1, 1), (64, 3, 2, 1, 1)], nn.ConvTranspose2d)
    same = [nn.ReflectionPad2d(1), nn.Conv2d(256, 256, 3)]
    return conv(nn.ReflectionPad2d(3), down, *same, up, nn.ReflectionPad2d(3), nn.Conv2d(64, 3, 7))


def patches():
    return stack(6, [(64, 4, 2, 1), (128, 4, 2, 1), (256, 4, 2, 1), (512, 4, 1, 1), (1, 4, 1, 1)], nn.Conv2d)


def patch_embedding(width, patch):
    return lambda: nn.Conv2d(3, width, patch, patch)


def of_torchvision(name, **options):
    def made():
        import torchvision

        return torchvision.models.get_model(name, weights=None, **options)

    return made


def of_timm(name, size):
    def made():
        import timm

        try:
            return timm.create_model(name, img_size=size)
        except TypeError:
            return timm.create_model(name)

    return made


def of_smp(name):
    def made():
        import segmentation_models_pytorch as smp

        kind, encoder = name.split(":")
        return getattr(smp, kind)(encoder_name=encoder, encoder_weights=None, classes=2)

    return made


def of_detection(name):
    def made():
        import torchvision

        model = torchvision.models.get_model(name, weights=None, weights_backbone=None)

        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone, self.head = model.backbone, getattr(model, "rpn", model).head

            def forward(self, x):
                features = list(self.backbone(x).values())
                self.head(features)

        return Part()

    return made


class Diffusion(nn.Module):
    """A network of diffusers with its other inputs."""

    def __init__(self, kind):
        super().__init__()
        from diffusers import AutoencoderKL, UNet2DConditionModel, UNet2DModel

        self.kind = kind
        if kind == "sd":
            self.net = UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8)
        elif kind == "sdxl":
            self.net = UNet2DConditionModel(
                sample_size=128,
                cross_attention_dim=2048,
                block_out_channels=(320, 640, 1280),
                layers_per_block=2,
                attention_head_dim=(5, 10, 20),
                down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
                up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
                use_linear_projection=True,
            )
        elif kind == "vae":
            self.net = AutoencoderKL(
                block_out_channels=(128, 256, 512, 512),
                layers_per_block=2,
                down_block_types=("DownEncoderBlock2D",) * 4,
                up_block_types=("UpDecoderBlock2D",) * 4,
            )
        else:
            self.net = UNet2DModel(
                in_channels=int(kind[-1]),
                out_channels=int(kind[-1]),
                layers_per_block=2,
                block_out_channels=(128, 128, 256, 256, 512, 512),
                down_block_types=("DownBlock2D",) * 4 + ("AttnDownBlock2D", "DownBlock2D"),
                up_block_types=("UpBlock2D", "AttnUpBlock2D") + ("UpBlock2D",) * 4,
            )
            if kind.startswith("small"):
                self.net = UNet2DModel(
                    in_channels=int(kind[-1]),
                    out_channels=int(kind[-1]),
                    layers_per_block=2,
                    block_out_channels=(64, 128, 128),
                    down_block_types=("DownBlock2D", "AttnDownBlock2D", "AttnDownBlock2D"),
                    up_block_types=("AttnUpBlock2D", "AttnUpBlock2D", "UpBlock2D"),
                )

    def forward(self, x):
        if self.kind == "vae":
            return self.net(x).sample
        times = torch.zeros(x.shape[0], device="meta", dtype=torch.int64)
        if self.kind.startswith("sd"):
            width = 768 if self.kind == "sd" else 2048
            return self.net(x, times, torch.empty(x.shape[0], 77, width, device="meta"))
        return self.net(x, times)


def networks():
    """Name, size, channels and what makes each network."""
    for name in TORCHVISION:
        for size in [224, 256, 384] if name.startswith(("swin", "maxvit", "vit")) else SIZES:
            options = (
                {"image_size": size}
                if name.startswith("vit")
                else {"input_size": (size, size)}
                if name.startswith("maxvit")
                else {}
            )
            yield f"torchvision {name}", (size, size), 3, of_torchvision(name, **options)
    for name in SEGMENTATION:
        for size in [224, 256, 320, 384, 448, 480, 512, 513, 520]:
            yield f"torchvision {name}", (size, size), 3, of_torchvision(name, weights_backbone=None)
    for name in TIMM:
        for size in (
            [224, 256, 384] if any(word in name for word in FIXED) else [224, 256, 128, 160, 192, 288, 320, 384]
        ):
            yield f"timm {name}", (size, size), 3, of_timm(name, size)
    for name in VIDEO:
        for frames, size in [(8, 112), (16, 112), (32, 112), (16, 128), (8, 224), (16, 224), (32, 224)]:
            yield f"torchvision {name}", (frames, size, size), 3, of_torchvision(name)
    for name in SMP:
        for size in [128, 192, 224, 256, 320, 384, 512]:
            yield f"smp {name}", (size, size), 3, of_smp(name)
    for name in DETECTION:
        sides = [(800, 800), (800, 1088), (800, 1216), (800, 1344), (1024, 1024)]
        for size in [(320, 320), (512, 512), (640, 640), *sides]:
            yield f"torchvision {name}", size, 3, of_detection(name)
    for kind, channels, sizes in [
        ("sd", 4, [32, 64, 96]),
        ("sdxl", 4, [64, 128]),
        ("vae", 3, [256, 512]),
        ("ddpm3", 3, [32, 64, 128, 256]),
        ("ddpm1", 1, [32, 64]),
        ("small3", 3, [32, 64]),
        ("small1", 1, [28, 32]),
    ]:
        for size in sizes:
            yield f"diffusers {kind}", (size, size), channels, (lambda kind=kind: Diffusion(kind))
    small = [
        ("digits", 1, digits, [28]),
        ("digits_padded", 1, digits_padded, [28]),
        ("lenet1", 1, lenet(1), [28, 32]),
        ("lenet3", 3, lenet(3), [32]),
        ("colors", 3, small_colors, [32, 64]),
        ("atari", 4, atari, [84]),
        ("discriminator1", 1, gan(1, 64, 32), [32]),
        ("discriminator3", 3, gan(3, 64, 64), [64]),
        ("discriminator128", 3, gan(3, 64, 128), [128]),
        ("autoencoder", 3, autoencoder, [32, 64, 128]),
        ("resnet18 small", 3, small_resnet("resnet18"), [32, 64]),
        ("resnet34 small", 3, small_resnet("resnet34"), [32, 64]),
        ("resnet50 small", 3, small_resnet("resnet50"), [32, 64]),
        ("translation", 3, translation, [128, 256]),
        ("patches", 6, patches, [256]),
    ]
    for name, channels, made, sizes in small:
        for size in sizes:
            yield f"plain {name}", (size, size), channels, made
    for channels in (1, 3):
        for width in (32, 64):
            for size in (128, 256, 512):
                yield f"plain unet{channels} {width}", (size, size), channels, partial(UNet, channels, width)
    small = [("generator1", 1, 64, 32), ("generator3", 3, 64, 64), ("generator128", 3, 64, 128)]
    for name, channels, width, size in small:
        yield f"plain {name}", (1, 1), 100, generator(channels, width, size)
    for patch in (8, 14, 16, 32):
        for width in (192, 384, 512, 768, 1024, 1152, 1280, 1408):
            for size in SIZES + [336, 378, 392, 518, 1024]:
                yield f"plain patch{patch} {width}", (size, size), 3, patch_embedding(width, patch)
    yield from sequences()
    yield from images()


def stack(channels, layers, kind=nn.Conv1d):
    """Convolutions one after the other: outputs, filter, and the rest of what the layer takes."""
    made = []
    for outputs, *rest in layers:
        made.append(kind(channels, outputs, *rest))
        channels = outputs
    return conv(*made)


def temporal(channels, width, filters, levels):
    """Dilated causal convolutions (Bai, Kolter and Koltun)."""

    class Causal(nn.Module):
        def __init__(self, inside, outside, dilation):
            super().__init__()
            padding = (filters - 1) * dilation
            self.padding = padding
            self.first = nn.Conv1d(inside, outside, filters, 1, padding, dilation)
            self.second = nn.Conv1d(outside, outside, filters, 1, padding, dilation)
            self.around = nn.Conv1d(inside, outside, 1) if inside != outside else nn.Identity()

        def forward(self, x):
            y = self.second(self.first(x)[:, :, : -self.padding])[:, :, : -self.padding]
            return y + self.around(x)

    return lambda: conv(*[Causal(width if n else channels, width, 2**n) for n in range(levels)])


def dilated(width, levels):
    """WaveNet's pairs of gates."""
    return lambda: stack(width, [(width, 2, 1, 0, 2**n) for n in range(levels)])


class TextFilters(nn.Module):
    """Filters of several widths beside each other (Kim)."""

    def __init__(self, width, filters, is_image):
        super().__init__()
        self.is_image = is_image
        kinds = [nn.Conv2d(1, filters, (k, width)) if is_image else nn.Conv1d(width, filters, k) for k in (2, 3, 4, 5)]
        self.filters = nn.ModuleList(kinds)

    def forward(self, x):
        for layer in self.filters:
            layer(x.transpose(1, 2)[:, None] if self.is_image else x)


class Inception1d(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.first = nn.Conv1d(channels, 32, 1)
        self.wide = nn.ModuleList([nn.Conv1d(32, 32, k, padding="same", bias=False) for k in (9, 10, 19, 20, 39, 40)])
        self.pooled, self.next = nn.Conv1d(channels, 32, 1), nn.Conv1d(128, 32, 1)

    def forward(self, x):
        y = self.first(x)
        y = torch.cat([self.pooled(x), *[layer(y)[:, :, : x.shape[2]] for layer in self.wide[::2]]], 1)
        y = self.next(y)
        for layer in self.wide:
            layer(y)


def residual1d(channels, filters):
    layers, inside = [(64, 15, 4, 7)], 64
    for outside in (64, 128, 256, 512):
        layers += [(outside, filters, 1 if outside == 64 else 2, filters // 2), (outside, filters, 1, filters // 2)]
    return lambda: stack(channels, layers)


class UNet1d(nn.Module):
    """Residual blocks with three taps at four scales, as diffusion over sequences has them."""

    def __init__(self, channels, width):
        super().__init__()
        sizes = [width * n for n in (1, 2, 4, 8)]

        def block(a, b):
            return conv(nn.Conv1d(a, b, 3, padding=1), nn.Conv1d(b, b, 3, padding=1))

        self.first, self.last = nn.Conv1d(channels, width, 7, padding=3), nn.Conv1d(width, channels, 1)
        self.down = nn.ModuleList([block(a, a) for a in sizes])
        self.step = nn.ModuleList([nn.Conv1d(a, b, 4, 2, 1) for a, b in zip(sizes, sizes[1:])])
        self.up = nn.ModuleList([block(a + b, b) for a, b in zip(sizes, sizes[1:])])
        self.back = nn.ModuleList([nn.Conv1d(b, a, 3, padding=1) for a, b in zip(sizes, sizes[1:])])

    def forward(self, x):
        x = self.first(x)
        for layer, step in zip(self.down, self.step):
            x = step(layer(x))
        x = self.down[-1](x)
        for up, back in reversed(list(zip(self.up, self.back))):
            x = nn.functional.interpolate(x, scale_factor=2.0)
            up(x.new_empty(x.shape[0], up[0].in_channels, x.shape[2]))
            x = back(x)
        self.last(x)


class HifiGan(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv1d(80, 512, 7, 1, 3), nn.Conv1d(32, 1, 7, 1, 3)
        scales = [(512, 8, 16), (256, 8, 16), (128, 2, 4), (64, 2, 4)]
        self.up = nn.ModuleList([nn.ConvTranspose1d(c, c // 2, k, r, (k - r) // 2) for c, r, k in scales])
        self.blocks = nn.ModuleList()
        for c, _, _ in scales:
            kinds = [(k, d) for k in (3, 7, 11) for d in (1, 3, 5)]
            self.blocks.append(conv(*[nn.Conv1d(c // 2, c // 2, k, 1, (k * d - d) // 2, d) for k, d in kinds]))

    def forward(self, x):
        x = self.first(x)
        for up, block in zip(self.up, self.blocks):
            x = block(up(x))
        self.last(x)


def hifi_scales():
    sizes = [(128, 15, 1, 7), (128, 41, 2, 20, 1, 4), (256, 41, 2, 20, 1, 16), (512, 41, 4, 20, 1, 16)]
    sizes += [(1024, 41, 4, 20, 1, 16), (1024, 41, 1, 20, 1, 16), (1024, 5, 1, 2), (1, 3, 1, 1)]
    return stack(1, sizes)


class HifiPeriods(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [(32, (5, 1), (3, 1), (2, 0)), (128, (5, 1), (3, 1), (2, 0)), (512, (5, 1), (3, 1), (2, 0))]
        layers += [(1024, (5, 1), (3, 1), (2, 0)), (1024, (5, 1), 1, (2, 0)), (1, (3, 1), 1, (1, 0))]
        self.net = stack(1, layers, nn.Conv2d)

    def forward(self, x):
        for period in (2, 3, 5, 7, 11):
            y = nn.functional.pad(x, (0, -x.shape[2] % period))
            self.net(y.reshape(y.shape[0], 1, -1, period))


def of_transformers(kind, **options):
    """A network of transformers that is made from its configuration, with sound as input."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            import transformers

            self.net = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**options))

        def forward(self, x):
            return self.net.feature_extractor(x[:, 0]) if kind == "Wav2Vec2" else self.net(x)

    return Net


def of_torchaudio(name):
    def made():
        import torchaudio

        return getattr(torchaudio.models, name)()

    return made


def positional(width, groups=16):
    return lambda: nn.Conv1d(width, width, 128, padding=64, groups=groups)


def conformer(width, filters):
    return lambda: conv(
        nn.Conv1d(width, 2 * width, 1),
        nn.GLU(1),
        nn.Conv1d(width, width, filters, 1, filters // 2, groups=width),
        nn.Conv1d(width, width, 1),
    )


def subsampling(width):
    return lambda: conv(nn.Conv2d(1, width, 3, 2), nn.Conv2d(width, width, 3, 2))


def causal_depthwise(width):
    return lambda: nn.Conv1d(width, width, 4, padding=3, groups=width)


def eeg(channels):
    return lambda: conv(
        nn.Conv2d(1, 8, (1, 64), padding="same", bias=False),
        nn.Conv2d(8, 16, (channels, 1), groups=8, bias=False),
        nn.AvgPool2d((1, 4)),
        nn.Conv2d(16, 16, (1, 16), padding=(0, 8), groups=16, bias=False),
        nn.Conv2d(16, 16, 1, bias=False),
    )


def text_lines():
    """What reads lines of text: convolutions before a recurrent layer."""
    return conv(
        nn.Conv2d(1, 64, 3, 1, 1),
        nn.MaxPool2d(2),
        nn.Conv2d(64, 128, 3, 1, 1),
        nn.MaxPool2d(2),
        nn.Conv2d(128, 256, 3, 1, 1),
        nn.Conv2d(256, 256, 3, 1, 1),
        nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
        nn.Conv2d(256, 512, 3, 1, 1),
        nn.Conv2d(512, 512, 3, 1, 1),
        nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
        nn.Conv2d(512, 512, 2, 1, 0),
    )


class Pix2Pix(nn.Module):
    """The U-Net of eight scales that translates images."""

    def __init__(self, width):
        super().__init__()
        down = [width, width * 2, width * 4] + [width * 8] * 5
        self.down = nn.ModuleList([nn.Conv2d(a, b, 4, 2, 1, bias=a == 3) for a, b in zip([3, *down], down)])
        up = [(width * 8, width * 8)] + [(width * 16, width * 8)] * 3
        up += [(width * 16, width * 4), (width * 8, width * 2), (width * 4, width), (width * 2, 3)]
        self.up = nn.ModuleList([nn.ConvTranspose2d(a, b, 4, 2, 1) for a, b in up])
        self.out = nn.Conv2d(width * 2, 3, 4, padding=1)

    def forward(self, x):
        kept = []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
        x = kept.pop()
        for layer in self.up[:-1]:
            x = torch.cat([layer(x), kept.pop()], 1)
        self.up[-1](x)
        # Other programs grow the image and convolve it.
        self.out(nn.functional.pad(nn.functional.interpolate(x, scale_factor=2), (1, 0, 1, 0)))


def super_resolution(width, first):
    def made():
        layers = [nn.Conv2d(3, width, first, 1, first // 2), nn.Conv2d(width, width, 3, 1, 1)]
        for _ in range(2):
            layers += [nn.Conv2d(width, width * 4, 3, 1, 1), nn.PixelShuffle(2)]
        return conv(*layers, nn.Conv2d(width, width, 3, 1, 1), nn.Conv2d(width, 3, first, 1, first // 2))

    return made


def judge(width):
    """A discriminator whose filters have three taps and whose strides alternate."""
    sizes = [width * n for n in (1, 1, 2, 2, 4, 4, 8, 8)]
    return lambda: stack(3, [(size, 3, 1 + n % 2, 1) for n, size in enumerate(sizes)], nn.Conv2d)


def vector_quantized(width, inside):
    return lambda: conv(
        nn.Conv2d(3, width // 2, 4, 2, 1),
        nn.Conv2d(width // 2, width, 4, 2, 1),
        nn.Conv2d(width, width, 3, 1, 1),
        nn.Conv2d(width, inside, 3, 1, 1),
        nn.Conv2d(inside, width, 1),
        nn.Conv2d(width, 64, 1),
        nn.Conv2d(64, width, 3, 1, 1),
        nn.ConvTranspose2d(width, width // 2, 4, 2, 1),
        nn.ConvTranspose2d(width // 2, 3, 4, 2, 1),
    )


class DiffusionUNet(nn.Module):
    """Residual blocks and linear attention at each scale; what each scale leaves is joined twice on the way up."""

    def __init__(self, channels, width, scales):
        super().__init__()
        outs = [width * n for n in scales]
        ins = [width, *outs[:-1]]
        last = len(outs) - 1

        def residual(a, b):
            return nn.ModuleList([nn.Conv2d(a, b, 3, 1, 1), nn.Conv2d(b, b, 3, 1, 1), nn.Conv2d(a, b, 1)])

        def attention(a):
            return nn.ModuleList([nn.Conv2d(a, 384, 1, bias=False), nn.Conv2d(128, a, 1)])

        self.first, self.last = nn.Conv2d(channels, width, 7, 1, 3), nn.Conv2d(width, channels, 1)
        self.down = nn.ModuleList([nn.ModuleList([residual(a, a), attention(a)]) for a in ins])
        # Four neighbours become channels, or a stride halves the image: programs do either.
        self.fold = nn.ModuleList([nn.Conv2d(4 * a, b, 1) for a, b in zip(ins[:last], outs)])
        self.step = nn.ModuleList([nn.Conv2d(a, b, 4, 2, 1) for a, b in zip(ins[:last], outs)])
        self.bottom = nn.Conv2d(ins[-1], outs[-1], 3, 1, 1)
        self.middle = residual(outs[-1], outs[-1])
        self.up = nn.ModuleList([nn.ModuleList([residual(a + b, b), attention(b)]) for a, b in zip(ins, outs)])
        self.back = nn.ModuleList([nn.Conv2d(b, a, 3, 1, 1) for a, b in zip(ins, outs)])
        self.end = residual(2 * width, width)

    def forward(self, x):
        def through(block, x):
            first, second, around = block
            return second(first(x)) + around(x)

        def attend(block, x):
            return block[1](block[0](x)[:, :128]) + x

        x = self.first(x)
        for n, (block, attention) in enumerate(self.down):
            x = attend(attention, through(block, x))
            if n < len(self.step):
                self.fold[n](nn.functional.pixel_unshuffle(x, 2))
                x = self.step[n](x)
        x = through(self.middle, self.bottom(x))
        for n in reversed(range(len(self.up))):
            block, attention = self.up[n]
            joined = x.new_empty(x.shape[0], block[2].in_channels, *x.shape[2:])
            x = attend(attention, through(block, joined))
            x = self.back[n](nn.functional.interpolate(x, scale_factor=2) if n else x)
        self.last(through(self.end, torch.cat([x, x], 1)))


def of_ultralytics(name):
    def made():
        from ultralytics.nn.tasks import parse_model, yaml_model_load

        layers, _ = parse_model(yaml_model_load(f"{name}.yaml"), ch=3, verbose=False)

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = layers
                self.layers[-1].stride = torch.tensor([8.0, 16.0, 32.0])

            def forward(self, x):
                kept = []
                for layer in self.layers:
                    at = layer.f
                    x = x if at == -1 else kept[at] if isinstance(at, int) else [x if n == -1 else kept[n] for n in at]
                    x = layer(x)
                    kept.append(x)

        return Net()

    return made


def sequences():
    """Networks with convolutions over one dimension, of sound, series and text."""
    for name, channels, made, lengths in [
        ("temporal 30", 2, temporal(2, 30, 7, 8), [400, 200, 600]),
        ("temporal 10", 1, temporal(1, 10, 8, 8), [1020, 520, 220]),
        ("temporal 25", 1, temporal(1, 25, 7, 8), [784]),
        ("temporal 64", 64, temporal(64, 64, 3, 6), [100, 128, 256, 512]),
        ("temporal 150", 88, temporal(88, 150, 5, 4), [128, 256, 512]),
        ("temporal 600", 600, temporal(600, 600, 3, 4), [80, 100]),
        ("dilated 32", 32, dilated(32, 10), [1024, 4096, 16000]),
        ("dilated 64", 64, dilated(64, 10), [1024, 4096, 8000, 16000]),
        ("dilated 128", 128, dilated(128, 10), [1024, 4096, 8000, 16000]),
        ("text 100", 100, lambda: TextFilters(100, 100, False), [50, 64, 100, 128, 256, 512]),
        ("text 128", 128, lambda: TextFilters(128, 128, False), [50, 64, 100, 128, 256, 512]),
        ("text 300", 300, lambda: TextFilters(300, 100, False), [50, 64, 100, 128, 256, 512]),
        ("text images 100", 100, lambda: TextFilters(100, 100, True), [50, 64, 100, 128, 256, 512]),
        ("text images 128", 128, lambda: TextFilters(128, 100, True), [50, 64, 100, 128, 256, 512]),
        ("text images 300", 300, lambda: TextFilters(300, 100, True), [50, 64, 100, 128, 256, 512]),
        ("inception 1", 1, lambda: Inception1d(1), [128, 256, 500, 512, 1000, 1024]),
        ("inception 12", 12, lambda: Inception1d(12), [250, 500, 1000, 2500, 5000]),
        ("residual 1", 1, residual1d(1, 7), [128, 187, 256, 512, 1000, 1024, 2048]),
        ("residual 12", 12, residual1d(12, 7), [1000, 2500, 4096, 5000]),
        ("residual 12 wide", 12, residual1d(12, 17), [1000, 2500, 4096, 5000]),
        ("unet 1", 1, lambda: UNet1d(1, 64), [64, 128, 256]),
        ("unet 32", 32, lambda: UNet1d(32, 64), [128, 256]),
        ("m5", 1, lambda: stack(1, [(32, 80, 16)]), [8000, 16000]),
        ("m5 128", 1, lambda: stack(1, [(128, 80, 4)]), [8000, 16000]),
        ("hifigan", 80, HifiGan, [32, 64]),
        ("hifigan scales", 1, hifi_scales, [8192, 16384, 4096]),
        ("hifigan periods", 1, HifiPeriods, [8192, 16384]),
    ]:
        for length in lengths:
            yield f"plain {name}", (length,), channels, made
    for width in (384, 512, 768, 1024, 1280):
        for mels in (80, 128):
            layers = [(width, 3, 1, 1), (width, 3, 2, 1)]
            yield f"plain whisper {mels} {width}", (3000,), mels, partial(stack, mels, layers)
    seconds = [16000 * n for n in (1, 2, 3, 4, 5, 8, 10, 12, 15, 16, 20)]
    for length in seconds:
        yield "transformers Wav2Vec2", (length,), 1, of_transformers("Wav2Vec2")
        yield (
            "transformers Wav2Vec2 large",
            (length,),
            1,
            of_transformers("Wav2Vec2", feat_extract_norm="layer", conv_bias=True),
        )
        frames = (length - 80) // 320
        for width in (768, 1024):
            yield f"plain positional {width}", (frames,), width, positional(width)
    for length in (16384, 44100):
        yield "transformers Dac", (length,), 1, of_transformers("Dac")
    for frames in (50, 100, 150, 200, 249, 250, 300, 400, 500):
        for width, filters in [(144, 31), (144, 32), (176, 31), (256, 31), (256, 15), (512, 31), (512, 9)]:
            yield f"plain conformer {width} {filters}", (frames,), width, conformer(width, filters)
    for frames in (200, 400, 600, 800, 1000, 1200, 1600, 2000):
        for width in (144, 256, 512):
            yield f"plain subsampling {width}", (frames, 80), 1, subsampling(width)
    for length in (64, 128, 256, 512, 1024, 2048):
        for width in (128, 256, 512, 768, 1024, 1536, 2048, 5120):
            yield f"plain causal {width}", (length,), width, causal_depthwise(width)
    for length in (16000, 32000, 48000):
        yield "torchaudio conv_tasnet_base", (length,), 1, of_torchaudio("conv_tasnet_base")
    for channels, length in [(22, 1125), (22, 1000), (64, 128), (64, 480), (32, 384), (62, 200), (14, 256)]:
        yield f"plain eeg {channels}", (channels, length), 1, eeg(channels)


def images():
    """Networks of images that are not square, of generators, of detection and of diffusion."""
    for channels, width in [(1, 32), (3, 32), (1, 64), (3, 64)]:
        for size in [(640, 959), (480, 640), (320, 480), (256, 512), (360, 480), (512, 1024), (572, 572), (96, 128)]:
            yield f"plain unet{channels} {width}", size, channels, partial(UNet, channels, width)
    for name in "resnet18 resnet34 resnet50 resnet101 mobilenet_v2 efficientnet_b0 vgg16".split():
        for size in [(480, 640), (240, 320), (256, 128), (224, 448), (384, 640), (128, 256), (352, 640), (64, 128)]:
            yield f"torchvision {name}", size, 3, of_torchvision(name)
    for name in SEGMENTATION[:2]:
        for size in [(480, 640), (512, 1024), (360, 480), (256, 512), (768, 768)]:
            yield f"torchvision {name}", size, 3, of_torchvision(name, weights_backbone=None)
    for name in SMP:
        for size in [(480, 640), (320, 480), (256, 512), (384, 480), (512, 1024)]:
            yield f"smp {name}", size, 3, of_smp(name)
    for size in [(32, 100), (32, 128), (32, 256), (64, 256)]:
        yield "plain text lines", size, 1, text_lines
    for size in [(640, 640), (320, 320), (416, 416), (512, 512), (384, 640)]:
        for name in "yolov8n yolov8s yolov8m yolov8l yolo11n yolo11s yolo11m yolov5nu yolov5su yolov5mu".split():
            yield f"ultralytics {name}", size, 3, of_ultralytics(name)
    for width in (32, 64):
        for size in [(256, 256), (512, 512)]:
            yield f"plain pix2pix {width}", size, 3, partial(Pix2Pix, width)
    for width, first in [(64, 9), (64, 3), (256, 3)]:
        for size in (24, 32, 48, 64, 96, 128):
            yield f"plain super {width} {first}", (size, size), 3, super_resolution(width, first)
    for size in (64, 88, 96, 128, 192, 256):
        yield "plain judge 64", (size, size), 3, judge(64)
    for width, inside in [(128, 32), (256, 64), (128, 64)]:
        for size in (32, 64, 128, 256):
            yield f"plain quantized {width} {inside}", (size, size), 3, vector_quantized(width, inside)
    for channels in (1, 3, 4):
        for width in (32, 64, 128):
            for size in (32, 64, 128):
                made = partial(DiffusionUNet, channels, width, (1, 2, 4, 8))
                yield f"plain diffusion{channels} {width}", (size, size), channels, made
    small = [(1, 32, 64), (3, 32, 64), (3, 128, 64), (1, 64, 64), (3, 64, 32), (3, 96, 64), (3, 64, 256)]
    for channels, width, size in small:
        yield f"plain generator{channels} {width} {size}", (1, 1), 100, generator(channels, width, size)
        yield f"plain generator{channels} {width} {size} 128", (1, 1), 128, generator(channels, width, size, 128)
        yield f"plain discriminator{channels} {width} {size}", (size, size), channels, gan(channels, width, size)


def run(model, size, channels):
    with Seen(2) as seen, torch.no_grad(), torch.device("meta"):
        model(torch.empty(2, channels, *size))
    return list(seen.found)


def listed(job):
    """A network at one size after the other; it is made again where it runs at no other size than its own."""
    torch.set_num_threads(1)
    name, jobs = job
    kept, rows = None, []
    for size, channels, made in jobs:
        lines, why = [], ""
        for is_training, start in ((True, None), (True, "meta"), (True, "cpu"), (False, "meta")):
            try:
                if start is not None:
                    with torch.device(start):
                        kept = made().train(is_training).to("meta")
                if kept is not None:
                    lines = run(kept, size, channels)
                    break
            except Exception as error:
                why = f"{type(error).__name__}: {error}".split("\n")[0][:150]
        rows.append((size, lines, "" if lines else why))
    return name, rows


PARTS = {"sequences": sequences, "images": images}
JOBS = {}
for network, *job in PARTS[sys.argv[2]]() if len(sys.argv) > 2 else networks():
    JOBS.setdefault(network, []).append(job)
JOBS = list(JOBS.items())


def by_number(number):
    return listed(JOBS[number])


def main():
    with Pool(int(sys.argv[1]) if len(sys.argv) > 1 else 2) as pool:
        for name, rows in pool.imap_unordered(by_number, range(len(JOBS))):
            for size, lines, error in rows:
                if error:
                    print(f"{name} {size}: {error}", file=sys.stderr)
                for line in lines:
                    print(f"{name.replace(' ', ':')} {'x'.join(map(str, size))} {line}", flush=True)


if __name__ == "__main__":
    main()
