#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Nanoseconds of BPF time a frame, in deep stacks of one kind each, by turns with other profilers:

  python          functions of CPython, in one run of the interpreter's loop
  python-c        every Python function is called by C (sorted())
  java-int        HotSpot's interpreter
  java            HotSpot's compiled code, without inlining
  node-int        V8's interpreter
  node            V8's compiled code, without inlining, each function in a script of its own
  node-file       the same, eight functions to a script

build/test/bench/runs takes the time of the runs of the profiler's sampling program, with its tail calls, that
interrupt the program; other processes do not count. The collector has what the profiler delivered of this process:
frames (kernel, native, of the language) and complete stacks. "ns a frame" is the mean time of a run by the mean frames
of a delivered stack, so a frame that is cut off does not count as fast. "delivered" is the samples a second by the runs
a second, from overlapping but not equal spans, so it is a check only. Each function has code of its own, as in
programs. The program walks through some MB of memory: at 97 Hz the profiler's caches are cold, at 997 Hz less so.

podprof replaces the native frame of a run of CPython's loop by the Python functions; a profiler that shows both has
that many frames more.

Root. --peer as for runtimes.py.
"""
import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import beside_peers  # noqa: E402
import collected  # noqa: E402
import runtimes  # noqa: E402
import workloads  # noqa: E402

SOURCES = os.path.join(workloads.HERE, "workloads")
RUNS = os.path.join(os.path.dirname(workloads.PODPROF), "test/bench/runs")


def build_java(depth, to):
    """As deep.py: works all the time in the innermost of so many methods, eight to a class."""
    per_class = 8
    text = "public class Deep {\n    static final int[] WORDS = new int[1 << 20];\n    static int f0() {\n" \
           "        int total = 0;\n        for (int i = 0; i < WORDS.length; i += 16)\n" \
           "            total += WORDS[i]++;\n        return total;\n    }\n" \
           "    public static void main(String[] args) {\n        int total = 0;\n        while (true)\n" \
           f"            total += {java_method(depth, per_class)}();\n    }}\n}}\n"
    for number in range((depth - 1) // per_class + 1):
        text += f"class Deep{number} {{\n"
        for n in range(number * per_class + 1, min(depth, (number + 1) * per_class) + 1):
            text += f"    static int f{n}() {{ return {java_method(n - 1, per_class)}() + {n}; }}\n"
        text += "}\n"
    with open(f"{to}/Deep.java", "w") as f:
        f.write(text)
    workloads.run("javac", "-d", to, f"{to}/Deep.java")


def java_method(n, per_class):
    return f"Deep{(n - 1) // per_class}.f{n}" if n else "Deep.f0"


def programs(options, to):
    """The commands, without the program's own link."""
    build_java(options.depth, to)
    depth, changes = str(options.depth), str(options.changes)
    java = ["-cp", to, "Deep", depth]
    return {
        "python": (options.python, [f"{SOURCES}/deep.py", depth, "python"]),
        "python-c": (options.python, [f"{SOURCES}/deep.py", changes, "c"]),
        "java-int": (options.java, ["-Xint", *java]),
        "java": (options.java, ["-XX:-Inline", *java]),
        "node-int": (options.node, ["--no-opt", "--no-sparkplug", f"{SOURCES}/deep.js", depth]),
        "node": (options.node, ["--no-turbo-inlining", f"{SOURCES}/deep.js", depth]),
        "node-file": (options.node, ["--no-turbo-inlining", f"{SOURCES}/deep.js", depth, "8"]),
    }


class Deep:
    """A program with a deep stack."""

    def __init__(self, name, program, arguments, to, nice):
        self.name, self.comm, self.program = name, "pw-" + name, program
        self.link = f"{to}/{self.comm}"
        os.symlink(os.path.realpath(program), self.link)
        self.process = subprocess.Popen(["nice", "-n", str(nice), self.link, *arguments])

    files = runtimes.Server.files

    def pids(self):
        return [self.process.pid]

    def is_service(self, name):
        return name == self.comm

    def stop(self):
        self.process.kill()
        self.process.wait()


def entry_of(pid):
    """The profiler's program that samples: of its perf events, with the most runs."""
    ids = workloads.program_ids(pid)
    entries = [p for i, p in workloads.bpf_shown("prog").items() if i in ids and p["type"] == "perf_event"]
    return max(entries, key=lambda p: p.get("run_cnt", 0))["id"]


class Turns:
    """All turns of a profiler beside one program, at one rate."""

    def __init__(self):
        self.counts = runtimes.Counts()
        self.runs = []
        self.seconds = 0

    def row(self, program, rate, name):
        c = self.counts
        n, ns = (sum(r[key] for r in self.runs) for key in ("runs", "ns"))
        if not c.samples or not n:
            return {"stack": program, "rate": rate, "profiler": name, "samples": c.samples,
                    **dict.fromkeys(("delivered %", "complete %", "functions", "frames", "us a sample", "ns a frame"),
                                    "-")}
        frames = c.frames / c.samples
        return {
            "stack": program, "rate": rate, "profiler": name, "samples": c.samples,
            "delivered %": f"{100 * c.samples / c.seconds() / (n / self.seconds):.0f}",
            "complete %": f"{100 * c.complete / c.samples:.1f}",
            "functions": f"{c.functions / c.samples:.1f}", "frames": f"{frames:.1f}",
            "us a sample": f"{ns / n / 1e3:.1f}", "ns a frame": f"{ns / n / frames:.0f}"}


def turn(program, command, rate, to, options, turns, starts):
    os.makedirs(to)
    collector = collected.Collector(to)
    command = [w.format(rate=rate, endpoint=collector.grpc, http=collector.http) for w in command]
    profiler = workloads.start_profiler(command, to, rate)
    try:
        workloads.wait_until_sampling(profiler)
        time.sleep(options.warm_up)
        begin_ns = time.time_ns()
        measured = workloads.run(RUNS, str(entry_of(profiler.pid)), str(program.process.pid), str(options.seconds),
                                 stdout=subprocess.PIPE, text=True).stdout
        time.sleep(options.window + 1)  # the last report
    finally:
        workloads.stop_profiler(profiler)
        collector.stop()
    turns.runs.append(json.loads(measured))
    turns.seconds += options.seconds
    runtimes.count(collector.path, program, set(program.pids()), begin_ns, time.time_ns(), turns.counts, starts)


def measure(name, profilers, to, options):
    """All rates and profilers by turns, beside one program."""
    os.makedirs(to)
    rates = [int(r) for r in options.rates.split(",")]
    found = {(rate, profiler): Turns() for rate in rates for profiler in profilers}
    program = Deep(name, *programs(options, to)[name], to, options.nice)
    try:
        time.sleep(options.program_warm_up)
        starts = runtimes.starts_of_files(program)
        for i in range(options.rounds):
            for rate, profiler in found:
                turn(program, profilers[profiler], rate, f"{to}/{profiler}-{rate}-{i}", options,
                     found[rate, profiler], starts)
    finally:
        program.stop()
    return [turns.row(name, rate, profiler) for (rate, profiler), turns in found.items()]


def main():
    parser = beside_peers.Parser(__doc__, 10, 1)
    parser.option("warm-up", 6, "from a profiler's first samples")
    parser.option("program-warm-up", 5, "from a program's start")
    parser.option("rates", "97,997", "samples a second and CPU")
    parser.option("depth", 60, "functions")
    parser.option("changes", 12, "Python functions of python-c")
    parser.option("only", "python,python-c,java-int,java,node-int,node,node-file", "stacks")
    parser.option("nice", 0, "of the program with the stack, for a machine with other work")
    options = parser.parsed()
    profilers = beside_peers.profilers(options)
    beside_peers.run(options, options.rates, lambda to: (
        row for name in options.only.split(",") for row in measure(name, profilers, f"{to}/{name}", options)))


if __name__ == "__main__":
    main()
