"""The package is typed, strictly: mypy reads the installed package with its stubs."""

import subprocess
import sys


def test_the_package_is_typed_strictly(tmp_path):
    # What is optional may be missing, or have no types of its own.
    # The page brings example programs along, which run on the package's own torch and name no types.
    optional = ["--disable-error-code=import-untyped", "--disable-error-code=import-not-found"]
    command = [sys.executable, "-m", "mypy", "--strict", *optional, "--package", "blockyard", "--exclude", "/page/"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_users_get_types(tmp_path):
    program = tmp_path / "use.py"
    program.write_text(
        "import blockyard\n"
        'run = blockyard.play("a = alloc 3 MiB")\n'
        "reveal_type(run.what_if().baseline.peak_reserved)\n"
        "reveal_type(blockyard.ranks([]).differing)\n"
        "reveal_type(run.diff(run).reserved.terms)\n"
        'reveal_type(blockyard.dry_run("train.py").gpus)\n'
        'reveal_type(blockyard.fit("train.py", vary={"batch-size": (1, 2)}).growth)\n'
    )
    command = [sys.executable, "-m", "mypy", "--strict", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    for kind in ("int | None", "SiteDifference", "DiffTerm", "GpuFit", "FitGrowth"):
        assert kind in done.stdout, done.stdout
    assert done.returncode == 0, done.stdout
