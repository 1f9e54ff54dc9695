#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What podprof costs, as counts: instructions, cache lines, bytes, system calls and wake-ups. A count is the same
on a busy machine, so two versions can be compared anywhere. Times are shown only.

  counts.py run --json FILE           measure one build; a table, with ratios to --before FILE
  counts.py compare BASE NEW          two such files, or several of each with commas (the lowest
                                      count of each is used); fails if a count grew by 5 %

Instructions in user mode are counted by valgrind, system calls by strace. BPF instructions are those
that the kernel's verifier follows and the bytes of machine code. Lines come from bench_lines. Root.
"""
import contextlib
import ctypes
import glob
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import benchoptions  # noqa: E402
import idle  # noqa: E402
import workloads  # noqa: E402

# A count above this ratio is a regression, if it also grew by more than the unit's noise. The order of
# threads moves a few system calls, the place of a stop moves a line or two, and the ticks of an idle agent
# fall together or not.
RATIO_MAX = 1.05
NOISE = {"instructions": 100, "lines": 1.5, "bytes": 64, "calls": 4, "wake-ups": 8, "calls, idle": 40}
TIMES = {"s", "ms", "us", "ns"}

# The agent is idle after its first window, for a span of three windows.
IDLE_AFTER_S = 12
IDLE_S = 30

# bpf(2)
BPF_NUMBER = 321 if os.uname().machine == "x86_64" else 280
BPF_PROG_GET_FD_BY_ID = 13

# Same bytes for both versions: files of this machine, and of the tree that measures.
LIBRARY = "/lib/x86_64-linux-gnu/libc.so.6" if os.uname().machine == "x86_64" \
    else "/lib/aarch64-linux-gnu/libc.so.6"
DATA = os.path.join(HERE, "../data")
# In the code of both a Go program and a library, or in none: to find out costs as much.
ADDRESSES = [f"{a:x}" for a in range(0x30000, 0x500000, 0x10000)]


def commands(go_program):
    return {
        "start": ["version"],
        "rows of libc": ["inspect", "unwind", LIBRARY],
        "rows of a Go program": ["inspect", "unwind", go_program],
        "symbols of libc": ["inspect", "symbols", LIBRARY, *ADDRESSES],
        "symbols of a Go program": ["inspect", "symbols", go_program, *ADDRESSES],
        "reading a profile": ["inspect", "profile", f"{DATA}/pprof/go_heap.pb.gz"],
    }


# ---------------------------------------------------------------- measuring


class Figures(dict):
    """By name: value and unit."""

    def put(self, name, value, unit):
        self[name] = {"value": value, "unit": unit}


def user_instructions(program, arguments, to):
    said = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={to}/callgrind",
                           program, *arguments], capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", said.stderr)
    if said.returncode or not found:
        sys.exit(f"counts: {' '.join(arguments)} under valgrind: {said.stderr[-500:]}")
    return int(found.group(1))


def system_calls(program, arguments, to):
    """All but those of threads that wait for each other."""
    run = subprocess.run(["strace", "-f", "-c", "-U", "calls,name", "-o", f"{to}/strace", program, *arguments],
                         stdout=subprocess.DEVNULL)
    if run.returncode:
        sys.exit(f"counts: {' '.join(arguments)} under strace: status {run.returncode}")
    with open(f"{to}/strace") as f:
        calls = re.findall(r"^\s*(\d+)\s+(\w+)$", f.read(), re.M)
    return sum(int(n) for n, name in calls if name not in ("total", "futex", "sched_yield"))


def measure_commands(figures, program, to):
    # without DWARF, whose reader is a process: valgrind knows no clone() of that kind
    subprocess.run(["go", "build", "-buildvcs=false", "-trimpath", "-ldflags=-w", "-o", f"{to}/go", "."],
                   cwd=f"{HERE}/workloads/go", check=True)
    for name, arguments in commands(f"{to}/go").items():
        figures.put(f"{name}: instructions", user_instructions(program, arguments, to), "instructions")
        figures.put(f"{name}: system calls", system_calls(program, arguments, to), "calls")


def descriptors(pid):
    """The text of all descriptors' facts, of the process and its children."""
    for path in (p for of in workloads.family(pid) for p in glob.glob(f"/proc/{of}/fdinfo/*")):
        with contextlib.suppress(OSError), open(path) as f:
            yield dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)


def called_programs(map_ids):
    """The ids of the programs in the arrays for tail calls: an agent keeps no descriptors of these."""
    shown = json.loads(subprocess.run([workloads.BPFTOOL, "-j", "map", "show"], check=True,
                                      stdout=subprocess.PIPE).stdout)
    for array in (m["id"] for m in shown if m["type"] == "prog_array" and str(m["id"]) in map_ids):
        entries = json.loads(subprocess.run([workloads.BPFTOOL, "-j", "map", "dump", "id", str(array)],
                                            check=True, stdout=subprocess.PIPE).stdout)
        for entry in entries:
            if isinstance(entry["value"], list):  # else an error: no program
                yield int.from_bytes(bytes(int(b, 16) for b in entry["value"]), sys.byteorder)


def instructions_checked(program_id):
    """As the text about a descriptor says."""
    attributes = struct.pack("=III116x", program_id, 0, 0)
    fd = ctypes.CDLL(None, use_errno=True).syscall(BPF_NUMBER, BPF_PROG_GET_FD_BY_ID, attributes, len(attributes))
    if fd < 0:
        sys.exit(f"counts: BPF program {program_id}: {os.strerror(ctypes.get_errno())}")
    try:
        with open(f"/proc/self/fdinfo/{fd}") as text:
            return int(re.search(r"^verified_insns:\s*(\d+)", text.read(), re.M).group(1))
    finally:
        os.close(fd)


def measure_bpf(figures, pid):
    """Programs by name: instructions checked, and machine code. Maps by name: memory."""
    programs = {d["prog_id"] for d in descriptors(pid) if "verified_insns" in d}
    if not programs:
        sys.exit("counts: the agent has loaded no BPF program, see its log above")
    called = {str(i) for i in called_programs({d["map_id"] for d in descriptors(pid) if "map_id" in d})}
    if not called:
        sys.exit("counts: no BPF program calls another one, so the walks are not measured")
    shown = json.loads(subprocess.run([workloads.BPFTOOL, "-j", "prog", "show"], check=True,
                                      stdout=subprocess.PIPE).stdout)
    for p in shown:
        if str(p["id"]) in programs | called:
            figures.put(f"BPF {p['name']}: instructions checked", instructions_checked(p["id"]), "instructions")
            figures.put(f"BPF {p['name']}: machine code", p["bytes_jited"], "bytes")
    maps = {d["map_id"]: int(d["memlock"]) for d in descriptors(pid) if "map_id" in d}
    shown = json.loads(subprocess.run([workloads.BPFTOOL, "-j", "map", "show"], check=True,
                                      stdout=subprocess.PIPE).stdout)
    names = {str(m["id"]): m.get("name", "unnamed") for m in shown}
    by_name = {}
    for i, n in maps.items():
        name = names.get(i, "unnamed")
        if name != "table_slab":  # so many as the programs of the machine need
            by_name[name] = by_name.get(name, 0) + n
    for name, n in by_name.items():
        figures.put(f"map {name}", n, "bytes")
    figures.put("all maps but tables", sum(by_name.values()), "bytes")


def measure_idle(figures, pid, to):
    """The agent has nothing to do."""
    time.sleep(IDLE_AFTER_S)
    before = idle.threads(pid)
    time.sleep(IDLE_S)
    wakes = sum(n for n, _ in idle.difference(before, idle.threads(pid), 1).values())
    calls = sum(idle.system_calls(pid, IDLE_S, f"{to}/idle").values()) * IDLE_S
    figures.put(f"agent, idle for {IDLE_S} s: wake-ups", round(wakes), "wake-ups")
    figures.put(f"agent, idle for {IDLE_S} s: system calls", round(calls), "calls, idle")


def measure_agent(figures, program, listen, seconds, to):
    """An agent alone in its namespaces."""
    space = idle.Namespace()
    try:
        starter = subprocess.Popen(space.command(
            os.path.abspath(program), "agent", "--listen", listen, "--store-dir", f"{to}/store",
            "--cgroupfs-root", space.cgroup, "--window", "10s", "--log-level", "warn"))
        pid = idle.agent_pid(starter, program)
        time.sleep(seconds)
        measure_bpf(figures, pid)
        figures.put("agent, start: CPU", sum(cpu for _, _, cpu in idle.threads(pid).values()) * 1000, "ms")
        measure_idle(figures, pid, to)
        os.kill(pid, signal.SIGINT)
        starter.wait(20)
    finally:
        space.stop()


def lines_of(text):
    """From the text of bench_lines: lines by stack and part."""
    stack = None
    for line in text.splitlines():
        if line.startswith("lines: "):
            stack = line.split(": ")[1]
        elif stack:
            part, lines = re.match(r"  (\S.*?)\s+([\d.]+) lines", line).groups()
            yield f"walk of {stack}: {part}", float(lines)


def measure_lines(figures, bench):
    text = subprocess.run([bench, "fixed"], check=True, stdout=subprocess.PIPE, text=True).stdout
    for name, lines in lines_of(text):
        figures.put(name, lines, "lines")


def run(options):
    figures = Figures()
    program = os.path.join(options.build, "podprof")
    with tempfile.TemporaryDirectory(prefix="podprof-counts-") as to:
        measure_commands(figures, program, to)
        measure_lines(figures, os.path.join(options.build, "test/bench/bench_lines"))
        measure_agent(figures, program, options.listen, options.seconds, to)
    before = {}
    if options.before and os.path.exists(options.before):
        with open(options.before) as f:
            before = json.load(f)
    if not options.quiet:
        table(before, figures)
    benchoptions.write_json(options.json, figures)
    return 0


# ---------------------------------------------------------------- comparing


def is_worse(before, after):
    """Whether the figure regressed. Times never do."""
    if after["unit"] in TIMES:
        return False
    grown = after["value"] - before["value"]
    return grown > NOISE[after["unit"]] and after["value"] >= before["value"] * RATIO_MAX


def shown(figure):
    return f"{figure['value']:,.1f}" if figure["unit"] in TIMES | {"lines"} else f"{figure['value']:,}"


def table(before, after):
    print(f"{'':48} {'before':>14} {'now':>14} {'ratio':>7}")
    for name in list(after) + [n for n in before if n not in after]:
        old, new = before.get(name), after.get(name)
        ratio = ""
        if old and new:
            ratio = f"{new['value'] / old['value']:.3f}" if old["value"] else ("1.000" if not new["value"] else "new")
        print(f"{name:48} {shown(old) if old else '-':>14} {shown(new) if new else '-':>14} {ratio:>7} "
              f"{(new or old)['unit']}{' WORSE' if old and new and is_worse(old, new) else ''}")


def lowest(paths):
    """Of some runs of one version, the lowest value of each figure."""
    figures = Figures()
    for path in paths.split(","):
        with open(path) as f:
            for name, figure in json.load(f).items():
                if name not in figures or figure["value"] < figures[name]["value"]:
                    figures[name] = figure
    return figures


def regressions(before, after):
    return [f"{name}: {shown(before[name])} before, {shown(after[name])} {after[name]['unit']} now"
            for name in after if name in before and is_worse(before[name], after[name])]


def compare(options):
    before, after = lowest(options.base), lowest(options.new)
    table(before, after)
    worse = regressions(before, after)
    if not set(before) & set(after):
        worse = ["the two versions have no figure in common"]
    for line in worse:
        print(f"counts: worse: {line}", file=sys.stderr)
    return 1 if worse else 0


def main():
    parser = benchoptions.Parser(__doc__)
    sub = parser.add_subparsers(required=True)
    p = sub.add_parser("run")
    p.add_argument("--build", default=os.path.join(HERE, "../../build"), help="of the version (build)")
    p.add_argument("--json", required=True, help="file for the figures")
    p.add_argument("--before", help="file with earlier figures, for ratios")
    p.add_argument("--quiet", action="store_true", help="no table")
    p.option("listen", "127.0.0.1:17271")
    p.option("seconds", 5, "until the agent is looked at")
    p.set_defaults(do=run)
    p = sub.add_parser("compare")
    p.add_argument("base")
    p.add_argument("new")
    p.set_defaults(do=compare)
    options = parser.parsed()
    return options.do(options)


if __name__ == "__main__":
    sys.exit(main())
