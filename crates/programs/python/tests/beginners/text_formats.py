import string
import textwrap

items = [("weights", 1234567, 0.5), ("biases", 89, 0.03125)]
print(f"{'name':<10}{'count':>12}{'share':>9}")
for name, count, share in items:
    print(f"{name:<10}{count:>12,}{share:>9.2%}")
print("%-8s|%5d|%08.3f|%x|%e" % ("text", 42, 3.14159, 255, 12345.678))
print("{0!r} {1:>6} {key:^9}|{2:+.1e}".format("a", "b", 1500, key="mid"))
value = 3.14159
print(f"{value=:.2f} {value!s} {1_000_000:_} {255:#b} {-5:05d} {'x' * 3:*^9}")
print(textwrap.fill("A long line of text that is wrapped at some columns, as a help text is.", 30))
print(textwrap.dedent("    indented\n      more").replace("\n", "|"))
print(string.Template("$name has $n layers").substitute(name="net", n=3), "a,b,,c".split(","), " x ".strip(), "Abc".swapcase())
print("model.layer.0.weight".rpartition("."), "tensor".center(12, "-"), "ab".zfill(5), "x".join("abc"), "hello"[::-1])
print("ß".upper(), "naïve".encode("utf-8"), b"\xc3\xa9".decode(), "é".encode("ascii", "replace"), ascii("é"))
print("yes" if "grad" in "gradient" else "no", "a-b_c".translate(str.maketrans("-_", "  ")), "Title case here".title())
print(repr("tab\t\"quote\" 'single'"), "multi\nline".splitlines(), "abc".find("z"), "abcabc".count("bc"))

# --- on the GPU
import torch
from torch import nn

model = nn.Linear(3, 2).cuda()
loss = model(torch.ones(1, 3, device="cuda")).sum()
number = loss.item()
print(f"loss {number:.4f} | {number:>10.3f} | {number:e} | %.2f | {{}}".format(number) % number)
print("{:<12}|{:>8.1%}|{!r}|{!s:>5}".format("unknown", number, number, number))
print(f"{loss.item():08.3f}", "loss: " + str(number), ", ".join(f"{v:.2f}" for v in [number, 1.5]))
print(f"{torch.cuda.memory_allocated() / 1024:.1f} KiB, {model.weight.numel():,} weights")
