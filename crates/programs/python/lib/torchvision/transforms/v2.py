"""Changes of images, as far as their shapes go."""

from torchvision.transforms import *
