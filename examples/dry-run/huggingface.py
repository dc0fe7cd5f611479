"""Trains a small GPT-2 of Hugging Face on random tokens, in mixed precision: how much memory does it take, and where?"""

import argparse

import torch
from transformers import GPT2Config, GPT2LMHeadModel

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--length", type=int, default=512, help="tokens of a sequence")
parser.add_argument("--layers", type=int, default=8)
options = parser.parse_args()

# Random weights, so that nothing is fetched.
config = GPT2Config(n_embd=512, n_layer=options.layers, n_head=8, n_positions=options.length)
model = GPT2LMHeadModel(config).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)

for step in range(10):
    tokens = torch.randint(0, config.vocab_size, (options.batch_size, options.length), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(tokens, labels=tokens).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step}: allocated {torch.cuda.memory_allocated():,}, peak {torch.cuda.max_memory_allocated():,}")
