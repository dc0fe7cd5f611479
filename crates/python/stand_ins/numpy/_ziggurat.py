"""Normal and exponential numbers by layers (ziggurat), with numpy's tables, which are computed at the first use."""

import math

_NORMAL_END, _NORMAL_AREA = 3.6541528853610087963519472518, 0.004928673233974652
_EXPONENTIAL_END = "7.6971174701310497140446280481"
_tables = {}


def _normal():
    """Bounds, widths and heights of the layers, in the arithmetic that numpy's tables come from: floats, with exact logarithms."""
    if "normal" not in _tables:
        from decimal import Decimal, localcontext

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
        _tables["normal"] = bounds, widths, heights
    return _tables["normal"]


def _exponential():
    if "exponential" not in _tables:
        from decimal import Decimal, localcontext

        with localcontext() as context:
            context.prec = 50
            x = Decimal(_EXPONENTIAL_END)
            area, y, one = (x + 1) * (-x).exp(), (-x).exp(), 1 << 53
            xs, heights = [Decimal(0)] * 256, [Decimal(1)] * 256
            xs[255], heights[255] = x, y
            for i in range(254, 0, -1):
                x = -(area / x + y).ln()
                y = (-x).exp()
                xs[i], heights[i] = x, y
            xs[0] = area / heights[255]
            bounds = [2 * int(Decimal(xs[255] / xs[0]) * (one >> 1)), 0]
            bounds += [2 * int(xs[i - 1] / xs[i] * (one >> 1)) for i in range(2, 256)]
            _tables["exponential"] = bounds, [float(x / one) for x in xs], [float(y) for y in heights]
    return _tables["exponential"]


def normal(bits):
    bounds, widths, heights = _normal()
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


def exponential(bits):
    bounds, widths, heights = _exponential()
    while True:
        drawn = bits.next64() >> 3
        layer = drawn & 0xFF
        drawn >>= 8
        x = drawn * widths[layer]
        if drawn < bounds[layer]:
            return x
        if layer == 0:
            return float(_EXPONENTIAL_END) - math.log1p(-bits.next_double())
        if (heights[layer - 1] - heights[layer]) * bits.next_double() + heights[layer] < math.exp(-x):
            return x
