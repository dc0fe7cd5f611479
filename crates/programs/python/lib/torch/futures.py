"""`torch.futures`: futures whose results exist already, since a program here has one thread."""

from torch.jit import Future

__path__ = []  # Modules below are found, and refused in a sentence.


def collect_all(futures):
    return Future(list(futures))


def wait_all(futures):
    return [future.wait() for future in futures]
