"""How far estimates of GPU memory are from a GPU: runs `step.py` of each model and batch in several ways, and makes the tables.

    python accuracy.py gpu                                  # on a GPU with 139 GiB
    python accuracy.py dry --blockyard BLOCKYARD            # without a GPU
    python accuracy.py fake --blockyard BLOCKYARD           # FakeTensorMode with MemTracker, inside a dry run
    python accuracy.py formulas --blockyard BLOCKYARD       # accelerate, torchinfo, vram-check, and a closed formula
    python accuracy.py table                                # the tables of docs/accuracy.md

Each but `table` writes one line of JSON for each program to `results/WHAT.jsonl` beside this file, or to the file of `--out`, and
leaves out programs that have a line there. `--only TEXT` takes the programs whose model has the text in its name.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import programs

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results"
PATIENCE = 300
AT_ONCE = 6
GIB = 1 << 30
# What the processes of a GPU may reserve together, and what one takes beside PyTorch's memory.
ROOM = 120 * GIB
OUTSIDE = GIB
BEGIN, END = "<!-- tables -->", "<!-- end of the tables -->"
# What a program without a dry run is assumed to reserve.
UNKNOWN = 20 * GIB


def read(path):
    """The lines of a file by program; the last one of each counts."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {(row["model"], row["batch"]): row for row in map(json.loads, lines)}


def write(path, row):
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


def last_line(text):
    """The error of a process, without paths."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(" ")]
    errors = [line for line in lines if "Error" in line or "Exception" in line]
    return (errors or lines or ["no output"])[-1][:160]


def answer_of(done, program):
    """The line of JSON that a program printed, or the error that ended it."""
    model, batch = program
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    return {"model": model, "batch": batch, "error": last_line(done.stderr)}


def gpu(wanted, out, options):
    """Processes side by side, the largest first, as long as all fit; one that fails or finds too little memory runs again alone."""
    import torch

    names = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "python": sys.version.split()[0]}
    expected = read(RESULTS / "dry.jsonl")

    def size(program):
        """What it reserves at most, by a dry run of this batch or a larger one."""
        rows = [row for (model, batch), row in expected.items() if model == program[0] and batch >= program[1]]
        return min((row["reserved"] for row in rows if "reserved" in row), default=UNKNOWN) + OUTSIDE

    sizes = {p: size(p) for p in wanted}
    waiting = sorted(wanted, key=sizes.get, reverse=True)
    running, failed = {}, []

    def start(program):
        command = [sys.executable, str(HERE / "step.py"), program[0], str(program[1])]
        output = [tempfile.TemporaryFile("w+") for _ in range(2)]
        return subprocess.Popen(command, stdout=output[0], stderr=output[1]), output, time.monotonic()

    def end(program):
        process, output, _ = running.pop(program)
        text = []
        for file in output:
            file.seek(0)
            text.append(file.read())
            file.close()
        return answer_of(subprocess.CompletedProcess([], process.returncode, *text), program)

    def is_over(program):
        process, _, begin = running[program]
        if time.monotonic() - begin > PATIENCE:
            process.kill()
            process.wait()
        return process.poll() is not None

    while waiting or running:
        for program in list(waiting):
            together = sum(sizes[p] for p in running)
            if len(running) < AT_ONCE and (not running or together + sizes[program] <= ROOM):
                waiting.remove(program)
                running[program] = start(program)
        for program in [p for p in running if is_over(p)]:
            row = end(program)
            if "error" in row or row["retries"]:
                failed.append(program)
            else:
                write(out, {**row, **names})
        time.sleep(0.1)
    for program in failed:
        running[program] = start(program)
        while not is_over(program):
            time.sleep(0.1)
        write(out, {**end(program), **names})


def run_dry(options, *arguments):
    command = [
        options.blockyard,
        "dry-run",
        "--python",
        sys.executable,
        "--gpu",
        "h200",
        "--quiet",
        *map(str, arguments),
    ]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        text = process.communicate(timeout=options.patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        text = "", f"Error: no end within {options.patience} seconds"
    return subprocess.CompletedProcess(command, process.returncode, *text)


def dry(wanted, out, options):
    def one(program):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "report.json")
            done = run_dry(options, "--json", file, HERE / "step.py", *program)
            row = answer_of(done, program)
            if file.exists():
                report = json.loads(file.read_text())
                peak = report["peaks"][0] if report["peaks"] else {}
                row.update({name: peak[name] for name in ("allocated", "reserved") if name in peak})
                row.update(
                    exact=report["exact"],
                    why=sorted({note["text"].replace(f"{HERE}/", "") for note in report["notes"]})[:3],
                )
                orders = report["addresses"]
                if orders["equal"] is False:
                    row["why"].append("the numbers depend on the addresses of segments")
                    row["range"] = {name: orders["peaks"][0][name] for name in ("allocated", "reserved")}
        return [row]

    write_all(one, wanted, out, options)


def write_all(answers_of, wanted, out, options):
    """Writes what a function answers about each, several at a time, as they end."""
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in concurrent.futures.as_completed([pool.submit(answers_of, one) for one in wanted]):
            for row in done.result():
                write(out, row)


def by_model(name):
    """A part that asks one process for all batches of a model."""

    def part(wanted, out, options):
        def one(model):
            batches = [batch for other, batch in wanted if other == model]
            done = run_dry(options, __file__, "--inside", name, model, *batches)
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            error = last_line(done.stderr)
            return rows + [{"model": model, "batch": batch, "error": error} for batch in batches[len(rows) :]]

        write_all(one, dict.fromkeys(model for model, _ in wanted), out, options)

    return part


def inside_fake(model, *batches):
    """PyTorch's own estimate, around the unchanged program, with the help that `dry_run_peers.py` lists."""
    sys.path.insert(0, str(HERE.parent))
    import dry_run_peers

    for batch in batches:
        sys.argv = ["step.py", model, batch]
        with contextlib.redirect_stdout(sys.stderr):
            answer = dry_run_peers.of_fake(str(HERE / "step.py"))
        row = {"model": model, "batch": int(batch), "allocated": answer["peak"]}
        print(json.dumps(row if answer["error"] is None else {**row, "error": answer["error"]}), flush=True)


def inside_formulas(model, *batches):
    """Rules that need the model and one forward pass at most."""
    import step
    import torch
    import torchinfo
    import vram_check
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    with torch.device("cuda"):
        module = step.make(model).train()
    size, _ = calculate_maximum_sizes(module)
    mixed = "bfloat16" if programs.is_autocast(model) else "float32"
    weights = sum(p.numel() * p.element_size() for p in module.parameters())
    count = sum(p.numel() for p in module.parameters())
    states = weights * (2 if programs.optimizer_kind(model) == "sgd" else 3)
    for batch in map(int, batches):
        with torch.device("cuda"):
            inputs, _ = step.data(model, batch)
        with contextlib.redirect_stdout(sys.stderr):
            summary = torchinfo.summary(module, input_data=[inputs], device="cuda", mode="train", verbose=0)
        outputs = []

        def note(_, __, output, outputs=outputs):
            if isinstance(output, torch.Tensor):
                outputs.append(output.numel() * output.element_size())

        hooks = [part.register_forward_hook(note) for part in module.modules() if not list(part.children())]
        with torch.autocast("cuda", torch.bfloat16) if programs.is_autocast(model) else contextlib.nullcontext():
            module(inputs)
        for hook in hooks:
            hook.remove()
        row = {
            "model": model,
            "batch": batch,
            "accelerate": int(max(estimate_training_usage(size, mixed).values())),
            "torchinfo": int(summary.total_input + summary.total_output_bytes + summary.total_param_bytes),
            "vram_check": vram_check.estimate(count, batch, "fp32", programs.optimizer_kind(model)).total_bytes,
            "formula": weights + states + sum(outputs),
        }
        print(json.dumps(row), flush=True)


class Estimator:
    """The numbers of one way to estimate, by program; programs without a number are left out."""

    def __init__(self, name, file, allocated, reserved=None):
        self.name = name
        rows = {p: row for p, row in read(file).items() if "error" not in row}
        keys = {"allocated": allocated, "reserved": reserved or allocated}
        self.bytes = {what: {p: row[key] for p, row in rows.items()} for what, key in keys.items()}

    def errors(self, truth, what, ran):
        """Signed errors in parts of the truth."""
        there = [p for p in ran if p in self.bytes[what]]
        return [(self.bytes[what][p] - truth[p][what]) / truth[p][what] for p in there]


def percent(value):
    digits = 1 if abs(value) >= 0.001 else 3 if abs(value) >= 1e-5 else 5
    return "0" if value == 0 else f"{value:.{digits}%}"


def median_and_worst(errors):
    if not errors:
        return "-"
    worst = max(errors, key=abs)
    return f"{percent(statistics.median(map(abs, errors)))}, {'+' if worst > 0 else ''}{percent(worst)}"


def table_lines(header, rows, numbers=0):
    """A table; all columns after the first `numbers` ones are aligned to the right."""
    yield "| " + " | ".join(header) + " |"
    yield "| " + " | ".join(["---"] * (len(header) - numbers) + ["---:"] * numbers) + " |"
    yield from ("| " + " | ".join(map(str, row)) + " |" for row in rows)


def tables(folder):
    truth = {p: row for p, row in read(folder / "gpu.jsonl").items() if "error" not in row}
    ours = read(folder / "dry.jsonl")
    ran = [p for p in programs.programs() if p in truth]
    families = {}
    for program in ran:
        families.setdefault(programs.family(program[0]), []).append(program)
    formulas = folder / "formulas.jsonl"
    estimators = [
        Estimator("`blockyard dry-run`", folder / "dry.jsonl", "allocated", "reserved"),
        Estimator("`FakeTensorMode`, `MemTracker`", folder / "fake.jsonl", "allocated"),
        Estimator("closed formula", formulas, "formula"),
        Estimator("torchinfo", formulas, "torchinfo"),
        Estimator("vram-check", formulas, "vram_check"),
        Estimator("accelerate", formulas, "accelerate"),
    ]
    for what in ("allocated", "reserved"):
        yield f"### Peak {what}"
        yield ""
        rows = []
        for estimator in estimators:
            errors = estimator.errors(truth, what, ran)
            near = [sum(abs(e) <= bound for e in errors) for bound in (0, 0.01, 0.1)]
            low = sum(e < 0 for e in errors)
            rows.append([estimator.name, f"{len(errors)} of {len(ran)}", *near, low, median_and_worst(errors)])
        yield from table_lines(
            ["estimate", "answers", "equal", "within 1 %", "within 10 %", "too low", "median, worst"], rows, 6
        )
        yield ""
        names = [estimator.name for estimator in estimators]
        rows = [
            [f"{name} ({len(members)})", *(median_and_worst(e.errors(truth, what, members)) for e in estimators)]
            for name, members in families.items()
        ]
        yield from table_lines(["family, programs", *names], rows, len(names))
        yield ""
    yield "### Exact and estimate"
    yield ""
    rows = []
    for exact in (True, False):
        marked = [p for p in ran if "error" not in ours.get(p, {"error": ""}) and ours[p]["exact"] is exact]
        equal = [sum(ours[p][what] == truth[p][what] for p in marked) for what in ("allocated", "reserved")]
        rows.append(["exact" if exact else "an estimate", len(marked), *equal])
    yield from table_lines(["the dry run says", "programs", "allocated equal", "reserved equal"], rows, 3)
    yield ""
    yield "### Programs that differ"
    yield ""
    rows = []
    for program in ran:
        row = ours.get(program, {"error": "not run"})
        if "error" in row:
            rows.append([*program, row["error"], "", ""])
        elif any(row[what] != truth[program][what] for what in ("allocated", "reserved")):
            off = [
                percent((row[what] - truth[program][what]) / truth[program][what]) for what in ("allocated", "reserved")
            ]
            rows.append([*program, *off, "exact" if row["exact"] else "estimate"])
    yield from table_lines(["model", "batch", "allocated", "reserved", "the dry run says"], rows)


def write_tables(page, folder):
    """Between the two marks of the page."""
    text = page.read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    page.write_text(before + BEGIN + "\n\n" + "\n".join(tables(folder)) + "\n\n" + END + after)


def main():
    if sys.argv[1:2] == ["--inside"]:
        {"fake": inside_fake, "formulas": inside_formulas}[sys.argv[2]](*sys.argv[3:])
        return
    parts = {"gpu": gpu, "dry": dry, "fake": by_model("fake"), "formulas": by_model("formulas")}
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=[*parts, "table"])
    parser.add_argument("--blockyard", default="blockyard", help="the command `blockyard`")
    parser.add_argument("--jobs", type=int, default=1, help="how many dry runs at a time")
    parser.add_argument("--patience", type=int, default=300, help="the seconds of one dry run")
    parser.add_argument("--out", type=pathlib.Path, help="the file of the results")
    parser.add_argument("--only", default="", help="programs whose model has this text in its name")
    parser.add_argument(
        "--page", type=pathlib.Path, default=HERE.parent.parent / "docs/accuracy.md", help="the page of `table`"
    )
    parser.add_argument("--results", type=pathlib.Path, default=RESULTS, help="the folder of the results")
    options = parser.parse_args()
    if options.what == "table":
        write_tables(options.page, options.results)
        return
    out = options.out or RESULTS / f"{options.what}.jsonl"
    out.parent.mkdir(exist_ok=True)
    there = read(out)
    wanted = [p for p in programs.programs() if options.only in p[0] and p not in there]
    parts[options.what](wanted, out, options)


if __name__ == "__main__":
    main()
