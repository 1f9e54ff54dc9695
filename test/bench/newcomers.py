#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What becomes of the samples of new containers (root).

  newcomers.py [-n CONTAINERS] [--cpu-s SECONDS] [--spinners N] [--all-trees]

Containers with a new program each start one after the other beside a live agent that profiles no host
processes, each for some CPU time. The kernel's account of this time (cpu.stat) makes a number of samples at
the sampling rate. The report has

- the containers' samples in profiles, as a share of that number, with its error by chance: all containers,
  the lowest, the highest;
- samples in profiles of other entities, the unknown one included;
- all outcomes that the agent counted meanwhile, of the whole machine, and their sum as a share of the
  machine's CPU time (/proc/stat). What is missing there was never taken.

--spinners runs a container with so many busy processes beside them. --all-trees has the containers in each
hierarchy of the machine, as container runtimes do. Else, on a machine with both cgroup versions, their tasks
are in host directories of most version 1 hierarchies.

PODPROF is another program to test.
"""
import glob
import os
import random
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "hostile"))
import benchoptions  # noqa: E402
import hostile  # noqa: E402


class Options:
    long = False
    port = 0


def busy_s():
    """CPU time of the machine without interrupts."""
    with open("/proc/stat") as f:
        user, nice, system = f.readline().split()[1:4]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def outcomes(grown):
    """Of each sample: the kernel's outcomes, and what the agent did with those that it was handed."""
    for name in ("podprof_samples_total", "podprof_profiled_samples_total", "podprof_waiting_samples_total"):
        for key, n in sorted(grown.items()):
            if key.startswith(name) and 'kind="off' not in key and n:
                yield key, n


def run(node, options):
    node.agent = hostile.Agent(node, "agent")
    early = node.victim(10)
    hostile.until(lambda: hostile.profiles_of(node.store, early), "no profile")
    beside = [hostile.Container(node, hostile.program("attack", "spin", options.spinners))] if options.spinners else []
    before, busy = node.agent.metrics(), -busy_s()
    containers = []
    for _ in range(options.containers):
        time.sleep(random.random())  # any time since the agent's last timer
        container = node.victim(100)
        hostile.until(lambda: container.usage_s() >= options.cpu_s, "the container does not run")
        container.end()
        containers.append(container)
    busy += busy_s()
    after = node.agent.metrics()
    for container in beside:
        container.end()
    ended = time.time()
    hostile.until(lambda: any(begin > ended for begin, _, _ in hostile.profiles_of(node.store, early)), "no later profile")
    return containers, after.grown(before), busy


def report(node, containers, grown, busy):
    shares, samples, seconds = [], 0, 0
    for container in containers:
        stacks = hostile.stacks_of(hostile.profiles_of(node.store, container))
        samples += stacks["all"]
        seconds += container.usage_s()
        shares.append(stacks["all"] / (hostile.RATE * container.usage_s()))
    want = hostile.RATE * seconds
    print(f"{len(containers)} containers of {seconds / len(containers):.2f} s: {samples} samples of {want:.0f}, "
          f"{100 * samples / want:.1f} % +- {100 / want ** 0.5:.1f}; lowest {100 * min(shares):.0f} %, "
          f"highest {100 * max(shares):.0f} % +- {100 * (len(shares) / want) ** 0.5:.0f}")
    known = [c.id[:12] for c in node.containers] + [node.flooded]
    for folder in glob.glob(f"{node.store}/*"):
        n = sum(hostile.counts_of(path)["all"] for path in glob.glob(f"{folder}/*_cpu.pb.gz"))
        if n and not any(i in folder for i in known):
            print(f"in profiles of {os.path.basename(folder)}: {n}")
    taken = sum(n for key, n in grown.items() if key.startswith("podprof_samples_total"))
    for key, n in outcomes(grown):
        print(f"  {key} +{n:.0f}")
    print(f"all samples of the machine: {taken:.0f} in {busy:.1f} s of CPU time, "
          f"{100 * taken / (hostile.RATE * busy):.1f} % +- {100 / (hostile.RATE * busy) ** 0.5:.1f}")


def main():
    parser = benchoptions.Parser(__doc__)
    parser.add_argument("-n", "--containers", type=int, default=40)
    parser.option("cpu-s", 0.7, "of each container")
    parser.option("spinners", 0, "busy processes beside them")
    parser.add_argument("--all-trees", action="store_true", help="the containers are in each hierarchy")
    options = parser.parsed()
    work = tempfile.mkdtemp(prefix="podprof-newcomers-")
    node = hostile.Node(work, Options, options.all_trees)
    try:
        report(node, *run(node, options))
    finally:
        node.clean()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
