"""The allocator's peaks over parts of a run, whatever the program itself resets."""

import sys

_ALLOCATED, _RESERVED = "allocated_bytes", "reserved_bytes"


def merge(first, second):
    """Statistics like `second`, with the higher of both peaks."""
    if not first:
        return second
    merged = dict(second)
    for name, value in second.items():
        if isinstance(value, dict):
            merged[name] = merge(first.get(name), value)
        elif name == "peak":
            merged[name] = max(first.get(name, 0), value)
    return merged


def flat(stats, prefix=""):
    """Nested statistics under the names of `torch.cuda.memory_stats`."""
    found = {}
    for name, value in stats.items():
        if isinstance(value, dict):
            found.update(flat(value, prefix + name + "."))
        else:
            found[prefix + name] = value
    return found


class Peaks:
    """Peaks of the whole run, of the iteration, and since the program's own last reset; nested statistics by device.

    PyTorch has one peak, which its `reset` forgets. Where iterations are counted, the peak is forgotten after each, and
    the program is given the peak that it would have found otherwise.
    """

    def __init__(self):
        self.run, self.step, self.program = {}, {}, {}
        self.stats = self.reset = None

    def install(self, torch, is_by_step):
        native = torch._C
        self.stats, self.reset = native._cuda_memoryStats, native._cuda_resetPeakMemoryStats

        def reset(device):
            self._keep(device, self.run, self.step)
            self.program.pop(device, None)
            self.reset(device)

        native._cuda_resetPeakMemoryStats = reset
        if hasattr(native, "_accelerator_resetPeakStats"):
            native._accelerator_resetPeakStats = reset
        if not is_by_step:
            return

        def stats(device):
            return merge(self.program.get(device), self.stats(device))

        native._cuda_memoryStats = stats
        if hasattr(native, "_accelerator_getDeviceStats"):
            accelerator = native._accelerator_getDeviceStats
            native._accelerator_getDeviceStats = lambda device: merge(self.program.get(device), accelerator(device))

    def _keep(self, device, *parts):
        now = self.stats(device)
        for part in parts:
            part[device] = merge(part.get(device), now)

    def _devices(self):
        cuda = getattr(sys.modules.get("torch"), "cuda", None)
        if self.stats is None or cuda is None or not cuda.is_initialized():
            return range(0)
        return range(cuda.device_count())

    def end_step(self):
        """Ends an iteration; returns the peaks within it by device, and the bytes that are allocated now."""
        found = []
        for device in self._devices():
            self._keep(device, self.run, self.step, self.program)
            step = self.step.pop(device)
            found.append(
                {
                    "peak_allocated": step[_ALLOCATED]["all"]["peak"],
                    "peak_reserved": step[_RESERVED]["all"]["peak"],
                    "allocated": step[_ALLOCATED]["all"]["current"],
                }
            )
            self.reset(device)
        return found

    def whole(self):
        """Statistics of each device with the peaks of the whole run, by PyTorch's names."""
        return [flat(merge(self.run.get(device), self.stats(device))) for device in self._devices()]

    def allocations(self):
        """How many allocations each device has had so far."""
        return [self.stats(device)["allocation"]["all"]["allocated"] for device in self._devices()]

    def most_reserved(self):
        """The peak reserved so far of the device whose peak reserved is the largest."""
        return max((stats.get("reserved_bytes.all.peak", 0) for stats in self.whole()), default=0)
