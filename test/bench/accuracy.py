#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU seconds by samples against the kernel's own accounting (cpu.stat of a cgroup), as root.

    test/bench/accuracy.py [SECONDS [RATE]]    (60 997)

All commands run at once, each in a container of its own, below one agent: two clocks on a CPU would be in step
with each other. Each command's whole life is in its profiles, so no window has an edge. The last column is the
difference in standard deviations of a count at random times. 'steal' and 'irq' are the machine's shares.

The programs of short bursts sleep for 0.5 ms. The kernel wakes a sleeper with any other timer's interrupt that
comes in the last part of its sleep, the thread's timer slack: 50 us by default.
"""
import os
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "hostile"))
import hostile  # noqa: E402

SHARES = 2048  # other users of the machine keep the rest
SPIN = "while True: pass"
BURST = "import time\nwhile True:\n time.sleep(0.0005)\n for _ in range(3000): pass"
CALLS = "import os\nz = os.open('/dev/zero', 0)\nwhile True: os.read(z, 65536)"


def slack(ns):
    return f"import ctypes\nctypes.CDLL(None).prctl(29, {ns}, 0, 0, 0)\n"  # PR_SET_TIMERSLACK


WORKLOADS = {  # the processes of a command
    "one spinner": (1, SPIN),
    "eight spinners": (8, SPIN),
    "two in system calls": (2, CALLS),
    "four with short bursts, slack 1 ns": (4, slack(1) + BURST),
    "four with short bursts, slack 50 us": (4, BURST),
    "four with short bursts, slack 400 us": (4, slack(400000) + BURST),
}


class Options:
    long = True
    port = 0


def machine():
    with open("/proc/stat") as stat:
        fields = [int(x) for x in stat.readline().split()[1:]]
    return {"all": sum(fields[:8]), "idle": fields[3] + fields[4], "irq": fields[5] + fields[6], "steal": fields[7]}


def line(name, samples, seconds, rate):
    want = rate * seconds
    print("%-36s %9d %12.3f %12.3f %+7.2f%% %+6.1f" % (name, samples, samples / rate, seconds,
                                                       100 * (samples / want - 1), (samples - want) / want ** 0.5))


def run(node, seconds, rate):
    with open(os.path.join(node.cgroups.v1 or node.cgroups.v2, node.cgroups.name,
                           "cpu.shares" if node.cgroups.v1 else "cpu.weight"), "w") as f:
        f.write(str(SHARES if node.cgroups.v1 else SHARES * 100 // 1024))
    node.agent = hostile.Agent(node, "agent", options=("--cpu-rate", str(rate)))
    clock = node.victim(5)
    hostile.until(lambda: hostile.profiles_of(node.store, clock), "no profile")
    before = machine()
    containers = {}
    for name, (n, text) in WORKLOADS.items():
        forks = f"import os\nfor _ in range({n - 1}):\n if not os.fork(): break\n"
        containers[name] = hostile.Container(node, [sys.executable, "-c", forks + text])
    time.sleep(seconds)
    for container in containers.values():
        container.end()
    ended, after = time.time(), machine()
    hostile.until(lambda: any(begin > ended for begin, _, _ in hostile.profiles_of(node.store, clock)), "no later profile")
    all_samples = all_seconds = 0
    print("%-36s %9s %12s %12s %8s %6s" % (f"{rate} Hz", "samples", "samples, s", "cpu.stat, s", "differ", "sigma"))
    for name, container in containers.items():
        stacks = hostile.stacks_of(hostile.profiles_of(node.store, container))
        line(name, stacks["all"], container.usage_s(), rate)
        all_samples += stacks["all"]
        all_seconds += container.usage_s()
    line("all", all_samples, all_seconds, rate)
    change = {key: after[key] - before[key] for key in after}
    print("machine: %s" % ", ".join("%s %.2f%%" % (k, 100 * change[k] / change["all"]) for k in ("idle", "irq", "steal")))


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    rate = int(sys.argv[2]) if len(sys.argv) > 2 else 997
    work = tempfile.mkdtemp(prefix="podprof-accuracy-")
    node = hostile.Node(work, Options, all_trees=True)
    try:
        run(node, seconds, rate)
    finally:
        node.clean()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
