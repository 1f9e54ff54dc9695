#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
All figures of 'make bench' in one table: the benchmarks in C, the four workloads, a quiet node's agent,
and the counts that bench-compare guards. A row has the figure of the last run with its ratio, and the
other side's figure, where the same run has one: another program, or another way of doing the same.

  bench.py --json FILE PROGRAM...     run all; FILE has the figures, of the run before at first
"""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import benchoptions  # noqa: E402

# Of a row of workloads.py: unit.
WORKLOAD_FIGURES = {"CPU %": "%", "BPF %": "%", "BPF us a stack": "us", "PSS MiB": "MiB", "maps MiB": "MiB"}


def programs(paths, figures, to):
    """They print their own text as well."""
    said = f"{to}/figures"
    for path in paths:
        subprocess.run([path], check=True, env={**os.environ, "PODPROF_FIGURES": said})
    with open(said) as f:
        for line in f:
            figure = json.loads(line)
            figures[figure.pop("name")] = figure


def script(name, to, *arguments):
    """What one of the other scripts writes."""
    subprocess.run([f"{HERE}/{name}", *arguments, "--json", f"{to}/{name}"], check=True)
    with open(f"{to}/{name}") as f:
        return json.load(f)


def workloads(rows, figures):
    """The agent's rows; those of another profiler are the other side."""
    for row in sorted(rows, key=lambda r: r["profiler"] != "podprof"):
        for name, unit in WORKLOAD_FIGURES.items():
            at, value = f"{row['workload']}: {name}", row.get(name)
            if value and row["profiler"] == "podprof":
                figures[at] = {"value": float(value), "unit": unit}
            elif value and at in figures:
                figures[at].update(other=row["profiler"], beside=float(value))


def idle(rows, figures):
    for row in rows:
        seconds = f"{row['workload']}, a second"
        figures[f"{seconds}: wake-ups"] = {"value": row["wake-ups"], "unit": "wake-ups"}
        figures[f"{seconds}: system calls"] = {"value": sum(row["calls"].values()), "unit": "calls"}
        figures[f"{seconds}: CPU"] = {"value": row["cpu_ms"], "unit": "ms"}


def shown(value):
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.3g}"


def ratio(value, of):
    return f"{value / of:.2f}" if of else "-"


def table(before, after):
    print(f"{'':64} {'before':>12} {'now':>12} {'ratio':>6} {'':12} {'other side':>12} {'ratio':>6}")
    for name, figure in after.items():
        old, value, beside = before.get(name), figure["value"], figure.get("beside")
        print(f"{name[:64]:64} {shown(old['value']) if old else '-':>12} {shown(value):>12} "
              f"{ratio(value, old['value']) if old else '-':>6} {figure['unit']:12} "
              f"{shown(beside) if beside is not None else '-':>12} "
              f"{ratio(value, beside) if beside is not None else '-':>6} {figure.get('other', '')}".rstrip())


def main():
    parser = benchoptions.Parser(__doc__)
    parser.option("json", what="file for the figures; its earlier ones are the column 'before'")
    parser.option("build", os.path.join(HERE, "../../build"), "of the version")
    parser.option("seconds", 30, "of each workload and span")
    parser.option("profiler", what="NAME=COMMAND: another profiler beside the workloads, as for workloads.py")
    parser.add_argument("programs", nargs="*", help="benchmarks in C")
    options = parser.parsed()
    figures, before = {}, {}
    if options.json and os.path.exists(options.json):
        with open(options.json) as f:
            before = json.load(f)
    seconds = ("--seconds", str(options.seconds))
    with tempfile.TemporaryDirectory(prefix="podprof-bench-") as to:
        if options.programs:
            programs(options.programs, figures, to)
        beside = ("--profiler", options.profiler) if options.profiler else ()
        workloads(script("workloads.py", to, "--no-record", *seconds, *beside), figures)
        idle(script("idle.py", to, *seconds), figures)
        subprocess.run([f"{HERE}/counts.py", "run", "--quiet", "--build", options.build, "--json", f"{to}/counts"],
                       check=True)
        with open(f"{to}/counts") as f:
            figures.update(json.load(f))
    table(before, figures)
    benchoptions.write_json(options.json, figures)


if __name__ == "__main__":
    main()
