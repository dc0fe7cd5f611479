import logging
import sys

logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(levelname)-8s %(name)s: %(message)s")
logger = logging.getLogger("train")
logger.debug("not shown")
logger.info("start with %d samples", 1000)
logger.warning("learning rate %.2e is large", 0.5)
child = logging.getLogger("train.data")
child.setLevel(logging.DEBUG)
child.debug("loaded %s", ["a", "b"])
try:
    1 / 0
except ZeroDivisionError:
    logger.error("failed", exc_info=False)
print(logger.isEnabledFor(logging.DEBUG), logging.getLevelName(30), child.parent.name)


class Collect(logging.Handler):
    def __init__(self):
        super().__init__()
        self.records = []

    def emit(self, record):
        self.records.append((record.levelname, record.getMessage()))


collect = Collect()
logger.addHandler(collect)
logger.info("collected %s", {"a": 1})
print(collect.records)

# --- on the GPU
import torch
from torch import nn

model = nn.Linear(10, 1).cuda()
x = torch.randn(32, 10, device="cuda")
for epoch in range(2):
    loss = model(x).pow(2).mean()
    loss.backward()
    logger.info("epoch %d loss %.4f memory %d", epoch, loss.item(), torch.cuda.memory_allocated())
print(collect.records[-1])
