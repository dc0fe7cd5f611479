import argparse


def make_parser():
    parser = argparse.ArgumentParser(prog="train", description="Trains a small network.")
    parser.add_argument("--epochs", type=int, default=2, help="how many epochs (default: %(default)s)")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default="sgd")
    parser.add_argument("--no-bias", action="store_true")
    parser.add_argument("--sizes", nargs="+", type=int, default=[8, 4])
    parser.add_argument("-v", "--verbose", action="count", default=0)
    return parser


parser = make_parser()
args = parser.parse_args([])
print(args)
other = parser.parse_args("--epochs 3 --lr 1e-2 --optimizer adam --sizes 16 8 4 -vv --no-bias".split())
print(vars(other))
print(parser.format_usage().strip())
known, rest = parser.parse_known_args(["--epochs", "1", "--unknown", "x"])
print(known.epochs, rest)
try:
    parser.error = lambda message: (_ for _ in ()).throw(SystemExit(message))
    parser.parse_args(["--optimizer", "rmsprop"])
except SystemExit as error:
    print("refused:", str(error).split("(")[0].strip())

# --- on the GPU
import torch
from torch import nn

model = nn.Sequential(nn.Linear(args.sizes[0], args.sizes[1], bias=not args.no_bias), nn.ReLU(), nn.Linear(args.sizes[1], 1)).to("cuda")
optimizer = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[args.optimizer](model.parameters(), lr=args.lr)
x, y = torch.randn(16, args.sizes[0], device="cuda"), torch.randn(16, 1, device="cuda")
for epoch in range(args.epochs):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch + 1}/{args.epochs}: loss {loss.item():.4f}")
print(torch.cuda.memory_allocated())
