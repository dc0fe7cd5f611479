"""Public programs, unmodified, as records for `scripts/dry_run_peers.py`: `python public.py FOLDER OUT [NAME...]`, on a GPU.

FOLDER has each repository's files in `OWNER+NAME`, at the commits below: `git archive COMMIT | tar x`. Each program ends after six steps
of its optimizers. Random numbers stand for its data. OUT gets a record for each program, whose source finds FOLDER in PUBLIC_PROGRAMS.
"""

import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMMITS = {
    "Diego999+pyGAT": "3664f2dc90cbf971564c0bf186dc794f12446d0c",
    "eriklindernoren+PyTorch-GAN": "36d3c77e5ff20ebe0aeefd322326a134a279b93e",
    "karpathy+makemore": "988aa59e4d8fefa526d06f3b453ad116258398d4",
    "karpathy+nanoGPT": "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
    "locuslab+TCN": "2f8c2b817050206397458dfd1f5a25ce8a32fe65",
    "pytorch+examples": "77f55b912142e11fcfdf5b530231fb9c52f181e8",
    "rtqichen+torchdiffeq": "657943acefa826ef04c025ebeb1ff5e9d60dc268",
    "yunjey+pytorch-tutorial": "0500d3df5a2a8080ccfccbc00aca0eacc21818db",
}
PROGRAMS = {
    "mnist": "pytorch+examples mnist/main.py",
    "vae": "pytorch+examples vae/main.py",
    "imagenet_resnet18": "pytorch+examples imagenet/main.py --dummy -a resnet18 -b 64 -j 2",
    "word_transformer": "pytorch+examples word_language_model/main.py --model Transformer --accel --use-optimizer",
    "makemore": "karpathy+makemore makemore.py --device cuda",
    "nanogpt": "karpathy+nanoGPT train.py config/train_shakespeare_char.py --compile=False --eval_iters=1",
    "resnet_cifar": "yunjey+pytorch-tutorial tutorials/02-intermediate/deep_residual_network/main.py",
    "dcgan": "eriklindernoren+PyTorch-GAN implementations/dcgan/dcgan.py",
    "tcn_adding": "locuslab+TCN TCN/adding_problem/add_test.py",
    "pygat_sparse": "Diego999+pyGAT train.py --sparse",
    "ode_demo": "rtqichen+torchdiffeq examples/ode_demo.py",
}

# The start of each record's source, after the line that says the repository, the file and the arguments.
START = """
import os, random, runpy, sys, types
import numpy, torch, torchvision
from torch.optim.optimizer import register_optimizer_step_post_hook

root = os.path.join(os.environ["PUBLIC_PROGRAMS"], repository)
draw = random.Random(0)
texts = {
    "Diego999+pyGAT": ("data/cora", ["cora.content", "cora.cites"]),
    "karpathy+nanoGPT": ("data/shakespeare_char", ["train.bin", "val.bin"]),
    "pytorch+examples": ("word_language_model/data/wikitext-2", ["train.txt", "valid.txt", "test.txt"]),
}


def text(name):
    if name.endswith(".txt"):
        return "".join(" ".join(f"word{draw.randrange(10_000)}" for _ in range(20)) + "\\n" for _ in range(2_000)).encode()
    if name.endswith(".bin"):
        return numpy.array([draw.randrange(65) for _ in range(100_000)], dtype=numpy.uint16).tobytes()
    if name.endswith(".cites"):
        return "".join(f"{draw.randrange(2708)} {draw.randrange(2708)}\\n" for _ in range(5_429)).encode()
    rows = [" ".join(str(int(draw.random() < 0.0127)) for _ in range(1_433)) for _ in range(2_708)]
    return "".join(f"{place} {row} class{place % 7}\\n" for place, row in enumerate(rows)).encode()


folder, names = texts.get(repository, ("", []))
os.makedirs(os.path.join(root, folder), exist_ok=True)
for path in [os.path.join(root, folder, name) for name in names]:
    if not os.path.exists(path):
        with open(path, "wb") as data:
            data.write(text(path))


class Images(torchvision.datasets.FakeData):
    def __init__(self, root, train=True, transform=None, download=False):
        super().__init__(2_000, (1, 28, 28) if self.is_gray else (3, 32, 32), 10)
        self.change = transform

    def __getitem__(self, place):
        image, label = super().__getitem__(place)
        image = image.convert("L" if self.is_gray else "RGB")
        return (self.change(image) if self.change else image), label


for name, is_gray in {"MNIST": True, "CIFAR10": False}.items():
    setattr(torchvision.datasets, name, type(name, (Images,), {"is_gray": is_gray}))
nothing = types.ModuleType("torch.utils.tensorboard")
nothing.SummaryWriter = lambda **options: types.SimpleNamespace(add_scalar=lambda *values: None, flush=lambda: None, close=lambda: None)
sys.modules[nothing.__name__] = nothing
steps = []


def end(optimizer, arguments, named):
    steps.append(optimizer)
    if len(steps) == 6:
        print(f"peak {torch.cuda.max_memory_allocated()} peak reserved {torch.cuda.max_memory_reserved()}", flush=True)
        sys.exit()


register_optimizer_step_post_hook(end)
file = os.path.join(root, file)
os.chdir(os.path.dirname(file))
sys.path[:0] = [os.path.dirname(file), root]
sys.argv = [file, *arguments]
runpy.run_path(file, run_name="__main__")
"""


def source(name):
    repository, file, *arguments = PROGRAMS[name].split()
    return f"repository, file, arguments = {(repository, file, arguments)!r}\n{START}"


def main(folder, out, *names):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "PUBLIC_PROGRAMS": str(pathlib.Path(folder).resolve())}
    for name in names or PROGRAMS:
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(source(name))
            file.flush()
            done = subprocess.run([sys.executable, file.name], capture_output=True, text=True, env=environment)
        lines = [line for line in done.stdout.splitlines() if re.fullmatch(r"peak \d+ peak reserved \d+", line)]
        numbers = [int(number) for number in re.findall(r"\d+", "".join(lines[-1:]))] or [0, 0]
        print(name, *lines, *done.stderr.splitlines()[-1:] if not lines else "", flush=True)
        stats = {f"{what}_bytes.all.peak": number for what, number in zip(("allocated", "reserved"), numbers)}
        with gzip.open(out / f"{name}.json.gz", "wt") as record:
            json.dump({"program": name, "source": source(name), "stdout": lines, "stats": stats}, record)


if __name__ == "__main__":
    main(*sys.argv[1:])
