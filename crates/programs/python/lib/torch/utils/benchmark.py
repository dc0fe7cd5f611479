"""`torch.utils.benchmark`: statements run as often as asked; times are those of the program's clock, which measures no GPU."""

import textwrap as _textwrap
import timeit as _timeit

import torch


class Measurement:
    def __init__(self, number_per_run, raw_times, label="", sub_label="", description=""):
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.label, self.sub_label, self.description = label, sub_label, description

    @property
    def times(self):
        return [taken / self.number_per_run for taken in self.raw_times]

    @property
    def mean(self):
        return sum(self.times) / len(self.times)

    @property
    def median(self):
        times = sorted(self.times)
        return (times[(len(times) - 1) // 2] + times[len(times) // 2]) / 2

    iqr = property(lambda self: 0.0)

    def __repr__(self):
        head = ": ".join(filter(None, (self.label, self.sub_label, self.description)))
        return (
            f"<torch.utils.benchmark.utils.common.Measurement object>\n{head}\n  ? (times of a GPU are not known here)"
        )


class Timer:
    def __init__(
        self,
        stmt="pass",
        setup="pass",
        global_setup="",
        timer=None,
        globals=None,
        label=None,
        sub_label=None,
        description=None,
        env=None,
        num_threads=1,
        language="python",
    ):
        if str(language).lower() not in ("python", "language.python"):
            raise NotImplementedError("torch.utils.benchmark.Timer is modeled for statements of Python only")
        stmt, setup = (_textwrap.dedent(text).strip() if isinstance(text, str) else text for text in (stmt, setup))
        names = {"torch": torch, **(globals or {})}
        self._timer = _timeit.Timer(stmt, setup, globals=names)
        self._labels = {"label": label or "", "sub_label": sub_label or "", "description": description or ""}
        from _host import note

        note("the program's clock does not measure a GPU: times are not a GPU's")

    def timeit(self, number=1000000):
        return Measurement(number, [self._timer.timeit(number)], **self._labels)

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        # A clock that measures nothing gives no reason to run a statement often.
        return Measurement(1, self._timer.repeat(3, 1), **self._labels)

    adaptive_autorange = blocked_autorange


class Compare:
    def __init__(self, results):
        self._results = list(results)

    def extend_results(self, results):
        self._results += results

    def trim_significant_figures(self):
        pass

    colorize = highlight_warnings = trim_significant_figures

    def print(self):
        for result in self._results:
            print(result)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from _refused import Missing

    return Missing(f"torch.utils.benchmark.{name}", "use time.perf_counter() and torch.cuda.synchronize()")
