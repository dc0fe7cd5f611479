"""Normal numbers by layers (ziggurat), with numpy's tables, which are computed at the first use."""

import functools
import math
from decimal import Decimal, localcontext

_NORMAL_END, _NORMAL_AREA = 3.6541528853610087963519472518, 0.004928673233974652


@functools.cache
def _tables():
    """Bounds, widths and heights of the layers, in the arithmetic that numpy's tables come from: floats, with exact logarithms."""
    with localcontext() as context:
        context.prec = 40

        def height(x):
            return float(Decimal(-0.5 * x * x).exp())

        x, y = _NORMAL_END, height(_NORMAL_END)
        xs, heights = [0.0] * 256, [1.0] + [0.0] * 255
        xs[255], heights[255] = x, y
        for i in range(254, 0, -1):
            x = math.sqrt(-2 * float(Decimal(_NORMAL_AREA / x + y).ln()))
            y = height(x)
            if i == 38:
                y += math.ulp(y)
            xs[i], heights[i] = x, y
    one = 2.0**52
    widths = [x / one for x in xs]
    widths[0] = _NORMAL_AREA / heights[255] / one
    bounds = [0, 0] + [round(xs[i - 1] / xs[i] * one) for i in range(2, 256)]
    bounds[0] = int(_NORMAL_END * heights[255] / _NORMAL_AREA * one)
    return bounds, widths, heights


def normal(bits):
    bounds, widths, heights = _tables()
    while True:
        drawn = bits.next64()
        layer = drawn & 0xFF
        drawn >>= 8
        place = drawn >> 1 & 0xFFFFFFFFFFFFF
        x = place * widths[layer]
        if drawn & 1:
            x = -x
        if place < bounds[layer]:
            return x
        if layer == 0:
            while True:
                beyond = -(1 / _NORMAL_END) * math.log1p(-bits.next_double())
                other = -math.log1p(-bits.next_double())
                if other + other > beyond * beyond:
                    return -(_NORMAL_END + beyond) if place >> 8 & 1 else _NORMAL_END + beyond
        elif (heights[layer - 1] - heights[layer]) * bits.next_double() + heights[layer] < math.exp(-0.5 * x * x):
            return x
