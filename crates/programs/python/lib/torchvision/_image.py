"""An image of which only the size is known, in the place of PIL's."""


class Image:
    def __init__(self, channels, height, width):
        self.channels, self.height, self.width = channels, height, width

    size = property(lambda self: (self.width, self.height))
    mode = property(lambda self: "L" if self.channels == 1 else "RGB")

    def resized(self, height, width):
        return Image(self.channels, height, width)

    def convert(self, mode):
        return Image(1 if mode == "L" else 3, self.height, self.width)

    def __repr__(self):
        return f"<image of {self.width} by {self.height}, whose values are not known here>"


def height_and_width(image):
    return (image.height, image.width) if isinstance(image, Image) else tuple(image.shape[-2:])


def resized(image, height, width):
    if isinstance(image, Image):
        return image.resized(height, width)
    import torch

    return torch.empty((*image.shape[:-2], height, width), dtype=image.dtype, device=image.device)
