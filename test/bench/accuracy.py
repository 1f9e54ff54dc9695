#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU seconds by samples against the kernel's own accounting (cpu.stat of a cgroup), as root.

Four commands run at once, each in a cgroup of its own and under a 'podprof record' of its own. All of a
command's CPU time is in its cgroup and in its profile, so neither has an edge of a window. The last column is
the difference in standard deviations of a binomial count. 'steal' and 'irq' are the machine's shares.

    test/bench/accuracy.py [SECONDS [RATE]]
"""

import gzip
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PODPROF = os.path.join(TOP, "build/podprof")
SPIN = "while True: pass"
# Bursts far below a sample's period, each begun by a timer's interrupt.
BURST = "import time\nwhile True:\n time.sleep(0.0005)\n for _ in range(3000): pass"
CALLS = "import os\nwhile True: os.read(z, 65536)"
WORKLOADS = {
    "one spinner": [SPIN],
    "eight spinners": [SPIN] * 8,
    "four with short bursts": [BURST] * 4,
    "two in system calls": ["import os\nz = os.open('/dev/zero', 0)\n" + CALLS] * 2,
}


def hierarchy():
    with open("/proc/mounts") as mounts:
        return next(line.split()[1] for line in mounts if line.split()[2] == "cgroup2")


def usage_seconds(cgroup):
    with open(os.path.join(cgroup, "cpu.stat")) as stat:
        return int(re.search(r"usage_usec (\d+)", stat.read())[1]) / 1e6


def machine():
    with open("/proc/stat") as stat:
        fields = [int(x) for x in stat.readline().split()[1:]]
    return {"all": sum(fields[:8]), "idle": fields[3] + fields[4], "irq": fields[5] + fields[6], "steal": fields[7]}


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def fields(data):
    """(number, value) of a protobuf message; bytes for what has a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            n = varint()
            yield key >> 3, data[at : at + n]
            at += n


def totals(path):
    """Sums of all sample types: Profile.sample = 2, Sample.value = 2, packed."""
    with gzip.open(path) as file:
        data = file.read()
    sums = []
    for number, sample in fields(data):
        if number != 2:
            continue
        values = next(list(varints(v)) for n, v in fields(sample) if n == 2)
        sums = [a + b for a, b in zip(sums or [0] * len(values), values)]
    return sums


def start(name, programs, seconds, rate, folder):
    cgroup = os.path.join(hierarchy(), "podprof-accuracy-%d-%s" % (os.getpid(), name.replace(" ", "-")))
    os.mkdir(cgroup)
    script = os.path.join(folder, name + ".py")
    with open(script, "w") as file:
        file.write(
            "import os, signal\npids = []\n"
            + "for program in %r:\n pid = os.fork()\n if not pid:\n  exec(program)\n pids.append(pid)\n" % programs
            + "import time\ntime.sleep(%d)\nfor pid in pids: os.kill(pid, signal.SIGKILL)\n" % seconds
            + "for pid in pids: os.waitpid(pid, 0)\n"
        )
    out = os.path.join(folder, name + ".pb.gz")
    join = 'echo 0 >"$0/cgroup.procs" && exec "$@"'
    command = [PODPROF, "record", "--rate", str(rate), "--output", out, "--"]
    command += ["/bin/sh", "-c", join, cgroup, sys.executable, script]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return name, cgroup, out, process


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    rate = int(sys.argv[2]) if len(sys.argv) > 2 else 1997
    before = machine()
    with tempfile.TemporaryDirectory() as folder:
        runs = [start(name, programs, seconds, rate, folder) for name, programs in WORKLOADS.items()]
        print("%-24s %9s %12s %12s %8s %6s" % ("", "samples", "samples, s", "cpu.stat, s", "differ", "sigma"))
        for name, cgroup, out, process in runs:
            process.wait()
            count, nanoseconds = totals(out)[:2]
            usage = usage_seconds(cgroup)
            os.rmdir(cgroup)
            ratio = nanoseconds / 1e9 / usage - 1
            print("%-24s %9d %12.3f %12.3f %+7.2f%% %+6.1f"
                  % (name, count, nanoseconds / 1e9, usage, 100 * ratio, ratio * count**0.5))
    after = machine()
    change = {key: after[key] - before[key] for key in after}
    print("machine: %s" % ", ".join("%s %.2f%%" % (k, 100 * change[k] / change["all"]) for k in ("idle", "irq", "steal")))


if __name__ == "__main__":
    main()
