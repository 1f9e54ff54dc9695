#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of all figures: ratios to the run before and to the other side, and none where there is nothing. A profiler
that ends at once is shown with its log."""
import contextlib
import io
import json
import os
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import bench  # noqa: E402
import workloads  # noqa: E402

BEFORE = {"table: a row": {"value": 4.0, "unit": "bytes"}, "idle": {"value": 0, "unit": "calls"}}
PROGRAM = """#!/bin/sh
echo '{"name":"table: a row","unit":"bytes","value":3.0,"other":"layout A","beside":12.0}' >>"$PODPROF_FIGURES"
echo '{"name":"walk","unit":"ns","value":1500.0}' >>"$PODPROF_FIGURES"
"""
WORKLOADS = [  # the columns are texts
    {"workload": "W1", "profiler": "podprof", "CPU %": "0.250", "BPF %": "", "PSS MiB": "15.4"},
    {"workload": "W1", "profiler": "peer", "CPU %": "1.000", "PSS MiB": ""},
]
IDLE = {"workload": "idle", "wake-ups": 1.5, "calls": {"read": 2.0, "futex": 3.0}, "cpu_ms": 0.5}
WANT = [
    "table: a row 4 3 0.75 bytes 12 0.25 layout A", "walk - 1,500 - ns - -", "W1: CPU % - 0.25 - % 1 0.25 peer",
    "W1: PSS MiB - 15.4 - MiB - -", "idle, a second: wake-ups - 1.5 - wake-ups - -",
    "idle, a second: system calls - 5 - calls - -", "idle, a second: CPU - 0.5 - ms - -", "idle 0 7 - calls - -",
]


def ended():
    with tempfile.TemporaryDirectory(prefix="podprof-bench-") as to:
        profiler = workloads.start_profiler(["sh", "-c", "echo no such flag; exit 3"], to, 97)
        try:
            workloads.wait_until_sampling(profiler)
        except SystemExit as end:
            if not str(end).endswith("ended with 3: no such flag\n"):
                sys.exit(f"ended: {end}")
        else:
            sys.exit("ended: not seen")


def main():
    ended()
    figures = {}
    with tempfile.TemporaryDirectory(prefix="podprof-bench-") as to:
        with open(f"{to}/program", "w") as f:
            f.write(PROGRAM)
        os.chmod(f"{to}/program", 0o700)
        bench.programs([f"{to}/program"], figures, to)
    bench.workloads(WORKLOADS, figures)
    bench.idle([IDLE], figures)
    figures["idle"] = {"value": 7, "unit": "calls"}
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        bench.table(BEFORE, figures)
    got = [" ".join(line.split()) for line in said.getvalue().splitlines()[1:]]
    if got != WANT:
        sys.exit(f"table: {json.dumps(got, indent=1)}")


if __name__ == "__main__":
    main()
