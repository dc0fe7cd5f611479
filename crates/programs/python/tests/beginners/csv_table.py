import csv
import io
import statistics

text = """name,age,score
Ada,36,9.5
"Bob, Jr.",41,7.25
Cleo,29,8.0
"""
rows = list(csv.DictReader(io.StringIO(text)))
print(rows[1])
ages = [int(row["age"]) for row in rows]
scores = [float(row["score"]) for row in rows]
print(statistics.mean(ages), statistics.median(scores), round(statistics.stdev(scores), 4), statistics.pstdev([1, 3]))
out = io.StringIO()
writer = csv.writer(out, lineterminator="\n")
writer.writerow(["name", "passed"])
for row, score in zip(rows, scores):
    writer.writerow([row["name"], score > 7.5])
print(out.getvalue())
width = max(len(row["name"]) for row in rows)
for row in sorted(rows, key=lambda row: -float(row["score"])):
    print(f"{row['name']:<{width}} | {row['age']:>3} | {float(row['score']):6.2f}")
by_decade = {}
for row in rows:
    by_decade.setdefault(int(row["age"]) // 10 * 10, []).append(row["name"])
print(by_decade)

# --- on the GPU
import torch
from torch import nn

features = torch.tensor([[a / 100, s / 10] for a, s in zip(ages, scores)], device="cuda")
model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1), nn.Sigmoid()).cuda()
predictions = model(features).squeeze(-1)
out = io.StringIO()
writer = csv.writer(out, lineterminator="\n")
for row, prediction in zip(rows, predictions.tolist()):
    writer.writerow([row["name"], prediction])
print(out.getvalue(), end="")
