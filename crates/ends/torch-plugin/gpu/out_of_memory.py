"""Runs out of memory, catches torch.OutOfMemoryError, shrinks the batch and goes on, under PyTorch's allocator or Blockyard's.

Usage: out_of_memory.py ALLOCATOR PART    (native or plugin; training, contents, threads or message)

Each part prints lines that must be the same under both, but for `message`.
"""

import gc
import os
import sys
import threading

ALLOCATOR, PART = sys.argv[1:3]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python"))

import torch  # noqa: E402

import blockyard_torch as by  # noqa: E402

if ALLOCATOR == "plugin":
    by.enable()
    assert by.raises_out_of_memory()
stats = by.memory_stats if ALLOCATOR == "plugin" else torch.cuda.memory_stats
GIB = 1 << 30


def say(*words):
    print(PART, *words, flush=True)


def limit(gib):
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(gib * GIB / total)


def where(error):
    """Whether copying the batch, forward, backward or the optimizer ran out: the innermost of our functions in the traceback."""
    names = []
    trace = error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return next((name for name in reversed(names) if name in ("forward_part", "backward_part", "step_part")), "the batch")


class Wide(torch.nn.Module):
    """Large in backward: what forward keeps is small, and each gradient is as large as the wide activation."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(512, 512)
        self.out = torch.nn.Linear(512, 10)

    def forward(self, x):
        return self.out(torch.relu(self.inner(x)))


def forward_part(model, x, y):
    return torch.nn.functional.cross_entropy(model(x), y)


def backward_part(loss):
    loss.backward()


def step_part(optimizer):
    optimizer.step()


def train(model, batch, steps, optimizer):
    """Trains with the largest batch that fits, halving it at each out of memory."""
    generator = torch.Generator().manual_seed(5)
    done = 0
    while done < steps:
        x = torch.randn(batch, 512, generator=generator)
        y = torch.randint(0, 10, (batch,), generator=generator)
        loss = None
        try:
            optimizer.zero_grad(set_to_none=True)
            x, y = x.cuda(), y.cuda()
            loss = forward_part(model, x, y)
            backward_part(loss)
            step_part(optimizer)
            say("batch", batch, "step", done, "loss", f"{loss.item():.9f}")
            done += 1
        except torch.OutOfMemoryError as error:
            say("out of memory in", where(error), "with batch", batch)
            batch //= 2
        # Outside of `except`: the traceback holds tensors alive.
        del x, y, loss
        gc.collect()
        torch.cuda.empty_cache()


def training():
    torch.manual_seed(1)
    # Forward: three activations of a batch of 2^20 are above 4 GiB.
    limit(4)
    model = Wide().cuda()
    train(model, 1 << 20, 4, torch.optim.SGD(model.parameters(), lr=0.1))
    del model
    gc.collect()
    torch.cuda.empty_cache()
    # Backward: forward fits and the gradients do not.
    for gib in (1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0):
        limit(gib)
        torch.manual_seed(2)
        model = Wide().cuda()
        train(model, 1 << 19, 1, torch.optim.SGD(model.parameters(), lr=0.1))
        del model
        gc.collect()
        torch.cuda.empty_cache()
    # The optimizer: parameters and gradients fit, Adam's state does not.
    torch.manual_seed(3)
    limit(4)
    model = torch.nn.Linear(16384, 16384).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for name, making in (("Adam", optimizer), ("SGD", torch.optim.SGD(model.parameters(), lr=0.1))):
        try:
            loss = model(torch.ones(4, 16384, device="cuda")).square().mean()
            backward_part(loss)
            step_part(making)
            say(name, "took a step")
        except torch.OutOfMemoryError as error:
            say(name, "ran out of memory in", where(error))
        making.zero_grad(set_to_none=True)
        making.state.clear()
        gc.collect()
    say("sum of the weights", f"{model.weight.detach().cpu().double().sum().item():.9f}")
    say("num_ooms", stats()["num_ooms"], "allocated", stats()["allocated_bytes.all.current"])


def count_wrong(alive):
    # On the CPU: the device is full.
    return sum(1 for value, tensor in alive if not bool((tensor.cpu() == value).all()))


def contents():
    """Five hundred requests of which many fail: what is alive keeps its contents through each of them."""
    limit(1)
    generator = torch.Generator().manual_seed(9)
    alive, failed, wrong = [], 0, 0
    for turn in range(500):
        size = 1 << int(torch.randint(8, 29, (1,), generator=generator))
        try:
            alive.append((turn, torch.full((size // 4,), turn, dtype=torch.int32, device="cuda")))
        except torch.OutOfMemoryError:
            failed += 1
            wrong += count_wrong(alive)
            del alive[::2]
    wrong += count_wrong(alive)
    say("failed", failed, "wrong contents", wrong, "alive", len(alive))
    say("num_ooms", stats()["num_ooms"], "retries", stats()["num_alloc_retries"])


def threads():
    """Eight threads that run out at the same time, each in forward and in backward."""
    limit(2)
    caught, wrong = [], []

    def work(number):
        with torch.cuda.stream(torch.cuda.Stream()):
            kept = torch.full((1 << 20,), float(number), device="cuda")
            for _ in range(20):
                try:
                    torch.empty(3 * GIB, dtype=torch.uint8, device="cuda")
                    wrong.append("no error")
                except torch.OutOfMemoryError:
                    caught.append(number)
                x = torch.ones(4096, device="cuda", requires_grad=True)
                try:
                    x.expand(1 << 18, 4096).contiguous().sum().backward()
                    wrong.append("no error")
                except torch.OutOfMemoryError:
                    caught.append(number)
            if not bool((kept == float(number)).all()):
                wrong.append("contents")

    workers = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    torch.cuda.synchronize()
    say("caught", len(caught), "wrong", wrong)


def message():
    limit(1)
    kept = [torch.empty(100 << 20, dtype=torch.uint8, device="cuda") for _ in range(9)]
    try:
        torch.empty(512 << 20, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError as error:
        say("raises", type(error).__module__, type(error).__name__, str(error))
    del kept
    say("and goes on:", torch.ones(4, device="cuda").sum().item())


PARTS = {"training": training, "contents": contents, "threads": threads, "message": message}
PARTS[PART]()
say("done")
