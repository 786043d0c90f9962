# SPDX-License-Identifier: BSD-3-Clause
"""A test that hangs ends with the stacks of all threads, before the limit of the whole run."""

import faulthandler
import os

import pytest

SECONDS = 300


@pytest.fixture(autouse=True)
def stacks_of_a_hang():
    # The watchdog is a thread, and the thread sanitizer sees nothing in the children of a process
    # that has threads.
    if "TSAN_OPTIONS" not in os.environ:
        faulthandler.dump_traceback_later(SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
