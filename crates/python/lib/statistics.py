"""Means and their like."""

import math as _math


class StatisticsError(ValueError):
    pass


def _values(data, least=1, what="mean"):
    values = list(data)
    if len(values) < least:
        raise StatisticsError(f"{what} requires at least {'one data point' if least == 1 else 'two data points'}")
    return values


def mean(data):
    values = _values(data)
    total = _math.fsum(values) / len(values)
    is_whole = all(isinstance(value, int) for value in values) and total == int(total)
    return int(total) if is_whole else total


def fmean(data, weights=None):
    values = _values(data)
    if weights is not None:
        weights = list(weights)
        return _math.fsum(v * w for v, w in zip(values, weights)) / _math.fsum(weights)
    return _math.fsum(values) / len(values)


def median(data):
    values = sorted(_values(data, what="median"))
    middle = len(values) // 2
    return values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2


def median_low(data):
    values = sorted(_values(data, what="median"))
    return values[(len(values) - 1) // 2]


def median_high(data):
    values = sorted(_values(data, what="median"))
    return values[len(values) // 2]


def mode(data):
    values = _values(data, what="mode")
    return max(dict.fromkeys(values), key=values.count)


def _squares(values, center):
    center = _math.fsum(values) / len(values) if center is None else center
    return _math.fsum((value - center) ** 2 for value in values)


def variance(data, xbar=None):
    values = _values(data, 2, "variance")
    return _squares(values, xbar) / (len(values) - 1)


def pvariance(data, mu=None):
    values = _values(data, what="pvariance")
    return _squares(values, mu) / len(values)


def stdev(data, xbar=None):
    return _math.sqrt(variance(_values(data, 2, "stdev"), xbar))


def pstdev(data, mu=None):
    return _math.sqrt(pvariance(data, mu))


def quantiles(data, *, n=4, method="exclusive"):
    values = sorted(_values(data, 2, "quantiles"))
    found = []
    for i in range(1, n):
        if method == "inclusive":
            at, rest = divmod(i * (len(values) - 1), n)
        else:
            at, rest = divmod(i * (len(values) + 1), n)
            at = min(max(at, 1), len(values) - 1)
            rest = i * (len(values) + 1) - at * n
            at -= 1
        upper = values[min(at + 1, len(values) - 1)]
        found.append((values[at] * (n - rest) + upper * rest) / n)
    return found
