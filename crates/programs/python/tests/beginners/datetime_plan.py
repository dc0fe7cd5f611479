import calendar
from datetime import date, datetime, timedelta, timezone

start = datetime(2024, 2, 27, 22, 30, tzinfo=timezone.utc)
step = timedelta(hours=7, minutes=45)
for i in range(4):
    moment = start + i * step
    print(moment.isoformat(), moment.strftime("%a %d %b %Y, %H:%M"), moment.timetuple().tm_yday)
print((date(2024, 12, 24) - date(2024, 2, 29)).days, date(2024, 2, 29).weekday(), calendar.isleap(2024))
print(datetime.strptime("17.05.2024 08:05", "%d.%m.%Y %H:%M"), datetime.fromisoformat("2024-05-17T08:05:30"))
took = timedelta(seconds=3725.5)
print(took, took.total_seconds(), took // timedelta(minutes=1), str(took).split(".")[0])
print(max(date(2024, 1, 1), date(2023, 12, 31)), start.astimezone(timezone(timedelta(hours=2))).hour)
name = f"run_{start:%Y%m%d_%H%M%S}"
print(name, f"{start:%H:%M}", repr(timedelta(days=1, seconds=30)))

# --- on the GPU
import torch
from torch import nn

model = nn.GRU(4, 8, batch_first=True).cuda()
deadlines = [start + timedelta(days=i) for i in range(3)]
features = torch.tensor([[d.month / 12, d.day / 31, d.hour / 24, d.weekday() / 7] for d in deadlines], device="cuda")
out, hidden = model(features.unsqueeze(0))
print(out.shape, hidden.shape, f"{out.mean().item():.3f}")
log = {f"{d:%d.%m.}": value for d, value in zip(deadlines, out[0, :, 0].tolist())}
print(log)
