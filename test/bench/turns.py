#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What keeps the agent's event loop busy in one go (run as root).

  turns.py [--processes N] [--containers N] [--seconds S] [--store N]

Runs build/podprof through phases, each provoking long turns in its way, and prints for each phase how many turns of
the loop took how long (podprof_loop_turn_seconds), and the callbacks with the longest calls so far.
"""
import argparse
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
import uuid

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FLOOD = os.path.join(TOP, "e2e", "flood.py")
CGROUPS = "/sys/fs/cgroup"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def metrics(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=300) as page:
        return page.read().decode()


def turns(page):
    """Observations of each bucket alone, by its bound."""
    found = re.findall(r'^podprof_loop_turn_seconds_bucket\{le="([^"]+)"\} (\d+)', page, re.M)
    before, out = 0, {}
    for bound, n in found:
        out[bound] = int(n) - before
        before = int(n)
    return out


def longest(page):
    found = re.findall(r'^podprof_loop_longest_callback_seconds\{callback="([^"]+)"\} (\S+)', page, re.M)
    return sorted(((float(s), name) for name, s in found), reverse=True)


class Node:
    """Sleeping processes in cgroups as a kubelet names them, or in ours if cgroups cannot be made."""

    def __init__(self):
        self.processes = []
        self.folders = []

    def container(self):
        pod = os.path.join(CGROUPS, "kubepods", "besteffort", f"pod{uuid.uuid4()}")
        folder = os.path.join(pod, secrets.token_hex(32))
        try:
            os.makedirs(folder)
        except OSError:
            return None
        self.folders += [folder, pod]
        return os.path.join(folder, "cgroup.procs")

    def fill(self, n_containers, n_processes):
        places = [self.container() for _ in range(n_containers)]
        for i in range(n_processes):
            process = subprocess.Popen(["sleep", "1000000"])
            self.processes.append(process)
            place = places[i % len(places)] if places else None
            if place:
                with open(place, "w", encoding="ascii") as f:
                    f.write(str(process.pid))

    def empty(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        for folder in self.folders + [os.path.join(CGROUPS, "kubepods", "besteffort"),
                                      os.path.join(CGROUPS, "kubepods")]:
            try:
                os.rmdir(folder)
            except OSError:
                pass


def exec_storm(seconds):
    """Short programs, as many as two shells start."""
    shells = [subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) for _ in range(2)]
    time.sleep(seconds)
    for shell in shells:
        shell.kill()
        shell.wait()


def burn(seconds, n):
    """Many programs that run, so that the drains have something to do."""
    spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n)]
    time.sleep(seconds)
    for spinner in spinners:
        spinner.kill()
        spinner.wait()


def scrape(seconds, address):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        metrics(address)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=5000)
    parser.add_argument("--containers", type=int, default=250)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--store", type=int, default=2000)
    args = parser.parse_args()
    work = tempfile.mkdtemp(prefix="podprof-turns-")
    address = f"127.0.0.1:{free_port()}"
    store = os.path.join(work, "store")
    node = Node()
    os.mkdir(store)
    entity = subprocess.run([FLOOD, "fill", store, str(args.store)], check=True, capture_output=True,
                            text=True).stdout.strip()
    with open(os.path.join(work, "log"), "wb") as log:
        agent = subprocess.Popen([os.path.join(TOP, "build", "podprof"), "agent", "--listen", address, "--node-name",
                                  "bench", "--window", "5s", "--store-dir", store], stderr=log)
    phases = [
        ("idle", lambda: time.sleep(args.seconds)),
        (f"{args.processes} processes start", lambda: node.fill(args.containers, args.processes)),
        (f"{args.processes} processes sleep", lambda: time.sleep(args.seconds)),
        ("exec storm", lambda: exec_storm(args.seconds)),
        ("50 spinners", lambda: burn(args.seconds, 50)),
        ("scrapes", lambda: scrape(args.seconds, address)),
        ("flame graphs", lambda: subprocess.run([FLOOD, "flood", address, entity], check=True,
                                                stdout=subprocess.DEVNULL)),
        ("processes end", node.empty),
    ]
    try:
        for _ in range(100):
            try:
                before = turns(metrics(address))
                break
            except OSError:
                time.sleep(0.1)
        print(f"{'turns of at most, s':24}" + "".join(f"{b:>7}" for b in before))
        for name, run in phases:
            run()
            page = metrics(address)
            now = turns(page)
            print(f"{name:24}" + "".join(f"{now[b] - before[b]:7}" for b in now))
            print("".join(f"{'':24}  {1000 * s:9.1f} ms {at}\n" for s, at in longest(page)[:4]), end="", flush=True)
            before = now
    finally:
        node.empty()
        agent.send_signal(signal.SIGTERM)
        agent.wait()
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
