"""Changes of images, as far as their shapes go."""

import random as _random

import torch
from torchvision._image import Image as _Image, height_and_width as _height_and_width, resized as _resized


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for transform in self.transforms:
            img = transform(img)
        return img


class ToTensor:
    def __call__(self, pic):
        if isinstance(pic, _Image):
            return torch.empty((pic.channels, pic.height, pic.width), dtype=torch.float32)
        if hasattr(pic, "_to_tensor"):
            return pic._to_tensor()
        return pic


PILToTensor = ToImage = ToTensor


class _Same:
    """Changes that keep the shape."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, img):
        return img


class Normalize(_Same):
    pass


(
    RandomHorizontalFlip,
    RandomVerticalFlip,
    RandomRotation,
    ColorJitter,
    RandomAffine,
    RandomErasing,
    GaussianBlur,
    AutoAugment,
    RandAugment,
    TrivialAugmentWide,
    RandomPerspective,
    RandomGrayscale,
    RandomInvert,
    RandomAutocontrast,
    ConvertImageDtype,
    ToDtype,
) = (
    type(name, (_Same,), {})
    for name in (
        "RandomHorizontalFlip",
        "RandomVerticalFlip",
        "RandomRotation",
        "ColorJitter",
        "RandomAffine",
        "RandomErasing",
        "GaussianBlur",
        "AutoAugment",
        "RandAugment",
        "TrivialAugmentWide",
        "RandomPerspective",
        "RandomGrayscale",
        "RandomInvert",
        "RandomAutocontrast",
        "ConvertImageDtype",
        "ToDtype",
    )
)


class Resize:
    def __init__(self, size, *args, **kwargs):
        self.size = size

    def __call__(self, img):
        if isinstance(self.size, (tuple, list)) and len(self.size) == 2:
            return _resized(img, *self.size)
        size = self.size if isinstance(self.size, int) else self.size[0]
        height, width = _height_and_width(img)
        if height <= width:
            return _resized(img, size, int(size * width / height))
        return _resized(img, int(size * height / width), size)


class _Crop:
    def __init__(self, size, *args, **kwargs):
        self.size = (size, size) if isinstance(size, int) else tuple(size)

    def __call__(self, img):
        return _resized(img, *self.size)


class CenterCrop(_Crop):
    pass


class RandomCrop(_Crop):
    pass


class RandomResizedCrop(_Crop):
    pass


class Grayscale:
    def __init__(self, num_output_channels=1):
        self.channels = num_output_channels

    def __call__(self, img):
        return _Image(self.channels, *_height_and_width(img))


class Pad:
    def __init__(self, padding, *args, **kwargs):
        padding = (padding,) * 4 if isinstance(padding, int) else tuple(padding) * (4 // len(padding))
        self.left, self.top, self.right, self.bottom = padding

    def __call__(self, img):
        height, width = _height_and_width(img)
        return _resized(img, height + self.top + self.bottom, width + self.left + self.right)


class Lambda:
    def __init__(self, lambd):
        self.lambd = lambd

    def __call__(self, img):
        return self.lambd(img)


class ToPILImage:
    def __init__(self, mode=None):
        pass

    def __call__(self, pic):
        channels = pic.shape[0] if len(pic.shape) == 3 else 1
        return _Image(channels, *tuple(pic.shape[-2:]))


class RandomApply:
    def __init__(self, transforms, p=0.5):
        self.transforms = transforms

    def __call__(self, img):
        return img


class InterpolationMode:
    NEAREST, BILINEAR, BICUBIC = "nearest", "bilinear", "bicubic"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("v2", "functional"):
        raise AttributeError(name)
    from _refused import Missing

    return Missing(f"torchvision.transforms.{name}", "leave it out, or put a tensor of its result's shape in its place")
