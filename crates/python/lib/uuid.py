"""Random identifiers."""

import random as _random


class UUID:
    def __init__(self, hex=None, int=None):
        self.int = int if int is not None else __import__("builtins").int(hex.replace("-", ""), 16)

    hex = property(lambda self: f"{self.int:032x}")

    def __str__(self):
        text = self.hex
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def uuid4():
    return UUID(int=_random.Random(0).getrandbits(128))


uuid1 = uuid4
