"""How fast a dry run starts, and a step of a model of 8 billion parameters: `python scripts/dry_run_speed.py --blockyard BLOCKYARD`.

PYTHON has PyTorch for CUDA. Printed are the seconds of a dry run that makes one tensor on the device, and of the `import torch` within it, the
medians of five runs; and the seconds of each step of a model of Llama's shape (32 layers, bfloat16, activation checkpointing,
AdamW, 8,192 tokens), with the most memory of the host that its process had.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time

START = "import time\nbegin = time.monotonic()\nimport torch\nprint(time.monotonic() - begin)\ntorch.zeros(1, device='cuda')\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--blockyard", required=True, help="the command `blockyard`")
    blockyard = [parser.parse_args().blockyard, "dry-run", "--quiet", "--python", sys.executable]
    rows = []
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(START)
        file.flush()
        for _ in range(6):
            begin = time.monotonic()
            done = subprocess.run([*blockyard, file.name], check=True, stdout=subprocess.PIPE, text=True)
            rows.append((time.monotonic() - begin, float(done.stdout)))
    # The first run may prepare the libraries.
    whole, loading = map(statistics.median, zip(*rows[1:]))
    print(f"a dry run of one tensor {whole:.2f} s, of these import torch {loading:.2f} s")
    subprocess.run([*blockyard, __file__, "--inside"], check=True)


def inside():
    import torch
    from torch import nn
    from torch.nn import functional
    from torch.utils.checkpoint import checkpoint

    class Layer(nn.Module):
        def __init__(self, wide=4096, inner=14336, heads=32, shared=8):
            super().__init__()
            self.heads, self.shared, self.size = heads, shared, wide // heads
            self.norms = nn.ModuleList(nn.RMSNorm(wide) for _ in range(2))
            self.query, self.output = (nn.Linear(wide, wide, bias=False) for _ in range(2))
            self.key, self.value = (nn.Linear(wide, shared * self.size, bias=False) for _ in range(2))
            self.gate, self.up = (nn.Linear(wide, inner, bias=False) for _ in range(2))
            self.down = nn.Linear(inner, wide, bias=False)

        def forward(self, x):
            inside = self.norms[0](x)

            def split(part, heads):
                return part.unflatten(-1, (heads, self.size)).transpose(1, 2)

            query, key, value = (
                split(self.query(inside), self.heads),
                split(self.key(inside), self.shared),
                split(self.value(inside), self.shared),
            )
            found = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
            x = x + self.output(found.transpose(1, 2).flatten(2))
            inside = self.norms[1](x)
            return x + self.down(functional.silu(self.gate(inside)) * self.up(inside))

    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        embedding, layers = nn.Embedding(128256, 4096), nn.ModuleList(Layer() for _ in range(32))
        head = nn.Linear(4096, 128256, bias=False)
    model = nn.ModuleList([embedding, layers, head])
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(4):
        begin = time.monotonic()
        ids = torch.randint(0, 128256, (1, 8192), device="cuda")
        x = embedding(ids)
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False)
        functional.cross_entropy(head(x)[0], ids[0]).backward()
        optimizer.step()
        optimizer.zero_grad()
        print(
            f"step {step}: {time.monotonic() - begin:.2f} s, peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB"
        )
    count = sum(parameter.numel() for parameter in model.parameters())
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{count / 1e9:.2f} billion parameters, {host} MiB of the host")


if __name__ == "__main__":
    inside() if sys.argv[1:] == ["--inside"] else main()
