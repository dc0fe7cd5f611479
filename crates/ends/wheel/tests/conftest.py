"""What all tests share."""

import signal

import pytest


@pytest.fixture
def ctrl_c():
    """Ctrl-C interrupts, even where the tests were started in the background of a shell, which has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
