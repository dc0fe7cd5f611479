"""Logs for TensorBoard: the calls pass, and nothing is written."""

from _passing import Passing as _Passing


class SummaryWriter(_Passing):
    def __init__(self, *args, **kwargs):
        super().__init__("SummaryWriter")
