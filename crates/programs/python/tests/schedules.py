"""Every schedule of learning rates: rates, momenta, states, errors, warnings. schedules.txt is what PyTorch 2.11 prints."""

import torch, math, warnings
from torch.optim.lr_scheduler import *
import torch.optim.lr_scheduler as L
warnings.simplefilter("ignore")
def params():
    return [{"params": [torch.nn.Parameter(torch.zeros(2))], "lr": 0.1}, {"params": [torch.nn.Parameter(torch.zeros(3))], "lr": 0.03}]
def sgd(**k): return torch.optim.SGD(params(), lr=0.1, momentum=0.9, **k)
def adam(): return torch.optim.Adam(params(), lr=0.1)
def ff(x): return repr(x)
def run(name, make, opt=sgd, n=14, metrics=None, extra=()):
    try:
        o = opt(); s = make(o)
        out = [[ff(g["lr"]) for g in o.param_groups]]
        for i in range(n):
            o.step()
            if metrics: s.step(metrics(i))
            else: s.step()
            row = [ff(g["lr"]) for g in o.param_groups]
            for k in extra: row += [ff(g.get(k)) for g in o.param_groups]
            try: row += [ff(v) for v in s.get_last_lr()]
            except Exception as e: row.append(type(e).__name__)
            out.append(row)
        print(name, "EPOCH", getattr(s, "last_epoch", None))
        for r in out: print(name, *(v[:12] if len(v) > 12 else v for v in r))
        d = s.state_dict()
        print(name, "STATE", {k: (v if isinstance(v, (int, float, str, list, dict, tuple, type(None))) and k not in ("_schedulers",) else type(v).__name__) for k, v in sorted(d.items())})
        if not metrics and name not in ("lambda_list",):
            o2 = opt(); s2 = make(o2); s2.load_state_dict(d)
            for g, h in zip(o2.param_groups, o.param_groups): g["lr"] = h["lr"]; g["initial_lr"] = h.get("initial_lr", g["lr"])
            for i in range(5): o2.step(); s2.step(); print(name, "RESUMED", [ff(g["lr"]) for g in o2.param_groups])
    except Exception as e:
        print(name, "RAISES", type(e).__name__, e)
run("lambda", lambda o: LambdaLR(o, lr_lambda=lambda e: 0.95 ** e))
run("lambda_list", lambda o: LambdaLR(o, lr_lambda=[lambda e: 0.95 ** e, lambda e: 1 / (e + 1)]))
run("lambda_bad", lambda o: LambdaLR(o, lr_lambda=[lambda e: 0.95 ** e]))
run("mult", lambda o: MultiplicativeLR(o, lr_lambda=lambda e: 0.95))
run("step", lambda o: StepLR(o, step_size=4, gamma=0.3))
run("multistep", lambda o: MultiStepLR(o, milestones=[3, 7, 7, 12], gamma=0.3))
run("constant", lambda o: ConstantLR(o, factor=0.25, total_iters=5))
run("constant_bad", lambda o: ConstantLR(o, factor=1.25))
run("linear", lambda o: LinearLR(o, start_factor=0.25, end_factor=0.9, total_iters=7))
run("linear_bad", lambda o: LinearLR(o, start_factor=0.0))
run("linear_bad2", lambda o: LinearLR(o, end_factor=1.5))
run("exp", lambda o: ExponentialLR(o, gamma=0.9))
run("poly", lambda o: PolynomialLR(o, total_iters=9, power=2.0))
run("cosine", lambda o: CosineAnnealingLR(o, T_max=10, eta_min=0.001))
run("cosine2", lambda o: CosineAnnealingLR(o, T_max=7))
run("warm", lambda o: CosineAnnealingWarmRestarts(o, T_0=4, T_mult=2, eta_min=0.001))
run("warm1", lambda o: CosineAnnealingWarmRestarts(o, T_0=5))
run("warm_bad", lambda o: CosineAnnealingWarmRestarts(o, T_0=0))
for mode in ("triangular", "triangular2", "exp_range"):
    run("cyclic_" + mode, lambda o: CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=4, step_size_down=3, mode=mode, gamma=0.9), extra=("momentum",))
run("cyclic_nomom", lambda o: CyclicLR(o, base_lr=[0.01, 0.02], max_lr=[0.1, 0.3], step_size_up=4, cycle_momentum=False))
run("cyclic_fn", lambda o: CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=4, scale_fn=lambda x: 1 / (5 ** (x * 0.0001)), scale_mode="iterations"))
run("cyclic_adam", lambda o: CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=4), opt=adam, extra=("betas",))
run("cyclic_bad", lambda o: CyclicLR(o, base_lr=0.01, max_lr=0.1, mode="x"))
run("one", lambda o: OneCycleLR(o, max_lr=0.3, total_steps=15), extra=("momentum", "max_lr", "initial_lr", "min_lr"))
run("one_adam", lambda o: OneCycleLR(o, max_lr=[0.3, 0.1], epochs=2, steps_per_epoch=8, anneal_strategy="linear"), opt=adam, extra=("betas",))
run("one_3", lambda o: OneCycleLR(o, max_lr=0.3, total_steps=15, three_phase=True, pct_start=0.4), extra=("momentum",))
run("one_over", lambda o: OneCycleLR(o, max_lr=0.3, total_steps=10))
run("one_bad", lambda o: OneCycleLR(o, max_lr=0.3))
run("one_bad2", lambda o: OneCycleLR(o, max_lr=0.3, total_steps=10, pct_start=2))
run("one_bad3", lambda o: OneCycleLR(o, max_lr=0.3, total_steps=10, anneal_strategy="q"))
run("plateau", lambda o: ReduceLROnPlateau(o, patience=2), metrics=lambda i: [3, 2, 2, 2, 2, 2, 1.9999, 1.9, 1.95, 1.96, 1.97, 1.98][i % 12])
run("plateau_max", lambda o: ReduceLROnPlateau(o, mode="max", factor=0.5, patience=1, cooldown=2, threshold=0.01, threshold_mode="abs", min_lr=[0.01, 0.001], eps=1e-6), metrics=lambda i: [1, 2, 2.005, 2, 2, 2, 1, 3, 3][i % 9])
run("plateau_bad", lambda o: ReduceLROnPlateau(o, factor=1.0))
run("seq", lambda o: SequentialLR(o, schedulers=[ConstantLR(o, factor=0.1, total_iters=3), ExponentialLR(o, gamma=0.9), CosineAnnealingLR(o, T_max=5)], milestones=[4, 10]))
run("seq_warm", lambda o: SequentialLR(o, schedulers=[LinearLR(o, start_factor=0.1, total_iters=5), CosineAnnealingLR(o, T_max=15)], milestones=[5]))
run("seq_bad", lambda o: SequentialLR(o, schedulers=[ConstantLR(o, factor=0.1, total_iters=3)], milestones=[4, 10]))
run("chained", lambda o: ChainedScheduler([ConstantLR(o, factor=0.1, total_iters=3), ExponentialLR(o, gamma=0.9)], optimizer=o))
run("chained2", lambda o: ChainedScheduler([LinearLR(o, start_factor=0.1, total_iters=5), StepLR(o, 3, 0.5)]))
import torch.optim.swa_utils as S
run("swalr", lambda o: S.SWALR(o, swa_lr=0.05, anneal_epochs=5))
run("swalr_lin", lambda o: S.SWALR(o, swa_lr=[0.05, 0.02], anneal_epochs=4, anneal_strategy="linear"))
# explicit epochs, last_epoch
o = sgd(); s = StepLR(o, 3, 0.1)
for e in (0, 1, 5, 7, 2): s.step(e); print("closed_step", e, s.get_last_lr())
o = sgd(); s = CosineAnnealingWarmRestarts(o, 4, 2)
for e in (0.5, 1.25, 3.75, 4.0, 9.5, 13.0, 30.25): s.step(e); print("closed_warm", e, [repr(v) for v in s.get_last_lr()])
o = sgd(); s = CosineAnnealingLR(o, 10)
for e in (1, 2, 9): s.step(e); print("closed_cos", e, [repr(v) for v in s.get_last_lr()])
o = sgd()
try: StepLR(o, 3, last_epoch=5)
except Exception as e: print("last_epoch", type(e).__name__, e)
for g in o.param_groups: g["initial_lr"] = g["lr"]
s = StepLR(o, 3, last_epoch=5); print("last", s.last_epoch, s.get_last_lr())
s = CosineAnnealingLR(o, 10, last_epoch=4); print("lastcos", s.last_epoch, s.get_last_lr())
o = torch.optim.Adam(params(), lr=torch.tensor(0.1)); 
try:
    o = torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=torch.tensor(0.1)); s = ExponentialLR(o, 0.9); o.step(); s.step(); print("tensorlr", type(o.param_groups[0]["lr"]).__name__)
except Exception as e: print("tensorlr", type(e).__name__, e)
try: StepLR("x", 3)
except Exception as e: print("notopt", type(e).__name__, e)
warnings.simplefilter("always")
o = sgd(); s = StepLR(o, 3)
with warnings.catch_warnings(record=True) as w:
    s.step(); print("warned", len(w), str(w[0].message)[:60] if w else "")
with warnings.catch_warnings(record=True) as w:
    s.step(5); print("warned", len(w), str(w[0].message)[:60] if w else "")
print(sorted(n for n in L.__all__))
