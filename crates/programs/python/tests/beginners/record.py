"""Writes what Python and numpy themselves print for the first part of each program here, which needs no GPU: `python record.py`.

The part after the line `# --- on the GPU` is what this repository's PyTorch prints; `UPDATE_EXPECT=1 cargo test --test beginners` writes it.
"""

import os
import pathlib
import subprocess
import sys

MARK = "# --- on the GPU\n"
folder = pathlib.Path(__file__).parent
for file in sorted(folder.glob("*.py")):
    if file.name == "record.py":
        continue
    program = file.read_text().split(MARK)[0]
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "0"})
    if ran.returncode != 0:
        sys.exit(f"{file.name}: {ran.stderr}")
    expected = file.with_suffix(".txt")
    rest = expected.read_text().split(MARK)[1] if expected.exists() else ""
    expected.write_text(ran.stdout + MARK + rest)
