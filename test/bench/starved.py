#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What a starved agent delivers: many runnable processes on few CPUs, and a compiler that starts again
and again.

All of it runs in a cgroup of its own. In it, the spinners and the compilers share the CPUs but for
the agent's request, as a full Kubernetes node does: the agent's cgroup has the weight of
--request, theirs have the rest. --quota gives the agent the request and no more. --request 0 puts all into one cgroup, each process with the same
weight.

--programs x264,rustc,node,chromium also runs these programs (as installed) beside the compilers, each
of them busy all the time, and judges their stacks from the second profile on.

Several binaries (--also NAME=PATH) run at the same time, each in a cgroup of its own, so that their
figures compare. --peer 'NAME=COMMAND' adds another profiler that sends OTLP profiles; {endpoint} in its
command is the collector's gRPC address, {rate} the sampling rate. The collector has CPU time of the other
users. A stack of the other profiler is whole by the rules of runtimes.py, and the first --window seconds of
a program do not count.

Root, Linux with the cpu controller, gcc's cc1plus; a minute.
"""
import collections
import contextlib
import glob
import gzip
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import benchoptions  # noqa: E402
import collected  # noqa: E402
import workloads  # noqa: E402

CPUS = os.cpu_count()
SPINNER = r"""
#include <stdint.h>
#include <stdlib.h>
static volatile uint64_t sink;
__attribute__((noinline)) static uint64_t down(unsigned depth, uint64_t x)
{
	volatile char frame[64];
	frame[x % sizeof(frame)] = (char)x;
	if (depth)
		return down(depth - 1, x * 25214903917u + depth) + frame[x % sizeof(frame)];
	for (int i = 0; i < 1000000; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	return x;
}
int main(void)
{
	for (uint64_t x = (uint64_t)(uintptr_t)&x;; x = x * 6364136223846793005u + 1)
		sink += down(x >> 60, x);
}
"""
SOURCE = """
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <string>
int main(int n, char **v)
{
	std::map<std::string, std::regex> m;
	m["a"] = std::regex("a(b|c)*");
	for (auto &x : m)
		std::cout << x.first << n << std::regex_match(v[0], x.second);
}
"""


def busy_rustc(to):
    """A crate of traits and generics, compiled again and again."""
    with open(f"{to}/busy.rs", "w") as f:
        f.write("use std::collections::BTreeMap;\n")
        for i in range(300):
            f.write(f"pub fn f{i}(x: &[u{8 << i % 4}]) -> BTreeMap<String, Vec<u64>> {{\n"
                    f"    let mut m: BTreeMap<String, Vec<u64>> = BTreeMap::new();\n"
                    f"    for (i, v) in x.iter().enumerate().filter(|(i, _)| i % {i + 2} != 0) {{\n"
                    f"        m.entry(format!(\"{{}}-{i}\", v)).or_default().push(i as u64);\n"
                    f"    }}\n    m.retain(|_, v| v.len() > {i});\n    m\n}}\n")
    return f"while :; do rustc -O --crate-type rlib -o {to}/busy.rlib {to}/busy.rs; done"


def busy_x264(to):
    """Noise and a moving ramp, 640 x 360."""
    with open(f"{to}/busy.yuv", "wb") as f:
        for i in range(60):
            f.write(bytes((i * 3 + x) & 255 for x in range(640)) * 90 + os.urandom(640 * 270) +
                    bytes([128]) * (640 * 180))
    return (f"while :; do x264 --quiet --demuxer raw --input-res 640x360 --fps 25 -o /dev/null {to}/busy.yuv;"
            " done")


SCRIPT = """
function deep(n, f) { return n ? deep(n - 1, f) : f(); }
function work() {
	const words = {};
	for (let i = 0; i < 20000; i++)
		words['w' + (i * 7919) % 5003] = (words['w' + i % 5003] || 0) + i;
	return JSON.stringify(Object.entries(words).sort((a, b) => b[1] - a[1])).length;
}
"""


def busy_node(to):
    with open(f"{to}/busy.js", "w") as f:
        f.write(SCRIPT + "for (;;)\n\tdeep(20, work);\n")
    return f"node {to}/busy.js"


def busy_chromium(to):
    """The script in a page that also lays out text all the time."""
    with open(f"{to}/busy.html", "w") as f:
        f.write("<body><script>" + SCRIPT + """
            setInterval(() => {
                document.body.innerText = 'x'.repeat(deep(20, work) % 1000).replace(/(.{7})/g, '$1 ');
                document.body.style.width = 200 + document.body.offsetHeight % 300 + 'px';
            }, 0);</script>""")
    return (f"chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
            f"--disable-background-networking --disable-component-update --disable-sync "
            f"--user-data-dir={to}/chromium --remote-debugging-port=0 file://{to}/busy.html")


PROGRAMS = {"rustc": busy_rustc, "x264": busy_x264, "node": busy_node, "chromium": busy_chromium}


class Cgroups:
    """A tree of the cpu controller, of either version: /parent, with children by CPU shares."""
    NAME = "podprof-starved-"
    STALE_S = 60  # a run has processes in its tree sooner

    def __init__(self):
        self.v1 = os.path.exists("/sys/fs/cgroup/cpu/cpu.shares")
        self.root = f"/sys/fs/cgroup{'/cpu' if self.v1 else ''}"
        self.at = f"{self.root}/{self.NAME}{os.getpid()}"

    def create(self):
        self.remove_stale()
        os.mkdir(self.at)
        if not self.v1:
            with contextlib.suppress(OSError):
                self.write("/sys/fs/cgroup/cgroup.subtree_control", "+cpu")
            self.write(f"{self.at}/cgroup.subtree_control", "+cpu")
        self.weigh("", 1024 * 16)  # other users of the machine keep some

    @staticmethod
    def write(path, text):
        with open(path, "w") as f:
            f.write(text)

    def weigh(self, name, shares):
        """As the kubelet converts shares to a weight."""
        if self.v1:
            self.write(f"{self.at}/{name}/cpu.shares", str(shares))
        else:
            self.write(f"{self.at}/{name}/cpu.weight", str(1 + (shares - 2) * 9999 // 262142))

    def add(self, name, shares):
        os.mkdir(f"{self.at}/{name}")
        self.weigh(name, shares)

    def limit(self, name, thousandths):
        """So many ms a second and no more, however much is free."""
        if self.v1:
            self.write(f"{self.at}/{name}/cpu.cfs_quota_us", str(thousandths * 100))
        else:
            self.write(f"{self.at}/{name}/cpu.max", f"{thousandths * 100} 100000")

    def start(self, name, command, **options):
        procs = f"{self.at}/{name}/cgroup.procs"
        return subprocess.Popen(["sh", "-c", f'echo $$ >{procs} && exec "$@"', "sh", *command], **options)

    def pids(self):
        """0: of another PID namespace."""
        for path in glob.glob(f"{self.at}/*/cgroup.procs"):
            with open(path) as f:
                yield from map(int, f.read().split())

    def mapped_programs(self):
        paths = set()
        for pid in self.pids():
            with contextlib.suppress(OSError):
                paths.update(workloads.mapped_programs(pid))
        return paths

    @staticmethod
    def remove(at):
        for path in [*glob.glob(f"{at}/*/"), at]:
            os.rmdir(path)

    def remove_stale(self):
        """Trees of runs that were killed. A tree with processes cannot be removed."""
        for at in glob.glob(f"{self.root}/{self.NAME}*"):
            with contextlib.suppress(OSError):
                if time.time() - os.stat(at).st_ctime > self.STALE_S:
                    self.remove(at)

    def stop(self):
        """Ends the processes, also those that left their parents."""
        end = time.monotonic() + 60
        while os.path.exists(self.at):
            for pid in filter(None, self.pids()):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            try:
                self.remove(self.at)
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)


# ---------------------------------------------------------------- what was delivered


def entry_of(path):
    with open(path, "rb") as f:
        return struct.unpack_from("<Q", f.read(64), 24)[0]


class Profile:
    """As much of a pprof file as this needs."""

    def __init__(self, path):
        with gzip.open(path) as f:
            data = f.read()
        parts = collections.defaultdict(list)
        for number, value in workloads.fields(data):
            parts[number].append(value)
        self.text = [t.decode(errors="replace") for t in parts[6]]
        self.functions = {f[1]: self.text[f[2]] for f in (dict(workloads.fields(x)) for x in parts[5])}
        self.mappings = {m[1]: self.text[m.get(5, 0)] for m in (dict(workloads.fields(x)) for x in parts[3])}
        self.locations = {}
        for x in parts[4]:
            loc = list(workloads.fields(x))
            d = dict(loc)
            line = next((dict(workloads.fields(v)) for k, v in loc if k == 4), {})
            self.locations[d[1]] = (self.mappings.get(d.get(2), ""), d.get(3, 0),
                                    self.functions.get(line.get(1), ""))
        self.samples = [list(workloads.fields(x)) for x in parts[2]]

    @staticmethod
    def packed(fields, number):
        at = []
        for k, v in fields:
            if k != number:
                continue
            if isinstance(v, int):
                at.append(v)
                continue
            i = 0
            while i < len(v):
                n, i = workloads.varint(v, i)
                at.append(n)
        return at

    def comm(self, sample):
        for k, v in sample:
            if k == 3:
                label = dict(workloads.fields(v))
                if self.text[label[1]] == "comm":
                    return self.text[label.get(2, 0)]
        return ""

    def ends(self, comm=None):
        """Counts of the outermost frames: (mapping, address, function)."""
        ends = collections.Counter()
        for s in self.samples:
            if comm is None or self.comm(s) == comm:
                ends[self.locations[self.packed(s, 1)[-1]]] += self.packed(s, 2)[0]
        return ends


def is_whole(end, entries):
    mapping, address, function = end
    entry = entries.get(mapping, -100)
    return ("kernel" in mapping or function in ("_start", "_dl_start_user", "__libc_start_main", "clone", "clone3")
            or entry <= address < entry + 64)


def whole(ends, entries):
    n = sum(ends.values())
    return n, sum(c for e, c in ends.items() if is_whole(e, entries)), \
        [(e, c) for e, c in ends.most_common() if not is_whole(e, entries)][:4]


def said(n, good):
    return f"{100 * good / n:.1f} % of {n}" if n else "none"


# ---------------------------------------------------------------- a measurement


class Profiler:
    """One that runs in the background; looked at from outside until the end."""

    def __init__(self, cgroups, group, name, to):
        self.cgroups, self.group, self.name, self.to = cgroups, group, name, to
        self.begin = self.first = self.process = None
        os.makedirs(to)

    def start(self, command):
        self.begin = time.monotonic()
        log = open(f"{self.to}/log", "w")
        self.process = self.cgroups.start(self.group, command, stdout=log, stderr=log)

    def look(self):
        if self.first is None and self.has_profiles():
            self.first = time.monotonic() - self.begin

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(60)


class Agent(Profiler):
    """podprof."""

    def __init__(self, cgroups, group, name, path, to, options, port):
        super().__init__(cgroups, group, name, to)
        self.port = port
        self.text = ""
        self.start([path, "agent", "--window", f"{options.window}s", "--cpu-rate", str(options.rate), "--listen",
                    f"127.0.0.1:{port}", "--store-dir", f"{to}/store", "--go-heap-profiler", "disabled",
                    "--metadata", "none"])

    def has_profiles(self):
        return bool(glob.glob(f"{self.to}/store/*/*.pb.gz"))

    def finish(self):
        """Metrics; of an agent that does not answer, what it waits for."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
                self.text = answer.read().decode()
            with open(f"{self.to}/metrics", "w") as f:
                f.write(self.text)
        except OSError as e:
            print(f"{self.name} does not answer: {e}")
            for path in (path for pid in workloads.family(self.process.pid)
                         for path in glob.glob(f"/proc/{pid}/task/*/stack")):
                with contextlib.suppress(OSError), open(path) as f:
                    print(path, f.read().split())

    def report(self, cpu, options, entries, compiler):
        report_agent(self, self.text, cpu, entries, compiler)
        report_programs(self, options.programs, entries)


class Peer(Profiler):
    """Another profiler, and its collector."""

    def __init__(self, cgroups, group, name, command, to, options):
        super().__init__(cgroups, group, name, to)
        self.collector = collected.Collector(to)
        self.starts = {}
        self.start([word.format(rate=options.rate, endpoint=self.collector.grpc, http=self.collector.http)
                    for word in command])

    def has_profiles(self):
        with contextlib.suppress(OSError):
            return os.path.getsize(self.collector.path) > 0
        return False

    def finish(self):
        """Where stacks of the living programs begin."""
        for path in self.cgroups.mapped_programs():
            with contextlib.suppress(subprocess.CalledProcessError, OSError):
                self.starts[os.path.basename(path)] = collected.starts_of(path)

    def stop(self):
        super().stop()
        self.collector.stop()

    def report(self, cpu, options, _, compiler):
        samples = collections.Counter()
        complete = collections.Counter()
        first = {}
        for profile in collected.profiles(self.collector.path):
            name = profile.resource.get("process.executable.name", "")
            if profile.time_ns < first.setdefault(name, profile.time_ns) + options.window * 1e9:
                continue
            for n, sample in profile.counts():
                samples[name] += n
                complete[name] += n * collected.is_complete(profile.stack(sample), self.starts)
        print(f"{self.name}: first profile {self.first and round(self.first, 1)} s, {sum(samples.values())} samples, "
              f"{cpu:.2f} s CPU")
        for program in [compiler, *options.programs]:
            print(f"    {program}: whole {said(samples[program], complete[program])}")


def threads_cpu_ms(pid):
    """Of a process and its children, by the thread's name."""
    ms = collections.Counter()
    for path in (path for p in workloads.family(pid) for path in glob.glob(f"/proc/{p}/task/*")):
        with contextlib.suppress(OSError), open(f"{path}/comm") as name, open(f"{path}/schedstat") as stat:
            ms[name.read().strip()] += int(stat.read().split()[0]) / 1e6
    return ms


def outcomes(text, family, only=""):
    """Label outcome: value, of those that are not 0."""
    found = {}
    for line in text.splitlines():
        m = re.match(family + r"\{(.*)\} ([\d.e+]+)$", line)
        if m and only in m.group(1) and float(m.group(2)):
            label = re.search(r'(?:outcome|kind|reason|event)="(\w+)"', m.group(1).replace('kind="cpu"', ""))
            found[label.group(1)] = int(float(m.group(2)))
    return found


def report_programs(agent, programs, entries):
    """All profiles but each program's first."""
    for program in programs:
        windows = collections.defaultdict(collections.Counter)
        for path in glob.glob(f"{agent.to}/store/{program}-*/*.pb.gz"):
            windows[os.path.basename(path)] += Profile(path).ends()
        ends = collections.Counter()
        for window in sorted(windows)[1:]:
            ends += windows[window]
        n, good, bad = whole(ends, entries)
        print(f"    {program}: whole {said(n, good)}",
              " ".join(f"{m.rsplit('/')[-1]}:{f}:{c}" for (m, _, f), c in bad))


def report_agent(agent, text, cpu, entries, compiler):
    samples = outcomes(text, "podprof_samples_total", 'kind="cpu"')
    taken = {k: v for k, v in samples.items()
             if k in ("ok", "kernel_only", "complete", "no_user") or k.startswith(("truncated", "lost"))}
    n = sum(taken.values()) or 1
    lost = sum(v for k, v in taken.items() if k.startswith("lost"))
    cut = sum(v for k, v in taken.items() if k.startswith("truncated"))
    print(f"{agent.name}: first profile {agent.first and round(agent.first, 1)} s, {n} samples, lost "
          f"{100 * lost / n:.1f} %, cut {100 * cut / n:.1f} %, {cpu:.2f} s CPU")
    print(f"    samples {taken}")
    for family in ("podprof_stack_dumps_total", "podprof_deferred_stacks_total",
                   "podprof_profiled_samples_total", "podprof_process_events_lost_total",
                   "podprof_unwind_compiled_total", "podprof_unwind_early_rules_total"):
        print(f"    {family} {outcomes(text, family)}")
    windows = collections.defaultdict(collections.Counter)
    for path in glob.glob(f"{agent.to}/store/{compiler}-*/*.pb.gz"):
        windows[os.path.basename(path)] += Profile(path).ends()
    for i, (window, ends) in enumerate(sorted(windows.items())):
        n, good, bad = whole(ends, entries)
        print(f"    {compiler}, profile {i + 1}: whole {said(n, good)}",
              " ".join(f"{m.rsplit('/')[-1]}:{f}:{c}" for (m, _, f), c in bad))


def agents(cgroups, groups, binaries, to, options, entries, compiler, load):
    before, begin = load.spinners_cpu_s(), time.monotonic()
    peers = workloads.commands_of(options.peer)
    running = [Agent(cgroups, groups[i], name, path, f"{to}/agent-{name}", options, 17180 + i)
               for i, (name, path) in enumerate(binaries.items())]
    try:
        for i, (name, command) in enumerate(peers.items(), len(running)):
            running.append(Peer(cgroups, groups[i], name, command, f"{to}/agent-{name}", options))
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            time.sleep(0.1)
            for a in running:
                a.look()
        cpu = [workloads.family_cpu_s(a.process.pid) for a in running]
        threads = [threads_cpu_ms(a.process.pid) for a in running]
        spun = (load.spinners_cpu_s() - before) / (time.monotonic() - begin)
        for a in running:
            a.finish()
    finally:
        for a in running:
            a.stop()
    print(f"agents; the spinners had {spun:.2f} CPUs, load {os.getloadavg()[0]:.0f}")
    for a, c, ms in zip(running, cpu, threads):
        a.report(c, options, entries, compiler)
        print("    ms of", " ".join(f"{name} {n:.0f}" for name, n in ms.most_common() if n >= 1))


def records(cgroups, groups, binaries, to, options, entries, compiler, _):
    running = []
    for i, (name, path) in enumerate(binaries.items()):
        running.append((name, time.monotonic(), cgroups.start(groups[i], [
            path, "record", "--all", "--rate", str(options.rate), "--duration", f"{options.seconds}s",
            "--output", f"{to}/{name}.pb.gz"], stderr=subprocess.PIPE, text=True)))
    for name, begin, process in running:
        text = process.communicate()[1]
        print(f"{name}: record --all, {time.monotonic() - begin:.0f} s in all\n    " +
              "\n    ".join(text.strip().splitlines()))
        n, good, bad = whole(Profile(f"{to}/{name}.pb.gz").ends(compiler), entries)
        print(f"    {compiler}: whole {said(n, good)}",
              " ".join(f"{m.rsplit('/')[-1]}:{f}:{c}" for (m, _, f), c in bad))


class Load:
    def __init__(self, cgroups, groups, to, options, cc1plus):
        self.cgroups, self.groups, self.options, self.to, self.cc1plus = cgroups, groups, options, to, cc1plus
        self.processes = []

    def start(self):
        subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-x", "c", "-", "-o", f"{self.to}/spinner"],
                       input=SPINNER.encode(), check=True)
        subprocess.run(["g++", "-E", "-x", "c++", "-", "-o", f"{self.to}/source.ii"], input=SOURCE.encode(),
                       check=True)
        for _ in range(self.options.spinners):
            self.processes.append(self.cgroups.start(self.groups[0], [f"{self.to}/spinner"]))
        loop = f"while :; do {self.cc1plus} -quiet -fpreprocessed -O1 {self.to}/source.ii -o /dev/null; done"
        for _ in range(self.options.compilers):
            self.processes.append(self.cgroups.start(self.groups[1], ["sh", "-c", loop], process_group=0,
                                                     stderr=subprocess.DEVNULL))
        for program in self.options.programs:
            self.processes.append(self.cgroups.start(
                self.groups[1], ["sh", "-c", PROGRAMS[program](self.to)], process_group=0,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def spinners_cpu_s(self):
        return sum(workloads.cpu_s(p.pid) for p in self.processes[:self.options.spinners])

    def stop(self):
        for p in self.processes[:self.options.spinners]:
            p.kill()
        for p in self.processes[self.options.spinners:]:
            with contextlib.suppress(ProcessLookupError):  # ended
                os.killpg(p.pid, signal.SIGKILL)
        for p in self.processes:
            p.wait()
        time.sleep(0.2)


def measure(options, binaries, to):
    cc1plus = subprocess.run(["gcc", "-print-prog-name=cc1plus"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.strip()
    compiler = "cc1plus"
    entries = {os.path.realpath(path): entry_of(os.path.realpath(path))
               for path in [cc1plus, *filter(None, map(shutil.which, options.programs))]}
    request = options.request * 1024 // 1000
    groups = [f"agent-{i}" if request else "spinners" for i in range(len(binaries) + len(options.peer))]
    rest = CPUS * 1024 - request * len(groups)
    made = ["spinners", "compilers" if request else "spinners"]
    cgroups = Cgroups()
    load = Load(cgroups, made, to, options, cc1plus)
    try:
        cgroups.create()
        cgroups.add("spinners", rest * 3 // 4 if request else 1024)
        if request:
            cgroups.add("compilers", rest // 4)
            for g in groups:
                cgroups.add(g, CPUS * 1024 if options.quota else max(2, request))
                if options.quota:
                    cgroups.limit(g, options.request)
        load.start()
        for what in options.what.split(","):
            {"agent": agents, "record": records}[what](cgroups, groups, binaries, to, options, entries,
                                                            compiler, load)
            sys.stdout.flush()
    finally:
        benchoptions.ignore_signals()
        load.stop()
        cgroups.stop()


def main():
    parser = benchoptions.Parser(__doc__)
    parser.option("seconds", 60, "length of each measurement")
    parser.option("window", 10, "the agent's window, seconds")
    parser.option("rate", 97)
    parser.option("spinners", 150, "runnable processes")
    parser.option("compilers", 2, "compilers")
    parser.add_argument("--programs", type=lambda text: text.split(","), default=[], help=",".join(PROGRAMS))
    parser.option("request", 20, "CPU request of the agent, in thousandths of a CPU; 0: equal weights")
    parser.add_argument("--quota", action="store_true",
                        help="limit the agent to the request, and let it run before others: the other "
                        "users of the machine change less")
    parser.option("what", "agent", "agent, record")
    parser.add_argument("--also", action="append", default=[], metavar="NAME=PATH", help="another podprof")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--keep", help="keep the profiles in this directory")
    options = parser.parsed()
    binaries = {"podprof": os.path.abspath(workloads.PODPROF)}
    binaries.update(b.split("=", 1) for b in options.also)
    print(f"{CPUS} CPUs, {os.uname().release}, {time.strftime('%Y-%m-%d %H:%M', time.gmtime())}, load "
          f"{os.getloadavg()[0]:.1f}, {options.spinners} spinners, {options.compilers} compilers, request "
          f"{options.request}m, {options.rate} Hz, windows of {options.window} s, {options.seconds} s")
    with tempfile.TemporaryDirectory(prefix="podprof-starved-") as to:
        try:
            measure(options, binaries, to)
        finally:
            if options.keep:
                shutil.copytree(to, options.keep, symlinks=True, dirs_exist_ok=True)


if __name__ == "__main__":
    main()
