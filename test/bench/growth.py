#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
How the agent's cost grows: with processes, programs, containers and the sampling rate. System calls,
wake-ups and bytes, for each size, and the growth for one more (least squares). An agent in namespaces
of its own (idle.py), for each size another one.

Twice the rate has the same samples and maps as twice the CPUs. docs/cost.md has the model. Root,
strace, unshare; some minutes.
"""
import contextlib
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import benchoptions  # noqa: E402
import idle  # noqa: E402
import workloads  # noqa: E402

SIZES = {
    "processes": (0, 75, 150, 300),
    "programs": (0, 25, 50, 100),
    "containers": (0, 250, 500, 1000),
    "rate": (97, 485, 970, 1940),
}
COLUMNS = {
    "system calls/s": lambda row: sum(row["calls"].values()),
    "wake-ups/s": lambda row: row["wake-ups"],
    "CPU ms/s": lambda row: row["cpu_ms"],
    "PSS KiB": lambda row: row["pss_kib"],
    "maps KiB": lambda row: row["map_bytes"] / 1024,
}


class Inside(workloads.Workload):
    """Programs in the namespace."""

    def __init__(self, name, space, commands):
        super().__init__(name, [space.command(*c) for c in commands])


@contextlib.contextmanager
def running(load):
    load.start()
    try:
        yield
    finally:
        load.stop()


def sleeper(to):
    """A program that takes 1 ms a second, 14 calls deep."""
    path = f"{to}/pw-sleeper"
    if not os.path.exists(path):
        workloads.run("gcc", "-O1", "-fomit-frame-pointer", "-Wl,--build-id=sha1", "-x", "c", "-", "-o", path,
                      input=workloads.sleeper_source(1, 200).encode())
    return path


def processes(space, n, to):
    return Inside("processes", space, [[sleeper(to)]] * n)


def programs(space, n, to):
    """A process of each."""
    for i in range(n):
        workloads.copy_with_build_id(sleeper(to), f"{to}/pw-program{i}", i)
    return Inside("programs", space, [[f"{to}/pw-program{i}"] for i in range(n)])


def rate(space, _n, _to):
    return Inside("rate", space, [["sh", "-c", "while :; do :; done"]])


class Containers:
    """Empty cgroups, named as the kubelet names them, one container in each pod."""

    def __init__(self, space, n, _to):
        self.top = f"{space.cgroup}/kubepods"
        self.paths = [f"{self.top}/pod2c48913c-b29f-11e7-9350-{i:012}/{i:064}" for i in range(n)]

    def start(self):
        for path in self.paths:
            os.makedirs(path)

    def stop(self):
        for path in self.paths:
            os.rmdir(path)
            os.rmdir(os.path.dirname(path))
        with contextlib.suppress(FileNotFoundError):
            os.rmdir(self.top)


LOADS = {"processes": processes, "programs": programs, "containers": Containers, "rate": rate}


def measure(kind, n, to, stores, options):
    space = idle.Namespace()
    more = ["--cpu-rate", str(n)] if kind == "rate" else []
    try:
        with running(LOADS[kind](space, n, to)):
            return idle.measure(f"{kind}-{n}", space, stores, options, *more)
    finally:
        space.stop()


def slope(points):
    """Of the line through the points with the least squares."""
    x_mean = sum(x for x, _ in points) / len(points)
    y_mean = sum(y for _, y in points) / len(points)
    return sum((x - x_mean) * (y - y_mean) for x, y in points) / sum((x - x_mean) ** 2 for x, _ in points)


def show(kind, rows):
    print(f"| {kind} | " + " | ".join(COLUMNS) + " |\n|" + "---|" * (len(COLUMNS) + 1))
    for n, row in rows:
        print(f"| {n} | " + " | ".join(f"{value(row):,.1f}" for value in COLUMNS.values()) + " |")
    print("| each | " + " | ".join(f"{slope([(n, value(row)) for n, row in rows]):.4f}"
                                   for value in COLUMNS.values()) + " |", flush=True)


def main():
    parser = benchoptions.Parser(__doc__)
    parser.option("seconds", 10, "length of each of two spans")
    parser.option("warm-up", 15, "before the first of them")
    parser.option("window", "10s")
    parser.option("only", ",".join(SIZES), "what grows")
    parser.option("podprof", workloads.PODPROF)
    parser.option("listen", "127.0.0.1:17272")
    parser.option("json")
    options = parser.parsed()
    print(f"{os.cpu_count()} CPUs, {os.uname().release}, load {os.getloadavg()[0]:.1f}")
    found = {}
    for kind in options.only.split(","):
        with tempfile.TemporaryDirectory(prefix="podprof-growth-") as to, workloads.disk(to) as stores:
            found[kind] = [(n, measure(kind, n, to, stores, options)) for n in SIZES[kind]]
        show(kind, found[kind])
    benchoptions.write_json(options.json, found)


if __name__ == "__main__":
    main()
