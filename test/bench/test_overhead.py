#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of overhead.py: losses, intervals, verdicts, the order of the halves."""
import math
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import overhead  # noqa: E402

# values, mean, half of the interval: by hand, with t of 12.706, 4.303, 2.262 and (31 and more) 2.042
INTERVALS = [
    ([1.5], 1.5, math.inf),
    ([1.0, 1.0], 1.0, 0.0),
    ([0.0, 2.0], 1.0, 12.706),
    ([1.0, 2.0, 3.0], 2.0, 4.303 / math.sqrt(3)),
    ([-1.0, 1.0] * 5, 0.0, 2.262 * math.sqrt(10 / 9) / math.sqrt(10)),
    ([-1.0, 1.0] * 20, 0.0, 2.042 * math.sqrt(40 / 39) / math.sqrt(40)),
]

VERDICTS = [  # mean, half, goal
    (0.05, 0.05, 0.1, "met"), (0.05, 0.06, 0.1, "open"), (0.2, 0.1, 0.1, "open"),
    (0.21, 0.1, 0.1, "missed"), (-3.0, 1.0, 0.1, "met"), (0.0, math.inf, 0.1, "open"),
    (9.0, 0.0, None, ""),
]

RATES = [
    ("gaps", "1999000000 2000000000 0 0 0", {"gaps": 999500000.0}),
    ("pingpong", "1000 2000000000 900000000 7 7", {"pingpong": 500.0}),
    ("cpu", "1000 2000000000 500000000 0 0", {"cpu": 500.0, "cpu per CPU time": 2000.0}),
    ("cpu", "1000 2000000000 500000000 4000 8000",
     {"cpu": 500.0, "cpu per CPU time": 2000.0, "cpu cycles": 0.125, "cpu instructions": 0.25}),
]


def near(a, b):
    return a == b or abs(a - b) < 1e-9


def expect(name, got, wanted):
    if got != wanted:
        sys.exit(f"{name}: {got}, not {wanted}")


def main():
    for values, mean, half in INTERVALS:
        got = overhead.interval(values)
        if not near(got[0], mean) or not near(got[1], half):
            sys.exit(f"interval of {values}: {got}, not {(mean, half)}")
    for mean, half, goal, wanted in VERDICTS:
        expect(f"{mean} +- {half}, goal {goal}", overhead.verdict(mean, half, goal), wanted)
    for name, line, wanted in RATES:
        expect(line, overhead.rates(name, line), wanted)
    expect("losses", [round(x, 9) for x in overhead.losses([(200, 190), (100, 101), (50, 50)])], [5.0, -1.0, 0.0])
    expect("orders", [overhead.order(i) for i in range(3)], [(False, True), (True, False), (False, True)])
    # Each round against its own other half: a machine that becomes slower has no loss.
    rows = overhead.summary([({"pingpong": 100 / n}, {"pingpong": 98 / n, "other": 1}) for n in (1, 2, 4)])
    expect("rows", [(r["measure"], r["rounds"], round(r["loss"], 9), round(r["half"], 9), r["verdict"]) for r in rows],
           [("pingpong", 3, 2.0, 0.0, "missed")])
    rows = overhead.summary([({"cpu": 100}, {"cpu": 99}), ({"cpu": 100}, {})])
    expect("half a round", [(r["rounds"], r["half"], r["verdict"]) for r in rows], [(1, None, "open")])


if __name__ == "__main__":
    main()
