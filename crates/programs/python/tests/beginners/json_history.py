import json

config = {"model": "cnn", "layers": [{"out": 8, "kernel": 3}, {"out": 16, "kernel": 3}], "dropout": None, "amp": False, "lr": 3e-4}
text = json.dumps(config, indent=2, sort_keys=True)
print(text)
back = json.loads(text)
print(back == config, back["layers"][1]["out"], type(back["lr"]).__name__)
print(json.dumps({"ü": 1.0, "nested": [1, 2.5, None, True]}, ensure_ascii=False, separators=(",", ":")))
try:
    json.loads('{"a": 1,}')
except json.JSONDecodeError as error:
    print("not JSON, line", error.lineno)


class Encoder(json.JSONEncoder):
    def default(self, value):
        return sorted(value) if isinstance(value, set) else super().default(value)


print(json.dumps({"classes": {3, 1, 2}}, cls=Encoder))
try:
    json.dumps({"x": {1}})
except TypeError as error:
    print(error)

# --- on the GPU
import torch
from torch import nn

layers, channels = [], 3
for layer in config["layers"]:
    layers += [nn.Conv2d(channels, layer["out"], layer["kernel"]), nn.ReLU()]
    channels = layer["out"]
model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10)).cuda()
history = {"loss": [], "steps": 0}
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
for step in range(2):
    loss = nn.functional.cross_entropy(model(torch.randn(4, 3, 16, 16, device="cuda")), torch.zeros(4, dtype=torch.long, device="cuda"))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    history["loss"].append(loss.item())
    history["steps"] += 1
print(json.dumps(history))
