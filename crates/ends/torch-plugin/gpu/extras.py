"""Side streams, CUDA graphs, memory fractions and a full device, under PyTorch's own allocator or Blockyard's.

Usage: extras.py ALLOCATOR PART    (native or plugin; streams, graph, capture, fraction, threads, full, devices or pool)

Each part prints numbers that must be the same under both.
"""

import os
import sys
import threading

ALLOCATOR, PART = sys.argv[1:3]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import torch  # noqa: E402

import blockyard_torch as by  # noqa: E402

if ALLOCATOR == "plugin":
    by.enable()
stats = by.memory_stats if ALLOCATOR == "plugin" else torch.cuda.memory_stats


def say(*words):
    print(PART, *words, flush=True)


def streams():
    """Memory that another stream reads late must not be allocated before."""
    side = torch.cuda.Stream()
    total = 0.0
    for step in range(200):
        tensor = torch.full((1 << 18,), float(step), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(100_000)
            part = tensor.sum()
            tensor.record_stream(side)
        del tensor
        # Would overwrite it, if it were allocated again too early.
        torch.full((1 << 18,), -1.0, device="cuda")
        side.synchronize()
        total += part.item()
    say("sum", total, "expected", float(sum(range(200)) * (1 << 18)))


def graph():
    """A graph's memory comes from a private pool and is not given to others."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8)).cuda()
    static = torch.randn(64, 256, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            model(static)
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured), torch.no_grad():
        result = model(static).softmax(dim=1)
    worst = 0.0
    for step in range(20):
        static.copy_(torch.randn(64, 256, device="cuda"))
        noise = [torch.full((1 << size,), 7.0, device="cuda") for size in range(8, 16)]
        captured.replay()
        with torch.no_grad():
            worst = max(worst, (result - model(static).softmax(dim=1)).abs().max().item())
        del noise
    say("worst difference below 1e-5:", worst < 1e-5, "segments", stats()["segment.all.current"])
    del captured, result
    torch.cuda.empty_cache()
    say("after the graph: segments", stats()["segment.all.current"])


def capture():
    """Emptying the cache while a graph is captured gives nothing back, not even another stream's memory."""
    side = torch.cuda.Stream()
    static = torch.ones(1 << 20, device="cuda")
    captured = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(captured):
            result = static + 1
            with torch.cuda.stream(side):
                torch.full((1 << 24,), 7.0, device="cuda")
            before = stats()["reserved_bytes.all.current"]
            torch.cuda.empty_cache()
            say("given back", before - stats()["reserved_bytes.all.current"])
            result = result * 3
        captured.replay()
        say("result", result.sum().item(), "expected", 6.0 * (1 << 20))
    except RuntimeError as error:
        say("raises", type(error).__name__, str(error)[:200])


def fraction():
    torch.cuda.set_per_process_memory_fraction(0.25)
    tensors = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(4)]
    say("reserved", stats()["reserved_bytes.all.current"])
    del tensors
    torch.cuda.empty_cache()
    say("reserved after empty_cache", stats()["reserved_bytes.all.current"])


def threads():
    """Eight threads, each with its own stream, whose tensors must keep their contents."""
    wrong = []

    def work(number):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for step in range(150):
                value = float(number * 1000 + step)
                kept = [torch.full((1 << (10 + (step + at) % 9),), value, device="cuda") for at in range(6)]
                wrong.extend(1 for tensor in kept if not bool((tensor == value).all()))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    torch.cuda.synchronize()
    say("wrong contents", len(wrong), "allocated", stats()["allocated_bytes.all.current"])


def full():
    """What PyTorch makes of a request that cannot be served."""
    try:
        tensor = torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
    except RuntimeError as error:
        say("raises", type(error).__name__, str(error)[:400])
    else:
        say("gives a tensor at", hex(tensor.data_ptr()))
    say("a small one still works:", torch.ones(4, device="cuda").sum().item())


def devices():
    """Every device has a separate allocator: a thread trains on each, and one runs out of memory."""
    count = torch.cuda.device_count()
    losses = {}

    def layers():
        return [torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)]

    # Threads that draw numbers at once get others each time.
    torch.manual_seed(5)
    models = [torch.nn.Sequential(*layers()) for _ in range(count)]

    def train(index):
        torch.cuda.set_device(index)
        model = models[index].to(f"cuda:{index}")
        optimizer = torch.optim.AdamW(model.parameters())
        for step in range(30):
            optimizer.zero_grad()
            batch = torch.randn(64 + step, 512, device="cpu", generator=torch.Generator().manual_seed(step)).to(f"cuda:{index}")
            loss = (model(batch) - batch).square().mean()
            loss.backward()
            optimizer.step()
        losses[index] = loss.item()

    workers = [threading.Thread(target=train, args=(index,)) for index in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for index in range(count):
        of = by.memory_stats(index) if ALLOCATOR == "plugin" else torch.cuda.memory_stats(index)
        say("device", index, "loss", losses[index], "peak", of["allocated_bytes.all.peak"], of["reserved_bytes.all.peak"])
    last = count - 1
    try:
        torch.empty(1 << 42, dtype=torch.uint8, device=f"cuda:{last}")
    except torch.OutOfMemoryError as error:
        say("names its device:", f"GPU {last} has a total capacity" in str(error))
        # Under Blockyard the last line is the cause.
        print(str(error).splitlines()[-1], file=sys.stderr)
    say("a small one still works:", torch.ones(4, device=f"cuda:{last}").sum().item())


def pool():
    """What PyTorch lets another allocator know of a MemPool."""
    try:
        own = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(own):
            tensor = torch.ones(1 << 20, device="cuda")
        say("a tensor of the pool", tensor.sum().item())
    except (RuntimeError, NotImplementedError) as error:
        say("raises", type(error).__name__, str(error).splitlines()[0][:300])
    say("a small one still works:", torch.ones(4, device="cuda").sum().item())


PARTS = {
    "streams": streams,
    "graph": graph,
    "capture": capture,
    "fraction": fraction,
    "threads": threads,
    "full": full,
    "devices": devices,
    "pool": pool,
}
PARTS[PART]()
say("done")
