import torch

def report(name):
    print(name, torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.max_memory_allocated())

a = torch.randn(1000, 1000, device="cuda"); report("a")
b = a @ a.t(); report("b")
c = torch.cat([a, b], dim=0); report("c")
d = c.sum(dim=1); report("d")
e = (c * 2 + 1).relu().mean(); report("e")
del a, b
f = torch.topk(c, 10, dim=1); report("f")
g = torch.sort(c.flatten()); report("g")
h = c.to(torch.bfloat16); report("h")
i = h.float().softmax(-1); report("i")
j = torch.nn.functional.one_hot(torch.arange(0, 1000, device="cuda") % 50, 64); report("j")
k = torch.stack([i[:10], c[:10]]).permute(2, 0, 1).contiguous(); report("k")
l = torch.linspace(0, 1, 100000, device="cuda").cumsum(0); report("l")
m = torch.where(c > 0, c, torch.zeros_like(c)); report("m")
n = c @ c.t(); report("n")
torch.cuda.reset_peak_memory_stats(); report("peak")
del c, g, n
torch.cuda.empty_cache(); report("end")
print(torch.cuda.memory_stats()["allocation.all.allocated"], torch.cuda.memory_stats()["num_device_alloc"])
