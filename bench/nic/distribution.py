# SPDX-License-Identifier: BSD-3-Clause
"""The statistics of compare.py for many times, and enough of their distribution to draw it."""

import collections
import math
import statistics

# Shares of the calls that take longer: even steps, and then ever closer to none.
STEPS = 200
TAIL_STEPS = 20  # a factor of ten
BINS = 24  # of histograms; a factor of ten


def at(ordered, share):
    """The time that `share` of the calls do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] / 1e3


# As `unisono bench --consistency` has them (tools/bench/study/consistency.cpp).
TRIMMED_PERCENT = 1
NEAR = 0.1  # of the mean


def consistency(ordered):
    """Statistics without the highest percent, which one interrupt more or less decides."""
    kept = ordered[: len(ordered) - len(ordered) * TRIMMED_PERCENT // 100]
    mean = statistics.fmean(kept)
    near = sum((1 - NEAR) * mean <= time <= (1 + NEAR) * mean for time in kept)
    return {
        "trimmed_mean_us": mean / 1e3,
        "trimmed_deviation_us": statistics.stdev(kept) / 1e3 if len(kept) > 1 else 0,
        "near_percent": 100 * near / len(kept),
    }


def summary(times_ns):
    ordered = sorted(times_ns)
    return {
        "calls": len(ordered),
        "median_us": statistics.median(ordered) / 1e3,
        "mean_us": statistics.fmean(ordered) / 1e3,
        "deviation_us": statistics.pstdev(ordered) / 1e3,
        "p99_us": at(ordered, 0.99) if len(ordered) >= 100 else None,
        "p999_us": at(ordered, 0.999) if len(ordered) >= 1000 else None,
        "min_us": ordered[0] / 1e3,
        "max_us": ordered[-1] / 1e3,
        **consistency(ordered),
    }


def quantiles(times_ns):
    """[(share of the calls that take longer, microseconds)]"""
    ordered = sorted(times_ns)
    shares = [1 - step / STEPS for step in range(STEPS)]
    tail = TAIL_STEPS * max(0, math.log10(len(ordered) * shares[-1]))
    shares += [shares[-1] * 10 ** (-step / TAIL_STEPS) for step in range(1, int(tail) + 1)]
    return [(share, at(ordered, 1 - share)) for share in shares]


def histogram(times_ns):
    """[(least microseconds, share of the calls in %)] of all bins from the first to the last call.
    Each is as wide as a factor of 10 ** (1 / BINS)."""
    bins = [math.floor(BINS * math.log10(max(1, time) / 1e3)) for time in times_ns]
    counts = collections.Counter(bins)
    return [(10 ** (number / BINS), 100 * counts[number] / len(bins))
            for number in range(min(bins), max(bins) + 1)]
