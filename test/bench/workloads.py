#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What the agent costs, and what it delivers, in four workloads:

  W1  nothing
  W2  about one CPU: C++ without frame pointers 31 calls deep (0.25), Go (0.25), C with frame pointers
      (0.2), Python (0.15), Rust (0.15)
  W3  300 processes of 100 programs, each awake for 1 ms a second
  W4  200 processes started each second, /bin/true and one that takes 2 ms, by turns

Other profilers are measured in the same run, by turns with ours: --profiler 'NAME=COMMAND'; {dir} in
it is a directory that it may write to, {rate} the sampling rate. Theirs are the columns that need
nothing of them: CPU, memory, and what BPF takes (all of that as the kernel tells of the process). With
--rounds each profiler is measured so many times, and a second table has the means and podprof's share
of each other profiler's mean.

"BPF us a stack" is BPF's time by the samples that the node's busy time is worth: one definition for
all profilers. It means little where the node is idle.

CPU is in per cent of the whole node. "names %" is the share of podprof's CPU time that goes to names and
profiles: the threads "symbols" and "report", and the process that reads DWARF. With --debug the programs of W2
have debug information. With --alone podprof keeps only the workloads' programs, for a machine with other work.
Root; some minutes.
"""
import contextlib
import glob
import gzip
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import benchoptions

HERE = os.path.dirname(os.path.abspath(__file__))
PODPROF = os.path.join(HERE, "../../build/podprof")
LISTEN = "127.0.0.1:17171"
BPFTOOL = shutil.which("bpftool") or "/usr/sbin/bpftool"
CPUS = os.cpu_count()
ALONE = {"action": "keep", "source_labels": ["service_name"], "regex": "pw-.*"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(*command, **options):
    return subprocess.run(command, check=True, **options)


# ---------------------------------------------------------------- the kernel's figures of a process


def cpu_s(pid):
    """CPU time of a process, its ended threads included (the clock's number is the kernel's ABI)."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


def family(pid):
    """A process and its children: podprof's parent process, and the one that works."""
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid, *map(int, f.read().split())]


def family_cpu_s(pid):
    return sum(cpu_s(p) for p in family(pid))


def descendants(pid):
    """The process and its children, at any depth."""
    yield pid
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with contextlib.suppress(OSError), open(path) as f:
            for child in f.read().split():
                yield from descendants(int(child))


def ended_cpu_s(pid):
    """Of the ended children of a process."""
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(") ", 1)[1].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def names_cpu_s(pid):
    """CPU time of podprof's threads that make names and profiles; of its DWARF process and all ended children."""
    threads = dwarf = 0
    for p in descendants(pid):
        with contextlib.suppress(OSError):
            dwarf += ended_cpu_s(p)
        for task in glob.glob(f"/proc/{p}/task/*"):
            with contextlib.suppress(OSError), open(f"{task}/comm") as comm, open(f"{task}/schedstat") as stat:
                name, ns = comm.read().strip(), int(stat.read().split()[0])
                threads += ns / 1e9 * (name in ("symbols", "report"))
                dwarf += ns / 1e9 * (name == "podprof-dwarf")
    return threads, dwarf


def family_pss_kib(pid):
    total = 0
    for p in family(pid):
        with open(f"/proc/{p}/smaps_rollup") as f:
            total += int(re.search(r"^Pss: +(\d+)", f.read(), re.M).group(1))
    return total


def bpf_shown(kind):
    """The node's BPF maps or programs, by id."""
    shown = json.loads(run(BPFTOOL, "-j", kind, "show", stdout=subprocess.PIPE).stdout)
    return {each["id"]: each for each in shown}


def map_bytes(but=frozenset()):
    """Kernel memory of the node's BPF maps except these ids. A profiler's maps are those that came with
    it: the inner maps of a map in a map may have no descriptor."""
    return sum(m.get("bytes_memlock", 0) for i, m in bpf_shown("map").items() if i not in but)


def program_ids(pid):
    """Its BPF programs: those that it has open, and those that its links keep."""
    programs = set()
    for path in (path for p in family(pid) for path in glob.glob(f"/proc/{p}/fdinfo/*")):
        with contextlib.suppress(OSError), open(path) as f:
            programs |= {int(i) for i in re.findall(r"^prog_id:\t(\d+)$", f.read(), re.M)}
    return programs


def bpf_of(pid):
    """Time of its BPF programs, ns, and their runs."""
    programs = program_ids(pid)
    ours = [p for i, p in bpf_shown("prog").items() if i in programs]
    return sum(p.get("run_time_ns", 0) for p in ours), sum(p.get("run_cnt", 0) for p in ours)


@contextlib.contextmanager
def bpf_statistics():
    path = "/proc/sys/kernel/bpf_stats_enabled"
    with open(path) as f:
        before = f.read()
    try:
        with open(path, "w") as f:
            f.write("1")
        yield
    finally:
        with open(path, "w") as f:
            f.write(before)


def node_busy_s():
    with open("/proc/stat") as f:
        ticks = [int(x) for x in f.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


# ---------------------------------------------------------------- the programs


def build_burners(to, debug=False):
    """Those of W2: the command of each. Rust only where there is a compiler. Go's always have debug information."""
    source = os.path.join(HERE, "workloads")
    flags = ["-g"] if debug else []
    run("g++", *flags, "-O2", "-fomit-frame-pointer", "-o", f"{to}/pw-cpp", f"{source}/burn_cpp.cc")
    run("gcc", *flags, "-O2", "-fno-omit-frame-pointer", "-pthread", "-o", f"{to}/pw-c", f"{source}/burn_c.c")
    run("go", "build", "-buildvcs=false", "-o", f"{to}/pw-go", ".", cwd=f"{source}/go")
    os.symlink("/usr/bin/python3", f"{to}/pw-python")
    burners = [["pw-cpp", "0.25"], ["pw-go", "0.25"], ["pw-c", "0.2"],
               ["pw-python", f"{source}/burn_python.py", "0.15"]]
    if shutil.which("rustc"):
        run("rustc", *flags, "-O", "-C", "force-frame-pointers=yes", "-o", f"{to}/pw-rust",
            f"{source}/burn_rust.rs")
        burners.append(["pw-rust", "0.15"])
    else:
        print("no rustc: W2 without Rust", file=sys.stderr)
    return [[f"{to}/{b[0]}", *b[1:]] for b in burners]


def sleeper_source(number, functions):
    """A program of so many functions, 15 of them deep, that takes 1 ms a second."""
    choose = random.Random(number)
    lines = ["#include <time.h>", "#include <unistd.h>", "static volatile unsigned long sink;",
             "static long cpu_us(void) { struct timespec t; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);"
             " return t.tv_sec * 1000000 + t.tv_nsec / 1000; }",
             "static long until;",
             "__attribute__((noinline)) unsigned long f0(unsigned long x) {"
             f" while (cpu_us() < until) for (int i = 0; i < 1000; i++) x = x * 25214903917 + {number};"
             " return x; }"]
    for i in range(1, functions):
        callee = i - 1 if i < 15 else choose.randrange(15)
        lines.append(f"__attribute__((noinline)) unsigned long f{i}(unsigned long x) {{"
                     f" volatile char frame[{choose.randrange(8, 200)}]; frame[x % sizeof(frame)] = (char)x;"
                     f" return f{callee}(x * {i} + 1) + frame[x % sizeof(frame)]; }}")
    lines.append(f"int main(void) {{ usleep({number * 7919 % 1000000}); for (;;) {{"
                 " until = cpu_us() + 1000; sink += f14(sink); usleep(1000000); } }")
    return "\n".join(lines)


def copy_with_build_id(program, to, number):
    """Another program, as far as a profiler can tell."""
    with open(program, "rb") as f:
        data = bytearray(f.read())
    at = data.index(b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0") + 16
    data[at:at + 20] = random.Random(number).randbytes(20)
    with open(to, "wb") as f:
        f.write(data)
    os.chmod(to, 0o755)


def build_sleepers(to):
    commands = []
    for i in range(50):
        run("gcc", "-O1", "-fomit-frame-pointer", "-Wl,--build-id=sha1", "-x", "c", "-",
            "-o", f"{to}/pw-many{i:02d}", input=sleeper_source(i, 20 + 14 * i).encode())
        commands.append([f"{to}/pw-many{i:02d}"])
    python = ("import time\nwhile True:\n until = time.process_time() + .001\n"
              " while time.process_time() < until: sum(range(100))\n time.sleep(1)")
    perl = ("use Time::HiRes qw(sleep clock); while (1) { my $until = clock() + .001;"
            " while (clock() < $until) { my $x = 0; $x += $_ for 1 .. 100; } sleep 1 }")
    for i in range(25):
        copy_with_build_id(os.path.realpath("/usr/bin/python3"), f"{to}/pw-many{50 + i}", 100 + i)
        copy_with_build_id(os.path.realpath("/usr/bin/perl"), f"{to}/pw-many{75 + i}", 200 + i)
        commands += [[f"{to}/pw-many{50 + i}", "-c", python], [f"{to}/pw-many{75 + i}", "-e", perl]]
    return commands


# ---------------------------------------------------------------- the workloads


class Workload:
    """Programs that run from start() to stop(), and the CPU time that they have taken so far."""

    def __init__(self, name, commands, copies=1):
        self.name, self.commands, self.copies = name, commands, copies
        self.processes = []

    def start(self):
        for command in self.commands * self.copies:
            self.processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))
            time.sleep(0.003)

    def pids(self):
        return [p.pid for p in self.processes]

    def cpu_s(self):
        return sum(cpu_s(pid) for pid in self.pids())

    def stop(self):
        for p in self.processes:
            p.kill()
        for p in self.processes:
            p.wait()
        self.processes = []


class Churn(Workload):
    """The one that starts programs all the time; what they took is in its own figures."""

    def pids(self):
        return []

    def cpu_s(self):
        return ended_cpu_s(self.processes[0].pid)


def workloads(to, debug=False):
    run("gcc", "-O2", "-fomit-frame-pointer", "-o", f"{to}/pw-short", f"{HERE}/short_burn.c")
    shutil.copy("/bin/true", f"{to}/pw-true")
    return {
        "W1": lambda: Workload("W1", []),
        "W2": lambda: Workload("W2", build_burners(to, debug)),
        "W3": lambda: Workload("W3", build_sleepers(to), 3),
        "W4": lambda: Churn("W4", [[f"{to}/pw-short", "spawn", "200", "100000", f"{to}/pw-true",
                                    f"{to}/pw-short"]]),
    }


# ---------------------------------------------------------------- what was delivered


def profiles(store, pattern):
    for path in glob.glob(f"{store}/{pattern}/*.pb.gz"):
        out = subprocess.run([PODPROF, "inspect", "profile", "--json", "--top", "0", path],
                             stdout=subprocess.PIPE)
        if out.returncode == 0:
            yield json.loads(out.stdout)


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if not data[at - 1] & 128:
            return value, at


def fields(data):
    """Numbers and values of a protobuf message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        value, at = varint(data, at)
        if tag & 7 == 2:  # bytes, of that length
            value, at = data[at:at + value], at + value
        yield tag >> 3, value


def count_samples(store):
    """All of field 2 (samples), of each the first of field 2 (values, packed): the profiles' counts."""
    n = 0
    for path in glob.glob(f"{store}/pw-*/*.pb.gz"):
        with gzip.open(path) as f:
            for number, sample in fields(f.read()):
                if number == 2:
                    n += sum(varint(v, 0)[0] for k, v in fields(sample) if k == 2)
    return n


def share_with_caller(store, pattern, inner, outer):
    """How much of a function's time is charged to the one that called it, too."""
    times = {inner: 0, outer: 0}
    for p in profiles(store, pattern):
        for f in p["top"]["cum"]:
            if f["function"] in times:
                times[f["function"]] += f["cum"]
    return times[outer] / times[inner] if times[inner] else 0


def complete_share(pids, to, seconds, rate):
    """Stacks that 'podprof record' calls complete, of these processes alone."""
    command = [PODPROF, "record", "--duration", f"{seconds}s", "--rate", str(rate), "--output",
               f"{to}/record.pb.gz"]
    for pid in pids:
        command += ["--pid", str(pid)]
    said = subprocess.run(command, stderr=subprocess.PIPE, text=True).stderr
    found = re.search(r"([\d.]+) % with complete stacks", said)
    return float(found.group(1)) if found else None


# ---------------------------------------------------------------- a measurement


class Row(dict):
    COLUMNS = ["workload", "profiler", "CPU %", "BPF %", "BPF us a stack", "PSS MiB", "maps MiB",
               "start s", "start CPU s", "names %", "delivered %", "complete %", "node busy"]
    COMPARED = COLUMNS[2:7]

    def __str__(self):
        return "| " + " | ".join(str(self.get(c, "")) for c in self.COLUMNS) + " |"


def mapped_programs(pid):
    """Paths of a process's executable mappings."""
    with open(f"/proc/{pid}/maps") as f:
        return re.findall(r"^\S+ ..x. .* (/\S+)$", f.read(), re.M)


def start_profiler(command, to, rate):
    command = [word.format(dir=to, rate=rate) for word in command]
    log = open(f"{to}/log", "w")
    profiler = subprocess.Popen(command, stdout=log, stderr=log)
    profiler.log = log.name
    return profiler


def check_runs(profiler):
    """Ends with the last words of a profiler that has ended."""
    if profiler.poll() is not None:
        with open(profiler.log, encoding="utf-8", errors="replace") as log:
            sys.exit(f"{' '.join(profiler.args)} ended with {profiler.returncode}: {log.read()[-2000:]}")


def agent_command(window="10s", podprof=PODPROF):
    """With a store, for start_profiler()."""
    return [podprof, "agent", "--window", window, "--cpu-rate", "{rate}", "--listen", LISTEN, "--store-dir",
            "{dir}/store", "--go-heap-profiler", "disabled"]


@contextlib.contextmanager
def disk(to):
    """A directory for stores, on an ext4 with a journal as on most nodes. An ext4 without a journal looks
    at all inodes freed in the last minute for each new file, also at those that other programs freed."""
    at, image = f"{to}/disk", f"{to}/disk.ext4"
    os.mkdir(at)
    with open(image, "wb") as f:
        f.truncate(512 << 20)
    run("mkfs.ext4", "-q", image)
    mounted = subprocess.run(["mount", "-o", "loop", image, at]).returncode == 0
    if not mounted:
        print("no loop device: the stores are on the file system of the temporary directory")
    try:
        yield at
    finally:
        if mounted:
            run("umount", "--lazy", at)


def stop_profiler(profiler):
    profiler.send_signal(signal.SIGINT)
    try:
        profiler.wait(20)
    except subprocess.TimeoutExpired:
        profiler.kill()
        profiler.wait()


def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def wait_until_sampling(profiler):
    """Until its programs run as often as a clock makes them, for which we work a little, since clocks
    stand still where nothing runs; one without BPF is taken to be at work at once. Loading is work
    that others can make slow. Seconds."""
    begin, before = time.monotonic(), 0
    while time.monotonic() - begin < 240:
        burn(.6)
        time.sleep(.4)
        check_runs(profiler)
        _, runs = bpf_of(profiler.pid)
        if (not runs and time.monotonic() - begin > 30) or (before and runs - before > 40):
            break
        before = runs
    return time.monotonic() - begin


def watch(pid, seconds):
    """The most memory in that time, looked at now and then: looking is work for its kernel side."""
    most, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        most = max(most, family_pss_kib(pid))
        time.sleep(min(3, max(0, end - time.monotonic())))
    return most


def measure(workload, name, command, to, options):
    workload_begin = workload.cpu_s()
    maps_before = bpf_shown("map").keys()
    profiler = start_profiler(command, to, options.rate)
    try:
        until_sampling = wait_until_sampling(profiler)
        time.sleep(options.warm_up)
        check_runs(profiler)
        start_cpu, names = family_cpu_s(profiler.pid), names_cpu_s(profiler.pid)
        busy, bpf = node_busy_s(), bpf_of(profiler.pid)
        begin = time.monotonic()
        pss = watch(profiler.pid, options.seconds)
        seconds = time.monotonic() - begin
        cpu = family_cpu_s(profiler.pid) - start_cpu
        threads, dwarf = (now - before for now, before in zip(names_cpu_s(profiler.pid), names))
        run_ns = bpf_of(profiler.pid)[0] - bpf[0]
        maps = map_bytes(but=maps_before)
        busy = node_busy_s() - busy
        row = Row({
            "workload": workload.name, "profiler": name,
            "CPU %": f"{100 * cpu / seconds / CPUS:.3f}",
            "BPF %": f"{100 * run_ns / 1e9 / seconds / CPUS:.4f}",
            "BPF us a stack": f"{run_ns / 1000 / max(1, busy * options.rate):.1f}",
            "PSS MiB": f"{pss / 1024:.1f}", "maps MiB": f"{maps / 2**20:.1f}",
            "start s": f"{until_sampling:.0f}", "start CPU s": f"{start_cpu:.2f}",
            "node busy": f"{busy / seconds / CPUS:.2f}"})
    finally:
        workload_cpu = workload.cpu_s() - workload_begin
        stop_profiler(profiler)
    if name == "podprof":
        row["names %"] = f"{100 * (threads + dwarf) / (cpu + dwarf):.1f}"
    if name == "podprof" and workload_cpu > 0.1:
        row["delivered %"] = f"{100 * count_samples(to + '/store') / workload_cpu / options.rate:.1f}"
        if workload.name == "W4":
            share = share_with_caller(to + "/store", "pw-short-*", "short_inner", "short_outer")
            row["complete %"] = f"{100 * share:.1f}"
    return row


def measure_all(workload, profilers, stores, to, options):
    rows = []
    workload.start()
    try:
        for round_number in range(options.rounds):
            for name, command in profilers.items():
                at = f"{stores}/{workload.name}-{name}-{round_number}"
                os.makedirs(at)
                rows.append(measure(workload, name, command, at, options))
                print(rows[-1], flush=True)
                shutil.rmtree(at)
        groups = {}
        for p, command in zip(workload.processes, workload.commands * workload.copies):
            if workload.pids() and not options.no_record:
                groups.setdefault(os.path.basename(command[0]).rstrip("0123456789"), []).append(p.pid)
        for group, pids in groups.items():
            share = complete_share(pids, to, options.seconds, options.rate)
            print(f"{workload.name} {group}: {share} % of the stacks complete ('podprof record')", flush=True)
    finally:
        workload.stop()
    return rows


def mean(rows, workload, name, column):
    values = [float(r[column]) for r in rows if (r["workload"], r["profiler"]) == (workload, name)]
    return sum(values) / len(values)


def show_means(rows):
    """Of all rounds, and podprof's by each other profiler's."""
    names = list(dict.fromkeys(r["profiler"] for r in rows))
    print("\nmeans, and podprof's by the other's\n\n| workload | profiler | " + " | ".join(Row.COMPARED) +
          " |\n|" + "---|" * (2 + len(Row.COMPARED)))
    for workload in dict.fromkeys(r["workload"] for r in rows):
        means = {n: [mean(rows, workload, n, c) for c in Row.COMPARED] for n in names}
        for name in names:
            print(f"| {workload} | {name} | " + " | ".join(f"{m:.4g}" for m in means[name]) + " |")
        for name in names[1:]:
            ratios = [f"{own / other:.2f}" if other else "" for own, other in zip(means[names[0]], means[name])]
            print(f"| {workload} | {names[0]} / {name} | " + " | ".join(ratios) + " |")


def commands_of(named):
    """Other profilers' commands, of the options NAME=COMMAND."""
    return {name: command.split() for name, command in (each.split("=", 1) for each in named)}


def conditions(rate):
    return (f"{CPUS} CPUs, {os.uname().release}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())}, "
            f"load {os.getloadavg()[0]:.1f}, {rate} Hz")


def main():
    parser = benchoptions.Parser(__doc__)
    parser.option("seconds", 30, "length of each measurement")
    parser.option("warm-up", 15, "from its first samples to its measurement: tables are made")
    parser.option("rate", 97)
    parser.option("window", "10s")
    parser.add_argument("--debug", action="store_true", help="debug information in the programs of W2")
    parser.add_argument("--alone", action="store_true", help="rules that keep only the workloads' programs")
    parser.option("only", "W1,W2,W3,W4", "workloads")
    parser.option("rounds", 1, "measurements of each profiler in each workload")
    parser.option("podprof", PODPROF)
    parser.option("json")
    parser.add_argument("--no-record", action="store_true", help="leave out 'podprof record' after each workload")
    parser.add_argument("--profiler", action="append", default=[], metavar="NAME=COMMAND")
    options = parser.parsed()
    profilers = {"podprof": agent_command(options.window, options.podprof), **commands_of(options.profiler)}
    if options.alone:
        profilers["podprof"] += ["--config", "{dir}/../alone.json"]
    print(f"{conditions(options.rate)}, {options.seconds} s each")
    print("| " + " | ".join(Row.COLUMNS) + " |\n|" + "---|" * len(Row.COLUMNS))
    with tempfile.TemporaryDirectory(prefix="podprof-bench-") as to, disk(to) as stores, bpf_statistics():
        made = workloads(to, options.debug)
        with open(f"{stores}/alone.json", "w") as f:
            json.dump({"relabel_configs": [ALONE]}, f)
        rows = [row for name in options.only.split(",")
                for row in measure_all(made[name](), profilers, stores, to, options)]
    if options.rounds > 1 or options.profiler:
        show_means(rows)
    benchoptions.write_json(options.json, rows)


if __name__ == "__main__":
    main()
