"""Runs a program as `python PROGRAM ARGUMENTS` does, and writes what it took: `python FOLDER SETTINGS PROGRAM ...`."""

import json
import sys

import blockyard_dry_run

blockyard_dry_run.run_program(json.loads(sys.argv[1]), sys.argv[2:])
