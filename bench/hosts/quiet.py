# SPDX-License-Identifier: BSD-3-Clause
"""Waiting for a moment in which the machine does little else, where others work on it too."""

import time

IDLE = 0.9  # of all cores' time
LOOK_SECONDS = 0.5


def processor_time():
    """(idle, all), in ticks since the machine started."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def wait_until_quiet(most_seconds):
    """At most so long. Whether it is quiet now."""
    end = time.monotonic() + most_seconds
    while True:
        idle, total = processor_time()
        time.sleep(LOOK_SECONDS)
        idle_now, total_now = processor_time()
        if idle_now - idle >= IDLE * (total_now - total):
            return True
        if time.monotonic() >= end:
            return False
