import re

text = "Hello, world! It's 2024-05-17; e-mail: me@example.com, 3.14 and 42."
tokens = re.findall(r"[A-Za-z]+(?:'[a-z]+)?|\d+(?:\.\d+)?|[^\s\w]", text)
print(tokens)
match = re.search(r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)", text)
print(match.group(), match.groupdict(), match.span())
print(re.sub(r"\d", "#", "a1b22"), re.split(r"[;,]\s*", "a; b,c"), re.sub(r"(\w+) (\w+)", r"\2 \1", "hello world"))
pattern = re.compile(r"^epoch (\d+): loss=([\d.]+)$", re.MULTILINE)
log = "epoch 1: loss=0.9\nepoch 2: loss=0.75\nnoise\n"
print([(int(epoch), float(loss)) for epoch, loss in pattern.findall(log)])
print(bool(re.fullmatch(r"[\w.]+@[\w.]+", "me@example.com")), re.match("b", "abc"), re.escape("a.b"))
print(re.sub(r"[aeiou]", lambda m: m.group().upper(), "model"))
vocab = {token: i for i, token in enumerate(dict.fromkeys(token.lower() for token in tokens))}
ids = [vocab[token.lower()] for token in tokens]
print(len(vocab), ids)

# --- on the GPU
import torch
from torch import nn

embedding = nn.Embedding(len(vocab), 16).cuda()
vectors = embedding(torch.tensor(ids, device="cuda"))
print(vectors.shape, vectors.mean(dim=0).shape)
scores = vectors @ vectors.T
print(f"highest {scores.max().item():.3f}", scores.argmax().item())
print(re.sub(r"\?", "unknown", f"{scores.sum().item()}"))
