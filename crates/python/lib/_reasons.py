"""Why memory is alive: the names of the program that lead to it."""


def cause(program, main, error):
    return None


def names_at_end(program, main, error):
    return {}


def report_at(program, step, send):
    """Sends why memory is alive once the recording has `step` steps."""


def report_at_end(program, main, error):
    """Sends it at the program's end, if the step has not come before."""
