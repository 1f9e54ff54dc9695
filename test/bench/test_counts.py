#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The comparison of counts finds made-up regressions, and no others."""
import contextlib
import io
import json
import os
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import counts  # noqa: E402

ROWS = [  # unit, before, after, is it worse?
    ("instructions", 100000, 104900, False), ("instructions", 100000, 105000, True),
    ("instructions", 1000, 1090, False), ("instructions", 100000, 50000, False),
    ("lines", 40.0, 42.0, True), ("lines", 2.0, 3.0, False), ("lines", 0.0, 2.0, True),
    ("bytes", 4096, 8192, True), ("bytes", 1 << 20, 1 << 20, False),
    ("calls", 100, 104, False), ("calls", 100, 106, True),
    ("wake-ups", 45, 52, False), ("wake-ups", 45, 60, True),
    ("calls, idle", 700, 739, False), ("calls, idle", 700, 750, True), ("ms", 100.0, 900.0, False),
]


def write(path, value, unit):
    with open(path, "w") as f:
        json.dump({"made up": {"value": value, "unit": unit}, "same": {"value": 7, "unit": "bytes"}}, f)


def compare(base, new):
    """Status, and the text for stderr."""
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        status = counts.compare(types.SimpleNamespace(base=base, new=new))
    return status, said.getvalue()


def check(name, got, worse):
    status, said = got
    if (status, "made up" in said, "same" in said) != (int(worse), worse, False):
        sys.exit(f"{name}: status {status}, said {said!r}")


def main():
    with tempfile.TemporaryDirectory(prefix="podprof-counts-") as to:
        for unit, before, after, worse in ROWS:
            write(f"{to}/base", before, unit)
            write(f"{to}/new", after, unit)
            check(f"{unit} {before} -> {after}", compare(f"{to}/base", f"{to}/new"), worse)
        write(f"{to}/again", 100, "calls")
        write(f"{to}/new", 150, "calls")
        write(f"{to}/base", 100, "calls")
        check("the lowest of two runs", compare(f"{to}/base", f"{to}/new,{to}/again"), False)
        with open(f"{to}/other", "w") as f:
            f.write("{}")
        if not compare(f"{to}/other", f"{to}/new")[0]:
            sys.exit("nothing in common: status 0")
    text = "lines: a b: 3 stacks, 9.0 frames\n  walk's state   18.5 lines   7.0 pages\n"
    if list(counts.lines_of(text)) != [("walk of a b: walk's state", 18.5)]:
        sys.exit(f"lines: {list(counts.lines_of(text))}")


if __name__ == "__main__":
    main()
