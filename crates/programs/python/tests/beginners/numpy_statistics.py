import numpy as np

np.random.seed(7)
scores = np.random.randint(40, 100, size=(5, 3))
print(scores)
print("per student", scores.mean(axis=1).round(2), "per exam", scores.mean(axis=0).round(2))
print("best", scores.max(), "worst", scores.min(), "spread", np.ptp(scores, axis=0), "median", np.median(scores, axis=0))
print("quartiles", np.percentile(scores, [25, 50, 75]), "std", scores.std(axis=0, ddof=1).round(3))
passed = scores >= 60
print(passed.sum(axis=0), passed.all(axis=1), passed.mean())
grades = np.where(scores >= 85, "A", np.where(scores >= 60, "B", "C"))
print(grades)
values, counts = np.unique(grades, return_counts=True)
print(dict(zip(values.tolist(), counts.tolist())), values)
weights = np.array([0.5, 0.3, 0.2])
print((scores * weights).sum(axis=1), np.average(scores, axis=1, weights=weights))
ranking = np.argsort(-scores.sum(axis=1), kind="stable")
print(ranking, scores[ranking][:2])
hist, edges = np.histogram(scores, bins=4, range=(40, 100))
print(hist, edges)
print(np.cumsum(scores[:, 0]), np.diff(scores[:, 0]), np.linspace(0, 1, 5), np.eye(2, dtype=int))
table = np.column_stack([np.arange(5), scores])
print(table, table.shape, table.dtype)
for row in table:
    print("student {:d}: {:5.1f}".format(row[0], row[1:].mean()))

# --- on the GPU
import torch
from torch import nn

x = torch.tensor(scores, dtype=torch.float32, device="cuda") / 100
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).cuda()
predicted = model(x).squeeze(1).detach().cpu().numpy()
print(predicted, predicted.shape, predicted.mean(), predicted.argmax())
print((predicted > 0.5).mean(), np.round(predicted, 2), np.concatenate([predicted, predicted]).shape)
print(f"{predicted.std():.3f}", [f"{p:.2f}" for p in predicted])
