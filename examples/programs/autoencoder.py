import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(1000, 784), torch.zeros(1000))
loader = DataLoader(data, batch_size=128, shuffle=True)
net = nn.Sequential(
    nn.Linear(784, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(0.1),
    nn.Linear(512, 64), nn.Tanh(),
    nn.Linear(64, 512), nn.LeakyReLU(0.2), nn.Linear(512, 784), nn.Sigmoid(),
).to(device)
opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
sched = optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.5)
mse = nn.MSELoss()
for epoch in range(2):
    net.train()
    for x, _ in loader:
        x = x.to(device)
        out = net(x)
        loss = mse(out, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    sched.step()
    print(epoch, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_reserved())
net.eval()
with torch.no_grad():
    big = torch.randn(4096, 784, device=device)
    out = net(big)
    print("eval", torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())
del big, out, x, loss
torch.cuda.empty_cache()
print("end", torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
