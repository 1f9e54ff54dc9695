# SPDX-License-Identifier: Apache-2.0
"""Profilers by turns, beside programs in Python, Java and Node: options, commands, and the table of the figures."""
import contextlib
import shutil
import tempfile

import benchoptions
import workloads


class Parser(benchoptions.Parser):
    """Each benchmark has its own --rate or --rates, and its own --only."""

    def __init__(self, text, seconds, rounds):
        super().__init__(text)
        self.option("seconds", seconds, "length of each turn, at least two windows")
        self.option("rounds", rounds, "turns of each profiler")
        self.option("window", 5, "seconds of a window of podprof")
        for name in ("python", "java", "node"):
            self.add_argument(f"--{name}", default=shutil.which(name.replace("python", "python3")), metavar="PROGRAM")
        self.option("json")
        self.add_argument("--keep", metavar="DIR", help="leave the profilers' logs and requests here")
        self.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")

    def parsed(self):
        options = super().parsed()
        options.seconds = turn_of(options.seconds, options.window)
        return options


def turn_of(seconds, window):
    """Only windows that lie in a turn count, and a turn begins anywhere in a window: at least two, and one second,
    because the ends of windows can be late."""
    return max(seconds, 2 * window + 1)


def profilers(options):
    """The commands; {rate}, {endpoint} (gRPC) and {http} are the turn's."""
    podprof = [workloads.PODPROF, "agent", "--window", f"{options.window}s", "--cpu-rate", "{rate}", "--listen",
               f"127.0.0.1:{workloads.free_port()}", "--destination", "otlp=http://{http}", "--metadata", "none",
               "--go-heap-profiler", "disabled"]
    return {"podprof": podprof, **workloads.commands_of(options.peer)}


def run(options, rates, measure):
    """measure(folder) yields the rows of the table."""
    print(f"{workloads.conditions(rates)}, {options.rounds} turns of {options.seconds} s each")
    rows = []
    with contextlib.ExitStack() as stack:
        to = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="podprof-bench-"))
        stack.enter_context(workloads.bpf_statistics())
        for row in measure(to):
            if not rows:
                print("| " + " | ".join(row) + " |\n|" + "---|" * len(row))
            print("| " + " | ".join(map(str, row.values())) + " |", flush=True)
            rows.append(row)
    benchoptions.write_json(options.json, rows)
