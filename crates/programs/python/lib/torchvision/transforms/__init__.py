"""Changes of images: shapes and types are right, and values that are not computed are not known."""

import torch
from _refused import Missing
from torchvision._image import Image as _Image
from torchvision._image import height_and_width as _height_and_width
from torchvision._image import resized as _resized


def _changed(img):
    """An image whose values nobody knows: the change is random, or is not computed here."""
    return img if isinstance(img, _Image) else torch.empty_like(img)


class _Change:
    """A change; its text has the arguments that a program gave."""

    def _extra(self):
        return "?"

    def __repr__(self):
        return f"{type(self).__name__}({self._extra()})"


class Compose(_Change):
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, img):
        for transform in self.transforms:
            img = transform(img)
        return img

    def __repr__(self):
        return "\n    ".join([f"{type(self).__name__}(", *map(str, self.transforms)]) + "\n)"


class ToTensor(_Change):
    def __call__(self, pic):
        if isinstance(pic, _Image):
            return torch.empty((pic.channels, pic.height, pic.width), dtype=torch.float32)
        if not hasattr(pic, "dtype") or isinstance(pic, torch.Tensor):
            raise TypeError(f"pic should be PIL Image or ndarray. Got {type(pic)}")
        if pic.ndim not in (2, 3):
            raise ValueError(f"pic should be 2/3 dimensional. Got {pic.ndim} dimensions.")
        made = torch.tensor(pic)
        made = (made[:, :, None] if pic.ndim == 2 else made).permute(2, 0, 1).contiguous()
        return made.to(torch.get_default_dtype()).div(255) if made.dtype == torch.uint8 else made

    def _extra(self):
        return ""


class PILToTensor(_Change):
    def __call__(self, pic):
        if isinstance(pic, _Image):
            return torch.empty((pic.channels, pic.height, pic.width), dtype=torch.uint8)
        if isinstance(pic, torch.Tensor):
            return pic
        return torch.tensor(pic).permute(2, 0, 1)

    def _extra(self):
        return ""


ToImage = PILToTensor


class Normalize(_Change):
    def __init__(self, mean, std, inplace=False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, tensor):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"img should be Tensor Image. Got {type(tensor)}")
        if not tensor.is_floating_point():
            raise TypeError(f"Input tensor should be a float tensor. Got {tensor.dtype}.")
        made = tensor if self.inplace else tensor.clone()
        mean, std = (torch.as_tensor(values, dtype=made.dtype, device=made.device) for values in (self.mean, self.std))
        mean, std = (values.view(-1, 1, 1) if values.dim() == 1 else values for values in (mean, std))
        return made.sub_(mean).div_(std)

    def _extra(self):
        return f"mean={self.mean}, std={self.std}"


class ConvertImageDtype(_Change):
    _scales = True

    def __init__(self, dtype, scale=None):
        self.dtype = dtype
        if scale is not None:
            self._scales = scale

    def __call__(self, img):
        if not isinstance(img, torch.Tensor) or img.dtype == self.dtype:
            return img
        if not self._scales:
            return img.to(self.dtype)
        if img.is_floating_point() and self.dtype.is_floating_point:
            return img.to(self.dtype)
        if img.dtype == torch.uint8 and self.dtype.is_floating_point:
            return img.to(self.dtype) / 255
        raise NotImplementedError(
            f"torchvision.transforms.{type(self).__name__} from {img.dtype} to {self.dtype} is not modeled here: use Tensor.to"
        )


class ToDtype(ConvertImageDtype):
    def __init__(self, dtype, scale=False):
        super().__init__(dtype, scale)


class _Random(_Change):
    """A change that happens or not; the shape stays."""

    _refused = ("expand",)

    def __init__(self, *args, **kwargs):
        self._given = ", ".join([*map(str, args), *(f"{name}={value}" for name, value in kwargs.items())])
        for name in self._refused:
            if kwargs.get(name):
                raise NotImplementedError(
                    f"torchvision.transforms.{type(self).__name__} with {name}= is not modeled here: its size is random; leave it out"
                )

    def __call__(self, img):
        return _changed(img)


class _Flip(_Random):
    def __init__(self, p=0.5):
        self.p = p

    def _extra(self):
        return f"p={self.p}"


class RandomHorizontalFlip(_Flip):
    pass


class RandomVerticalFlip(_Flip):
    pass


for _name in (
    "RandomRotation ColorJitter RandomAffine RandomErasing GaussianBlur AutoAugment RandAugment TrivialAugmentWide RandomPerspective "
    "RandomGrayscale RandomInvert RandomAutocontrast RandomEqualize RandomSolarize RandomPosterize RandomAdjustSharpness AugMix"
).split():
    globals()[_name] = type(_name, (_Random,), {"__module__": __name__})


class Resize(_Change):
    def __init__(self, size, interpolation=None, max_size=None, antialias=True):
        if max_size is not None:
            raise NotImplementedError(
                "torchvision.transforms.Resize with max_size= is not modeled here: give both sizes"
            )
        self.size = size

    def __call__(self, img):
        if isinstance(self.size, (tuple, list)) and len(self.size) == 2:
            return _resized(img, *self.size)
        size = self.size if isinstance(self.size, int) else self.size[0]
        height, width = _height_and_width(img)
        if height <= width:
            return _resized(img, size, int(size * width / height))
        return _resized(img, int(size * height / width), size)

    def _extra(self):
        return f"size={self.size}, interpolation=bilinear, max_size=None, antialias=True"


class _Crop(_Change):
    def __init__(self, size, *args, **kwargs):
        self.size = (size, size) if isinstance(size, int) else tuple(size) * (3 - len(size))

    def __call__(self, img):
        return _resized(img, *self.size)


class CenterCrop(_Crop):
    def _extra(self):
        return f"size={self.size}"


class RandomCrop(_Crop):
    pass


class RandomResizedCrop(_Crop):
    pass


class Grayscale(_Change):
    def __init__(self, num_output_channels=1):
        self.num_output_channels = num_output_channels

    def __call__(self, img):
        height, width = _height_and_width(img)
        if isinstance(img, _Image):
            return _Image(self.num_output_channels, height, width)
        return torch.empty(
            (*img.shape[:-3], self.num_output_channels, height, width), dtype=img.dtype, device=img.device
        )

    def _extra(self):
        return f"num_output_channels={self.num_output_channels}"


class Pad(_Change):
    def __init__(self, padding, fill=0, padding_mode="constant"):
        padding = (padding,) * 4 if isinstance(padding, int) else tuple(padding) * (4 // len(padding))
        self.left, self.top, self.right, self.bottom = padding

    def __call__(self, img):
        height, width = _height_and_width(img)
        return _resized(img, height + self.top + self.bottom, width + self.left + self.right)


class Lambda(_Change):
    def __init__(self, lambd):
        self.lambd = lambd

    def __call__(self, img):
        return self.lambd(img)

    def _extra(self):
        return ""


class ToPILImage(_Change):
    def __init__(self, mode=None):
        pass

    def __call__(self, pic):
        if isinstance(pic, torch.Tensor):
            return _Image(pic.shape[0] if pic.dim() == 3 else 1, *tuple(pic.shape[-2:]))
        return _Image(pic.shape[2] if pic.ndim == 3 else 1, *tuple(pic.shape[:2]))

    def _extra(self):
        return ""


class RandomApply(_Change):
    """Changes that happen or not: one that changes the shape has no shape that is known."""

    def __init__(self, transforms, p=0.5):
        self.transforms, self.p = transforms, p

    def __call__(self, img):
        made = img
        for transform in self.transforms:
            made = transform(made)
        if _height_and_width(made) != _height_and_width(img):
            raise NotImplementedError(
                "torchvision.transforms.RandomApply of a change of the size is not modeled here: the size would be random; leave it out"
            )
        return _changed(img)


class InterpolationMode:
    NEAREST, BILINEAR, BICUBIC = "nearest", "bilinear", "bicubic"


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ("v2", "functional"):
        raise AttributeError(name)
    return Missing(f"torchvision.transforms.{name}", "leave it out, or put a tensor of its result's shape in its place")
