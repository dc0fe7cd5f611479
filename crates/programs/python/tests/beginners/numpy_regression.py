import numpy as np

rng = np.random.default_rng(42)
X = rng.normal(size=(8, 2))
noise = rng.normal(scale=0.1, size=8)
y = 3 * X[:, 0] - 2 * X[:, 1] + 0.5 + noise
print(X[:3])
print(y)
order = rng.permutation(len(X))
train, test = order[:6], order[6:]
print(order, X[train].shape, y[test])
mean, std = X[train].mean(axis=0), X[train].std(axis=0)
Z = (X - mean) / std
print(mean, std)
print(Z.round(3))
w, b = np.zeros(2), 0.0
for step in range(3):
    error = Z[train, 0] * w[0] + Z[train, 1] * w[1] + b - y[train]
    w -= 0.1 * 2 * (Z[train] * error[:, None]).mean(axis=0)
    b -= 0.1 * 2 * error.mean()
    print(step, f"{np.mean(error**2):.6f}", w, round(float(b), 6))
print(np.abs(y).max(), y.argmin(), np.sort(y)[:2], (y > 0).sum(), np.where(y > 0, 1, -1))

# --- on the GPU
import torch
from torch import nn

inputs = torch.from_numpy(Z.astype(np.float32)).cuda()
targets = torch.tensor(y, dtype=torch.float32, device="cuda").unsqueeze(1)
model = nn.Linear(2, 1).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(3):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(np.mean(losses), np.array(losses), f"{np.min(losses):.4f}")
print(inputs.dtype, targets.shape, model.weight.detach().cpu().numpy(), torch.cuda.memory_allocated())
