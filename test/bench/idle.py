#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
What wakes the agent, and what it asks of the kernel: wake-ups and system calls a second, as counts,
which other users of the machine change less than times.

  idle   nothing else in the agent's PID namespace and cgroups
  W3     300 processes of 100 programs, each awake for 1 ms a second (workloads.py)

A thread wakes as often as it went to sleep (voluntary_ctxt_switches). System calls are counted by
strace in a second span, since strace slows the agent down. The agent has its default settings but
for the port and the store. Root, strace, unshare; some minutes.
"""
import collections
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import benchoptions  # noqa: E402
import workloads  # noqa: E402


def threads(pid):
    """Of each thread of the agent's processes: name, wake-ups, CPU seconds."""
    found = {}
    for tid, at in ((tid, f"/proc/{p}/task/{tid}") for p in workloads.family(pid)
                    for tid in os.listdir(f"/proc/{p}/task")):
        with contextlib.suppress(OSError):
            with open(f"{at}/comm") as f:
                name = f.read().strip()
            with open(f"{at}/status") as f:
                wakes = int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", f.read(), re.M).group(1))
            with open(f"{at}/schedstat") as f:
                found[tid] = (name, wakes, int(f.read().split()[0]) / 1e9)
    return found


def difference(before, after, seconds):
    """By thread name: wake-ups a second, CPU ms a second."""
    sums = collections.defaultdict(lambda: [0, 0])
    for tid, (name, wakes, cpu) in after.items():
        _, old_wakes, old_cpu = before.get(tid, (name, 0, 0))
        sums[name][0] += (wakes - old_wakes) / seconds
        sums[name][1] += (cpu - old_cpu) * 1000 / seconds
    return dict(sums)


def system_calls(pid, seconds, to):
    """By name: calls a second."""
    traced = [word for p in workloads.family(pid) for word in ("-p", str(p))]
    tracer = subprocess.Popen(["strace", "-f", "-c", "-U", "calls,name", "-o", to, *traced],
                              stderr=subprocess.DEVNULL)
    time.sleep(seconds)
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    counts = {}
    with open(to) as f:
        for line in f:
            found = re.match(r"\s*(\d+)\s+(\w+)$", line)
            if found and found.group(2) != "total":
                counts[found.group(2)] = int(found.group(1)) / seconds
    return counts


def pids_of(parent):
    """Children, by the parent's list."""
    with open(f"/proc/{parent}/task/{parent}/children") as f:
        return [int(x) for x in f.read().split()]


class Namespace:
    """A PID namespace with its own /proc, and a cgroup directory that is the agent's whole tree."""

    def __init__(self):
        v2 = "/sys/fs/cgroup/unified" if os.path.exists("/sys/fs/cgroup/unified") else "/sys/fs/cgroup"
        self.cgroup = f"{v2}/podprof-idle-{os.getpid()}"
        os.mkdir(self.cgroup)
        self.init = subprocess.Popen(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sleep", "infinity"])
        while not pids_of(self.init.pid):
            time.sleep(0.01)
        self.first = pids_of(self.init.pid)[0]

    def command(self, *command):
        return ["nsenter", "-t", str(self.first), "-p", "-m", "--", "sh", "-c",
                f'echo $$ >{self.cgroup}/cgroup.procs; exec "$@"', "sh", *command]

    def stop(self):
        self.init.kill()
        self.init.wait()
        for _ in range(100):
            with contextlib.suppress(OSError):
                os.rmdir(self.cgroup)
                return
            time.sleep(0.1)


def agent_pid(starter, program):
    """nsenter forks into the namespace."""
    while starter.poll() is None:
        children = pids_of(starter.pid)
        with contextlib.suppress(OSError):
            if children and os.path.samefile(f"/proc/{children[0]}/exe", program):
                return children[0]
        time.sleep(0.05)
    sys.exit("the agent ended, see its log above")


def measure(name, space, to, options, *more):
    """With more arguments of the agent. Its store and other files are in the directory @to."""
    command = [os.path.abspath(options.podprof), "agent", "--listen", options.listen, "--store-dir",
               f"{to}/{name}-store", "--cgroupfs-root", space.cgroup, "--window", options.window, *more]
    maps_before = workloads.bpf_shown("map").keys()
    starter = subprocess.Popen(space.command(*command, "--log-level", "warn"))
    pid = agent_pid(starter, options.podprof)
    time.sleep(options.warm_up)
    before = threads(pid)
    time.sleep(options.seconds)
    by_thread = difference(before, threads(pid), options.seconds)
    pss = workloads.family_pss_kib(pid)
    maps = workloads.map_bytes(but=maps_before)
    calls = system_calls(pid, options.seconds, f"{to}/{name}-strace")
    os.kill(pid, signal.SIGINT)
    starter.wait()
    return {"workload": name, "threads": by_thread, "calls": calls, "pss_kib": pss, "map_bytes": maps,
            "wake-ups": sum(t[0] for t in by_thread.values()),
            "cpu_ms": sum(t[1] for t in by_thread.values())}


def show(row):
    print(f"{row['workload']}: {row['wake-ups']:.2f} wake-ups/s, "
          f"{sum(row['calls'].values()):.1f} system calls/s, {row['cpu_ms']:.2f} ms CPU/s, "
          f"PSS {row['pss_kib'] / 1024:.1f} MiB")
    for name, (wakes, cpu) in sorted(row["threads"].items(), key=lambda t: -t[1][0]):
        print(f"    {name:10} {wakes:7.2f} wake-ups/s {cpu:8.3f} ms/s")
    for name, n in sorted(row["calls"].items(), key=lambda c: -c[1])[:12]:
        print(f"    {name:22} {n:8.2f} calls/s")
    sys.stdout.flush()


class Inside(workloads.Workload):
    """The sleepers of W3, in the namespace."""

    def __init__(self, space, commands):
        super().__init__("W3", [space.command(*c) for c in commands], 3)


def main():
    parser = benchoptions.Parser(__doc__)
    parser.option("seconds", 60, "length of each of two spans")
    parser.option("warm-up", 30, "before the first of them")
    parser.option("window", "10s")
    parser.option("only", "idle,W3", "workloads")
    parser.option("podprof", workloads.PODPROF)
    parser.option("listen", "127.0.0.1:17269")
    parser.option("json")
    options = parser.parsed()
    print(f"{os.cpu_count()} CPUs, {os.uname().release}, load {os.getloadavg()[0]:.1f}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="podprof-idle-") as to, workloads.disk(to) as stores:
        for name in options.only.split(","):
            space = Namespace()
            load = None
            try:
                if name == "W3":
                    load = Inside(space, workloads.build_sleepers(to))
                    load.start()
                rows.append(measure(name, space, stores, options))
                show(rows[-1])
            finally:
                if load:
                    load.stop()
                space.stop()
    benchoptions.write_json(options.json, rows)


if __name__ == "__main__":
    main()
