"""A small transformer whose activations fill the memory: each layer keeps what backward needs."""

import torch
from torch import nn

WIDTH, HEADS, LAYERS = 512, 8, 6
BATCH, TOKENS, WORDS = 32, 256, 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.projection = nn.Linear(WIDTH, WIDTH)
        self.mlp_norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attend(self.attention_norm(x))
        hidden = self.up(self.mlp_norm(x))
        return x + self.down(nn.functional.gelu(hidden))

    def attend(self, x):
        heads = (BATCH, TOKENS, HEADS, WIDTH // HEADS)
        query, key, value = (part.view(heads).transpose(1, 2) for part in self.query_key_value(x).chunk(3, dim=-1))
        scores = query @ key.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5
        weights = scores.softmax(dim=-1)
        return self.projection((weights @ value).transpose(1, 2).reshape(x.shape))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words):
        x = self.embedding(words)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def train_step(model, optimizer):
    words = torch.randint(0, WORDS, (BATCH, TOKENS), device="cuda")
    logits = model(words)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), words.flatten())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


model = Transformer().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    train_step(model, optimizer)
