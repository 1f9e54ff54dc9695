#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an interrupted starved.py leaves behind: no cgroup and no process."""
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import starved  # noqa: E402

SIGNALS = [[signal.SIGTERM], [signal.SIGHUP], [signal.SIGINT], [signal.SIGTERM, signal.SIGINT, signal.SIGTERM]]
DEADLINE_S = 120


class Cgroups(starved.Cgroups):
    """Without the controller: a machine may not have it."""

    @staticmethod
    def write(path, text):
        pass


class Load:
    """A process, and one that has left it for a session of its own."""

    def __init__(self, cgroups, *_):
        self.cgroups = cgroups

    def start(self):
        self.cgroups.start("spinners", ["sh", "-c", "setsid sleep 1000 & exec sleep 1000"])

    def spinners_cpu_s(self):
        return 0

    def stop(self):
        pass


def wait(cgroups, *_):
    print(cgroups.at, flush=True)
    time.sleep(DEADLINE_S)


def child():
    starved.Cgroups, starved.Load, starved.agents = Cgroups, Load, wait
    sys.argv = [sys.argv[0], "--request", "0"]
    starved.main()


def start():
    process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "child"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    process.stdout.readline()
    at = process.stdout.readline().strip()
    assert os.path.isdir(at), at
    until(lambda: len(pids(at)) == 2, "two processes")
    return process, at, pids(at)


def pids(at):
    with open(f"{at}/spinners/cgroup.procs") as f:
        return f.read().split()


def until(check, what):
    end = time.monotonic() + DEADLINE_S
    while not check():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def is_there(pid):
    """A zombie has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


def interrupted(signals):
    process, at, inside = start()
    for number in signals:
        process.send_signal(number)
    process.wait(DEADLINE_S)
    assert not os.path.exists(at), (signals, at)
    assert not any(map(is_there, inside)), signals


def killed():
    """The next run removes the tree, but not before its processes have ended."""
    process, at, inside = start()
    process.kill()
    process.wait(DEADLINE_S)
    Cgroups.STALE_S = -1
    other = Cgroups()
    other.create()
    assert pids(at) == inside
    for pid in inside:
        os.kill(int(pid), signal.SIGKILL)
    until(lambda: not pids(at), "no processes")
    other.remove_stale()
    assert not os.path.exists(at) and not os.path.exists(other.at)
    Cgroups.STALE_S = 3600
    young = Cgroups()
    young.create()
    young.remove_stale()
    assert os.path.exists(young.at)
    young.stop()
    assert not os.path.exists(young.at)


if __name__ == "__main__":
    if sys.argv[1:] == ["child"]:
        child()
    else:
        # of the runs: one that is killed leaves its own there
        with tempfile.TemporaryDirectory(prefix="podprof-test-starved-") as to:
            os.environ["TMPDIR"] = to
            for row in SIGNALS:
                interrupted(row)
            killed()
