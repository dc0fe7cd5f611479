"""Measures what a pair of allocation and free costs in PyTorch, by allocator.

Usage: bench.py FOLDER SHIM [RECORDING...]    or, to see whether the shim loads: bench.py --check SHIM

Each allocator gets its own processes, in turns, since PyTorch keeps the one that it starts with. The results are bench.json in
the folder: a report as every benchmark of Blockyard writes it. `cargo xtask bench --draw bench.json` makes the table and the chart.
"""

import array
import ctypes
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
KIB, MIB = 1 << 10, 1 << 20
PAIRS = 20_000
ROUNDS = 7
TURNS = int(os.environ.get("TURNS", "3"))

# What is measured, and the words for it. "nothing" returns numbers without memory: what PyTorch's wrapper costs by itself.
WORDS = {
    "native": "PyTorch's own",
    "plugin": "Blockyard in PyTorch",
    "direct": "Blockyard called directly",
    "rmm": "RMM's pool in PyTorch",
    "nothing": "an empty plug-in in PyTorch",
}


def ping_pong(size):
    slots = array.array("i", [0, 0] * PAIRS)
    sizes = array.array("Q", [size, 0] * PAIRS)
    return slots, sizes, 1


def from_recording(path):
    """The allocations and frees of a recorded program, as numbers of slots and sizes; what lives on is freed at the end."""
    trace = None
    with gzip.open(path, "rt") as file:
        for line in file:
            record = json.loads(line)
            if "trace" in record:
                trace = record["trace"]
    slots, sizes, live, vacant, used = array.array("i"), array.array("Q"), {}, [], 0
    for action, addr, size, _stream in trace:
        if action == "alloc" and size > 0:
            if not vacant:
                vacant.append(used)
                used += 1
            slot = vacant.pop()
            live[addr] = slot
            slots.append(slot)
            sizes.append(size)
        elif action == "free_requested" and addr in live:
            slot = live.pop(addr)
            vacant.append(slot)
            slots.append(slot)
            sizes.append(0)
    for slot in live.values():
        slots.append(slot)
        sizes.append(0)
    return slots, sizes, used


def traces(recordings):
    found = {
        f"ping-pong, {words}": ping_pong(size)
        for size, words in [(512, "512 B"), (64 * KIB, "64 KiB"), (2 * MIB, "2 MiB"), (64 * MIB, "64 MiB")]
    }
    for path in recordings:
        found[os.path.basename(path).split(".")[0]] = from_recording(path)
    return found


def nanos_a_pair(call, trace):
    slots, sizes, used = trace
    memory = (ctypes.c_void_p * used)()
    pairs = len(slots) // 2
    arguments = (slots.buffer_info()[0], sizes.buffer_info()[0], len(slots), memory)
    # The first time takes the segments.
    call(*arguments)
    rounds = []
    for _ in range(ROUNDS):
        elapsed = call(*arguments)
        if elapsed == (1 << 64) - 1:
            raise RuntimeError("PyTorch threw an exception")
        rounds.append(elapsed / pairs)
    return rounds


def empties(torch):
    """`torch.empty` from Python, end to end: a tensor is made and dropped."""
    found = {}
    for size, words in [(1 * KIB, "1 KiB"), (4 * MIB, "4 MiB")]:
        rounds = []
        for _ in range(ROUNDS + 1):
            begun = time.perf_counter_ns()
            for _ in range(PAIRS):
                torch.empty(size, dtype=torch.uint8, device="cuda")
            rounds.append((time.perf_counter_ns() - begun) / PAIRS)
        found[f"torch.empty, {words}"] = rounds[1:]
    return found


def load(torch, path):
    # Python keeps PyTorch's symbols to itself; the shim wants one of them.
    library = os.path.join(os.path.dirname(torch.__file__), "lib", "libc10_cuda.so")
    ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    shim = ctypes.CDLL(path)
    pointer, count = ctypes.c_void_p, ctypes.c_size_t
    shim.through_pytorch.restype = shim.through_functions.restype = ctypes.c_uint64
    shim.through_pytorch.argtypes = [pointer, pointer, count, pointer]
    shim.through_functions.argtypes = [pointer, pointer, pointer, pointer, count, pointer]
    return shim


def address(library, name):
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


def measure(allocator, shim_path, recordings):
    """One process: all traces under one allocator, as JSON on standard output."""
    import torch

    import blockyard_torch as by

    shim = load(torch, shim_path)
    memory = torch.cuda.memory
    if allocator == "plugin":
        by.enable()
    elif allocator == "nothing":
        memory.change_current_allocator(memory.CUDAPluggableAllocator(shim_path, "nothing_malloc", "nothing_free"))
    elif allocator == "rmm":
        import rmm
        from rmm.allocators.torch import rmm_torch_allocator

        rmm.reinitialize(pool_allocator=True, initial_pool_size=16 << 30)
        memory.change_current_allocator(rmm_torch_allocator)
    torch.cuda.init()
    torch.cuda.current_stream()
    found = {allocator: {}}
    for name, trace in traces(recordings).items():
        found[allocator][name] = nanos_a_pair(shim.through_pytorch, trace)
    if allocator == "plugin":
        library = by._library
        functions = [address(library, name) for name in ("blockyard_malloc", "blockyard_free")]
        found["direct"] = {
            name: nanos_a_pair(lambda *rest: shim.through_functions(*functions, *rest), trace)
            for name, trace in traces(recordings).items()
        }
    if allocator != "nothing":
        found[allocator].update(empties(torch))
    print(json.dumps(found))


def machine():
    def output_of(*command):
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.strip()
        except (OSError, subprocess.TimeoutExpired):
            return ""

    import torch

    gpu = output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    cpu = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "device": gpu,
        "processor": cpu[0] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "software": [f"PyTorch {torch.__version__}"],
    }


def measure_of(values):
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def report(folder, rounds, notes):
    """Writes the report: a row for each trace, a value for each allocator."""
    allocators = [each for each in WORDS if each in rounds]
    names = list(dict.fromkeys(name for traces in rounds.values() for name in traces))
    rows = []
    for name in names:
        values = [rounds[each].get(name) for each in allocators]
        rows.append({"name": name, "units": PAIRS, "values": [measure_of(each) if each else None for each in values]})
    section = {
        "name": "in_pytorch",
        "title": "Calls inside PyTorch",
        "unit": "ns a pair of allocation and free",
        "contenders": [WORDS[each] for each in allocators],
        "rows": rows,
        "multiples": True,
        "notes": [f"{TURNS} processes with {ROUNDS} rounds each, {time.strftime('%Y-%m-%d', time.gmtime())}", *notes],
    }
    found = {"machine": machine(), "command": "bench.py", "rounds": TURNS * ROUNDS, "sections": [section]}
    with open(os.path.join(folder, "bench.json"), "w") as file:
        json.dump({"report": found}, file, indent=1)
    for row in rows:
        print(row["name"], *("-" if value is None else f"{value['median']:,.0f}" for value in row["values"]), sep="\t")


def main():
    folder, shim, recordings = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    # Without what nobody measures: stacks of settings of the caller.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTORCH_")}
    rounds, notes, given_up = {}, [], set()
    for turn in range(TURNS):
        for allocator in ("native", "plugin", "nothing", "rmm"):
            if allocator in given_up:
                continue
            print(f"turn {turn + 1} of {TURNS}: {allocator}", file=sys.stderr, flush=True)
            command = [sys.executable, __file__, "--measure", allocator, shim, *recordings]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=90, env=environment)
                answer, code = done.stdout.strip().splitlines(), done.returncode
                words = done.stderr.strip().splitlines()
            except subprocess.TimeoutExpired:
                answer, code, words = [], "", ["it took more than 90 s"]
            if code == 0 and answer:
                for each, traces_of in json.loads(answer[-1]).items():
                    for name, values in traces_of.items():
                        rounds.setdefault(each, {}).setdefault(name, []).extend(values)
            else:
                given_up.add(allocator)
                notes.append(f"{WORDS[allocator]} could not be measured: {words[-1] if words else f'status {code}'}")
    report(folder, rounds, notes)
    return 0 if "native" in rounds and "plugin" in rounds else 1


if sys.argv[1] == "--check":
    import torch

    load(torch, os.path.abspath(sys.argv[2]))
elif sys.argv[1] == "--measure":
    measure(sys.argv[2], sys.argv[3], sys.argv[4:])
else:
    sys.exit(main())
