#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What podprof costs the others: the throughput of programs without and with an agent beside them.

  cpu       a thread on each CPU computes at the end of a deep stack (workloads/units.c)
  gaps      a thread on each CPU, there, reads the clock without end and adds up the spans that no interrupt
            took; a longer gap is another thread or another machine and does not count
  pingpong  two processes on one CPU send a byte to and fro through pipes
  pgbench   PostgreSQL's own benchmark, reading only, two clients; needs the package postgresql

The agent samples at 97 Hz, and a share of 0.01 of the task switches. Each round measures all
programs once without and once with an agent, by turns; every other round begins with the agent. So a
machine that becomes slower by and by does not change the mean. The loss of a round is
100 * (1 - with / without), and the table has the mean with its confidence interval of 95 % by
Student's t. "per CPU time" divides the work by the CPU time of the program in place of the clock:
other users disturb it less, but it lacks the CPU time of the agent's own threads. "cycles" and
"instructions" stand in the table only where the machine has such counters.

A goal is met if the whole interval is below it, missed if the whole interval is above it, else open:
take more rounds, longer spans, or a quieter machine. Root; some minutes.
"""
import contextlib
import glob
import math
import os
import pwd
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import benchoptions  # noqa: E402
import workloads  # noqa: E402

# Of each measure: the largest loss that podprof may cause, in per cent.
GOALS = {"cpu": 0.1, "gaps": 0.1, "cpu per CPU time": 0.1, "cpu cycles": 0.1, "pingpong": 1.0}

# Student's t for a two-sided 95 %, by degrees of freedom from 1 on; the last one for all more.
T_95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
        2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
        2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042]


# ---------------------------------------------------------------- arithmetic


def losses(pairs):
    """Of (without, with) in units a second, one a round: per cent."""
    return [100 * (1 - beside / alone) for alone, beside in pairs]


def interval(values):
    """Mean, and half of the confidence interval; one value has an endless one."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, math.inf
    t = T_95[min(len(values) - 1, len(T_95)) - 1]
    return mean, t * statistics.stdev(values) / math.sqrt(len(values))


def verdict(mean, half, goal):
    if goal is None:
        return ""
    if mean + half <= goal:
        return "met"
    return "missed" if mean - half > goal else "open"


def order(number):
    """Whether there is an agent, in the two halves of a round."""
    return (False, True) if number % 2 == 0 else (True, False)


def rates(name, line):
    """Units a second, by measure, from a line of units.c."""
    units, clock_ns, cpu_ns, instructions, cycles = map(int, line.split())
    found = {name: units / clock_ns * 1e9}
    if name == "cpu":
        found[f"{name} per CPU time"] = units / cpu_ns * 1e9
        if cycles:
            found[f"{name} cycles"] = units / cycles
        if instructions:
            found[f"{name} instructions"] = units / instructions
    return found


def summary(rounds):
    """Of {measure: rate} of each round, without and with an agent: rows by measure. A measure counts
    in the rounds that have it in both halves."""
    rows = []
    for name in rounds[0][0]:
        pairs = [(alone[name], beside[name]) for alone, beside in rounds
                 if name in alone and name in beside]
        if not pairs:
            continue
        mean, half = interval(losses(pairs))
        rows.append({"measure": name, "rounds": len(pairs), "loss": mean,
                     "half": None if math.isinf(half) else half, "goal": GOALS.get(name),
                     "verdict": verdict(mean, half, GOALS.get(name)),
                     "without": statistics.fmean(a for a, _ in pairs),
                     "with": statistics.fmean(b for _, b in pairs), "pairs": pairs})
    return rows


# ---------------------------------------------------------------- the programs


class Units:
    """A program of units.c. Without frame pointers, and with all its calls."""

    def __init__(self, to, name):
        self.name, self.program = name, f"{to}/units"
        if not os.path.exists(self.program):
            workloads.run("gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-pthread", "-o",
                          self.program, os.path.join(workloads.HERE, "workloads/units.c"))

    def measure(self, options):
        said = workloads.run(self.program, self.name, str(options.warm_up), str(options.seconds),
                             stdout=subprocess.PIPE, text=True)
        return rates(self.name, said.stdout)

    def stop(self):
        pass


class Postgres:
    """A server with a database of its own, and pgbench."""

    def __init__(self, to, program):
        self.bin, self.at = os.path.dirname(program), f"{to}/pg"
        user = pwd.getpwnam("postgres")
        self.ids = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": [], "cwd": "/"}
        os.chmod(to, 0o711)
        os.mkdir(self.at)
        os.chown(self.at, user.pw_uid, user.pw_gid)
        self.quiet("initdb", "-D", f"{self.at}/data", "-A", "trust", "--no-sync")
        self.server = subprocess.Popen(
            [f"{self.bin}/postgres", "-D", f"{self.at}/data", "-k", self.at, "-h", ""],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **self.ids)
        try:
            while subprocess.run([f"{self.bin}/pg_isready", "-q", "-h", self.at], **self.ids).returncode:
                if self.server.poll() is not None:
                    sys.exit("PostgreSQL's server ended")
                time.sleep(0.1)
            self.quiet("pgbench", "-h", self.at, "-i", "-q", "-s", "10", "postgres")
        except BaseException:
            self.stop()
            raise

    def quiet(self, name, *arguments):
        workloads.run(f"{self.bin}/{name}", *arguments, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, **self.ids)

    def run(self, seconds):
        said = workloads.run(f"{self.bin}/pgbench", "-h", self.at, "-n", "-S", "-c", "2", "-T",
                             str(max(1, round(seconds))), "postgres", stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, **self.ids)
        return float(re.search(r"^tps = ([\d.]+)", said.stdout, re.M).group(1))

    def measure(self, options):
        self.run(options.warm_up)
        return {"pgbench": self.run(options.seconds)}

    def stop(self):
        self.server.send_signal(signal.SIGINT)
        self.server.wait()


def postgres_program():
    """The newest; Debian has them outside of PATH."""
    found = glob.glob("/usr/lib/postgresql/*/bin/pgbench")
    return max(found, key=lambda p: int(re.sub(r"\D", "", p) or 0)) if found else None


def programs(names, to, stack):
    for name in names:
        if name == "pgbench":
            program = postgres_program()
            if not program or not os.path.exists(os.path.join(os.path.dirname(program), "initdb")):
                print("pgbench is left out: the package postgresql is missing", file=sys.stderr)
                continue
            made = Postgres(to, program)
        else:
            made = Units(to, name)
        stack.callback(made.stop)
        yield made


# ---------------------------------------------------------------- rounds


@contextlib.contextmanager
def agent(to, options):
    """From its first samples on."""
    command = workloads.agent_command() + ["--off-cpu", str(options.off_cpu)]
    process = workloads.start_profiler(command, to, options.rate)
    try:
        with workloads.bpf_statistics():  # not longer: they are a cost of their own
            workloads.wait_until_sampling(process)
        yield
        workloads.check_runs(process)
    finally:
        workloads.stop_profiler(process)


def half_round(made, to, with_agent, options):
    with contextlib.ExitStack() as stack:
        if with_agent:
            stack.enter_context(agent(to, options))
        found = {}
        for program in made:
            found.update(program.measure(options))
        return found


def one_round(made, to, number, options):
    found = {with_agent: half_round(made, to, with_agent, options) for with_agent in order(number)}
    return found[False], found[True]


def show(rows):
    print("| | loss, % | 95 % | goal | | units a second: without | with |\n|---|---|---|---|---|---|---|")
    for row in rows:
        half = "unknown" if row["half"] is None else f"+- {row['half']:.3f}"
        goal = "" if row["goal"] is None else f"<= {row['goal']}"
        print(f"| {row['measure']} | {row['loss']:.3f} | {half} | {goal} | {row['verdict']} | "
              f"{row['without']:.6g} | {row['with']:.6g} |")


def main():
    parser = benchoptions.Parser(__doc__)
    parser.option("rounds", 10, "each without and with an agent")
    parser.option("seconds", 10.0, "of each program in each half")
    parser.option("warm-up", 3.0, "of each program, not counted")
    parser.option("rate", 97)
    parser.option("off-cpu", 0.01, "share of task switches")
    parser.option("only", "cpu,gaps,pingpong,pgbench", "programs")
    parser.option("json")
    options = parser.parsed()
    names = options.only.split(",")
    if options.rounds < 1 or not set(names) <= {"cpu", "gaps", "pingpong", "pgbench"}:
        parser.error("a round at least, and programs of the four")
    print(f"{workloads.CPUS} CPUs, {os.uname().release}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())}, "
          f"load {os.getloadavg()[0]:.1f}, {options.rate} Hz, off-CPU {options.off_cpu}, "
          f"{options.rounds} rounds of {options.seconds:g} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="podprof-overhead-") as to, contextlib.ExitStack() as stack:
        made = list(programs(names, to, stack))
        if not made:
            sys.exit("nothing to measure")
        rounds = []
        for number in range(options.rounds):
            rounds.append(one_round(made, to, number, options))
            print(f"round {number + 1}: " + ", ".join(
                f"{name} {losses([(alone, rounds[-1][1][name])])[0]:+.3f} %"
                for name, alone in rounds[-1][0].items() if name in rounds[-1][1]), flush=True)
    rows = summary(rounds)
    show(rows)
    benchoptions.write_json(options.json, {"rate": options.rate, "off_cpu": options.off_cpu, "rows": rows})


if __name__ == "__main__":
    main()
