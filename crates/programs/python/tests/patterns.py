"""Patterns of einops. patterns.txt is what einops prints over PyTorch 2.11."""

import torch
from einops import EinopsError, einsum, pack, parse_shape, rearrange, reduce, repeat, unpack
from einops.layers.torch import Rearrange, Reduce

x = torch.arange(2 * 3 * 4 * 6).view(2, 3, 4, 6)


def show(name, make):
    try:
        made = make()
    except EinopsError as error:
        print(name, "|", str(error).splitlines()[-1].strip())
        return
    for tensor in made if isinstance(made, list) else [made]:
        print(name, "|", tuple(tensor.shape), tensor.stride())


for pattern, lengths in [
        ("b c h w -> b h w c", {}), ("b c (h a) (w d) -> b (h w) (a d c)", dict(a=2, d=3)), ("b c h w -> (b c) h w", {}), ("b ... -> b (...)", {}),
        ("b c ... -> ... c b", {}), ("b c h w -> b c (h w) 1", {}), ("b c h w -> b 1 c () h w", {}), ("b c h w -> b c h w", {}),
        ("b c h w -> b c h", {}), ("b c h -> b c h", {}), ("b (c k) h w -> b c k h w", dict(k=2)), ("b c (h h) w -> b c h w", {}),
        ("b ((c) h) w -> b c", {}), ("(b) c h w -> b c h w", {}), ("b c h w -> b c h w z", {}), ("b c h w -> b c h w", dict(z=3)),
        ("... h w -> ... (w h)", {}), ("b c h 2 -> b c h 2", {})]:
    show(pattern, lambda: rearrange(x, pattern, **lengths))
for pattern, lengths in [
        ("b c h w -> b c h w r", dict(r=2)), ("b c h w -> (r b) c h w", dict(r=3)), ("b c h w -> b c (h 2) (w 2)", {}), ("b c h w -> b n c h w", {}),
        ("1 c h w -> b c h w", dict(b=2)), ("... -> ... d", dict(d=2)), ("b c h w -> b c h", {})]:
    show(pattern, lambda: repeat(x, pattern, **lengths))
for pattern, how in [("b c h w -> b c", "sum"), ("b c (h 2) (w 3) -> b c h w", "max"), ("b c h w -> b c 1 1", "mean"), ("b c h w -> w c", "prod"),
                     ("b c h w -> b c", "median"), ("b c h w -> b c q", "sum"), ("b c (h 5) w -> b c h w", "max"), ("b c h w ->", "min")]:
    show(pattern + " " + how, lambda: reduce(x.float(), pattern, how))
show("list", lambda: rearrange([x[0], x[1]], "n c h w -> c n h w"))
show("einsum", lambda: einsum(x.float(), x.float(), "... h w, ... k w -> ... h k"))
packed, shapes = pack([x, x[:, :, 0], x[:, 0, 0]], "b * w")
print(tuple(packed.shape), shapes)
show("unpack", lambda: unpack(packed, shapes, "b * w"))
show("unpack -1", lambda: unpack(packed, [[-1], [3], [1]], "b * w"))
print(parse_shape(x, "a _ b c"), parse_shape(x, "a ... c"))
layers = torch.nn.Sequential(Rearrange("b c (h p) w -> b h (p c) w", p=2), Reduce("b c ... -> b ...", "max"))
print(layers, layers(x).shape)
