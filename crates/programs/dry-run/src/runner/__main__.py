"""Runs a program as `python PROGRAM ARGUMENTS` does, and writes its memory: `python FOLDER SETTINGS PROGRAM ...`.

With `python FOLDER '{"preload": [MODULE, ...], "program": FILE}'` programs come on standard input, and each runs in
a copy of this process, which has loaded the modules and those that the file imports first.
"""

import json
import sys

import blockyard_dry_run
from blockyard_dry_run import preload

settings, arguments = json.loads(sys.argv[1]), sys.argv[2:]
ended = None
if "preload" in settings:
    job = preload.serve(settings["preload"], settings["program"])
    preload.become(job)
    settings, arguments, ended = job["settings"], job["arguments"], preload.end_with
blockyard_dry_run.run_program(settings, arguments, ended)
