# A small CNN for 32 x 32 images, trained with SGD and momentum.
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 6, 5)
        self.pool = nn.MaxPool2d(2, 2)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool(F.relu(self.conv1(x)))
        x = self.pool(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def report(label):
    print(f"{label}: {torch.cuda.memory_allocated():,} allocated, {torch.cuda.max_memory_allocated():,} peak, {torch.cuda.memory_reserved():,} reserved")


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
net = Net().to(device)
report("model")
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.001, momentum=0.9)
for step in range(4):
    inputs = torch.randn(64, 3, 32, 32).to(device)
    labels = torch.randint(0, 10, (64,)).to(device)
    optimizer.zero_grad()
    outputs = net(inputs)
    loss = criterion(outputs, labels)
    report(f"step {step} forward")
    loss.backward()
    optimizer.step()
    report(f"step {step} done")
with torch.no_grad():
    outputs = net(torch.randn(64, 3, 32, 32, device=device))
    _, predicted = torch.max(outputs, 1)
report("evaluated")
