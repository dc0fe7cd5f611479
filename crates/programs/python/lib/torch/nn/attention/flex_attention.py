"""`torch.nn.attention.flex_attention`: compiled kernels, which are not modeled."""

from _refused import Missing as _Missing

flex_attention, create_block_mask, create_mask, BlockMask = (
    _Missing(
        f"torch.nn.attention.flex_attention.{name}", "use torch.nn.functional.scaled_dot_product_attention with a mask"
    )
    for name in ("flex_attention", "create_block_mask", "create_mask", "BlockMask")
)

from torch import _names

__getattr__ = _names.refuses(__name__)
