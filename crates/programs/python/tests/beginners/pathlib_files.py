import shutil
import tempfile
from pathlib import Path, PurePosixPath

root = Path(tempfile.mkdtemp())
data = root / "data" / "train"
data.mkdir(parents=True, exist_ok=True)
for i in range(3):
    (data / f"sample_{i:02d}.txt").write_text(f"{i} {i * i}\n", encoding="utf-8")
files = sorted(data.glob("*.txt"))
print([file.name for file in files], files[0].stem, files[0].suffix, files[0].parent.name)
print([file.read_text().split() for file in files])
print(PurePosixPath("a/b/../c.tar.gz").suffixes, Path("x/y.txt").with_suffix(".md").as_posix(), (root / "none").exists())
with open(data / "log.txt", "a") as log:
    print("one", file=log)
    log.write("two\n")
print((data / "log.txt").read_text().splitlines(), (data / "log.txt").stat().st_size)
(data / "log.txt").rename(data / "old.txt")
print(sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()))

# --- on the GPU
import torch
from torch import nn

model = nn.Linear(4, 2).cuda()
path = root / "checkpoint.pt"
torch.save({"model": model.state_dict(), "epoch": 3}, path)
state = torch.load(path, map_location="cuda")
print(sorted(state), state["epoch"], {name: tuple(value.shape) for name, value in state["model"].items()})
print(model.load_state_dict(state["model"]), torch.cuda.memory_allocated())
shutil.rmtree(root)
print(root.exists())
