#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What keeps the agent's event loop busy in one go (run as root).

  turns.py [--seconds S] [NAME...]

Each provocation has an agent of its own, build/podprof, on a node that the provocation furnishes. It prints a row for
each: the CPU time of the agent's main thread until it answers, the turns of more than 20 ms (by the clock: on a busy
machine a turn is longer than its work), and the callbacks with the longest calls in CPU time of the thread. The longest
call by the clock may be another one.
"""
import contextlib
import gzip
import http.server
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import uuid

import benchoptions
import workloads

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
FLOOD = os.path.join(TOP, "test", "hostile", "flood.py")
LONG_S = 0.02
# The walk over all cgroups is due every 30 s.
WALK_S = 33

GO_SOURCE = """package main

import (
	_ "net/http/pprof"
	"time"
)

var kept [][]byte

func main() {
	for i := 0; i < 64; i++ {
		kept = append(kept, make([]byte, 64<<10))
	}
	time.Sleep(time.Hour)
}
"""

# Goes from cgroup to cgroup and is busy in each.
HOPPER = """
import sys, time
places = sys.stdin.read().split()
while True:
    for place in places:
        with open(place, "w") as f:
            f.write("0")
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            pass
"""

# A service account of the agent's own, in a mount namespace of its own.
ACCOUNT = """mount -t tmpfs tmpfs /run &&
mkdir -p /run/secrets/kubernetes.io/serviceaccount &&
echo token >/run/secrets/kubernetes.io/serviceaccount/token &&
exec "$0" "$@"
"""


def cgroup_root():
    """The unified hierarchy: its cgroups cost the kernel least."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            _, where, kind = line.split()[:3]
            if kind == "cgroup2":
                return where
    sys.exit("no cgroup version 2 hierarchy is mounted")


def get(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=300) as page:
        return page.read()


# ---------------------------------------------------------------- a kubelet

def pod(n_containers, filling):
    uid = str(uuid.uuid4())
    ids = [secrets.token_hex(32) for _ in range(n_containers)]
    return {
        "metadata": {"name": f"pod-{uid[:8]}", "namespace": "turns", "uid": uid,
                     "labels": {"app": "turns", "release": secrets.token_hex(4)},
                     "annotations": {"filling": "x" * filling}},
        "spec": {"nodeName": "bench", "containers": [{"name": f"c{i}", "image": "img"} for i in range(n_containers)]},
        "status": {"phase": "Running", "podIP": "10.1.1.1",
                   "containerStatuses": [{"name": f"c{i}", "image": "img", "containerID": f"containerd://{c}"}
                                         for i, c in enumerate(ids)]},
    }, uid, ids


class Kubelet:
    """Answers /pods. Each list differs from the one before in every pod."""

    def __init__(self, pods):
        self.pods = pods
        self.lists = []
        self.n_asked = 0
        self.renew(2)
        kubelet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                body = kubelet.lists[kubelet.n_asked % len(kubelet.lists)]
                kubelet.n_asked += 1
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *_: None  # the agent has ended
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def renew(self, n):
        for i in range(n):
            for one in self.pods:
                one["metadata"]["labels"]["list"] = str(i)
            self.lists.append(json.dumps({"kind": "PodList", "metadata": {"resourceVersion": str(i)},
                                          "items": self.pods}).encode())

    def close(self):
        self.server.shutdown()
        self.server.server_close()


# ---------------------------------------------------------------- the node

class Node:
    def __init__(self):
        self.root = cgroup_root()
        self.work = tempfile.mkdtemp(prefix="podprof-turns-")
        self.processes = []
        self.folders = []
        self.kubelet = None

    def folder(self, *parts):
        path = self.root
        for part in parts:
            path = os.path.join(path, part)
            with contextlib.suppress(FileExistsError):
                os.mkdir(path)
                self.folders.append(path)
        return path

    def container(self, uid=None, name=None):
        """A container's cgroup as a kubelet names it."""
        return os.path.join(self.folder("kubepods", "besteffort", f"pod{uid or uuid.uuid4()}",
                                        name or secrets.token_hex(32)), "cgroup.procs")

    def nest(self, n):
        """So many empty cgroups of no container, in three levels."""
        for i in range(n):
            self.folder("turns", str(i // 300), str(i % 300 // 10), str(i % 10))

    def start(self, command, n, places, **kwargs):
        for i in range(n):
            process = subprocess.Popen(command, **kwargs)
            self.processes.append(process)
            if places:
                with open(places[i % len(places)], "w", encoding="ascii") as f:
                    f.write(str(process.pid))

    def serve_pods(self, n_pods, n_containers, filling):
        made = [pod(n_containers, filling) for _ in range(n_pods)]
        self.kubelet = Kubelet([p for p, _, _ in made])
        return [(uid, c) for _, uid, ids in made for c in ids]

    def remove_folders(self):
        for folder in reversed(self.folders):
            for _ in range(50):
                try:
                    os.rmdir(folder)
                    break
                except OSError:
                    time.sleep(0.1)
        self.folders = []

    def end_processes(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes = []

    def close(self):
        self.end_processes()
        self.remove_folders()
        if self.kubelet:
            self.kubelet.close()
        shutil.rmtree(self.work)


class Agent:
    def __init__(self, node, options):
        self.address = f"127.0.0.1:{workloads.free_port()}"
        command = [os.path.join(TOP, "build", "podprof")]
        if node.kubelet:
            options = options + ["--metadata", "kubelet", "--kubelet-url", node.kubelet.url]
            command = ["unshare", "--mount", "sh", "-c", ACCOUNT, *command]
        else:
            options = options + ["--metadata", "none"]
        self.log = os.path.join(node.work, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, "agent", "--listen", self.address, "--node-name", "bench", *options], stderr=log)
        while True:
            try:
                self.get("/-/healthy")
                break
            except OSError:
                if self.process.poll() is not None:
                    sys.exit(open(self.log, encoding="utf-8").read())
                time.sleep(0.05)
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/schedstat", encoding="ascii") as f:
            self.start_s = int(f.read().split()[0]) / 1e9

    def get(self, path, **headers):
        return get(f"http://{self.address}{path}", **headers)

    def metrics(self):
        return self.get("/metrics").decode()

    def long_turns(self):
        found = re.findall(r'^podprof_loop_turn_seconds_bucket\{le="([^"]+)"\} (\d+)', self.metrics(), re.M)
        return int(found[-1][1]) - sum(int(n) for le, n in found if le != "+Inf" and float(le) == LONG_S)

    def longest(self):
        """[CPU seconds, seconds by the clock, callback]"""
        page = self.metrics()
        cpu, wall = (dict(re.findall(r'^podprof_loop_longest_callback_seconds\{callback="([^"]+)",clock="%s"\} (\S+)'
                                     % clock, page, re.M)) for clock in ("cpu", "wall"))
        return sorted(((float(s), float(wall[name]), name.removeprefix("agent/")) for name, s in cpu.items()),
                      reverse=True)

    def stop(self):
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return time.monotonic() - begun


# ---------------------------------------------------------------- provocations: before the agent's start, and after

def no_node(_node, _args):
    pass


def rest(_node, _agent, args):
    time.sleep(args.seconds)


def cgroups_there(node, _args):
    node.nest(3000)


def cgroups_walked(_node, agent, _args):
    agent.metrics()
    time.sleep(WALK_S)


def cgroups_come_and_go(node, _agent, args):
    for _ in range(3):
        node.nest(3000)
        time.sleep(1)
        node.remove_folders()
    time.sleep(args.seconds / 2)


def pods_2_mb(node, _args):
    node.container()
    node.serve_pods(500, 2, 3400)


def pods_5000(node, _args):
    node.container()
    node.serve_pods(5000, 2, 0)


def containers_named(node, _args):
    for uid, name in node.serve_pods(1000, 5, 500):
        node.container(uid, name)


def containers_watched(_node, agent, args):
    agent.metrics()
    time.sleep(3 * args.seconds)


def look_at_pages(node, agent, args):
    containers_watched(node, agent, args)
    for _ in range(3):
        agent.get("/")
        time.sleep(1)


def processes_there(node, _args):
    node.start(["sleep", "1000000"], 2000, [node.container() for _ in range(250)])


def look_at_targets(node, agent, args):
    containers = [os.path.basename(f) for f in node.folders if len(os.path.basename(f)) == 64]
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        agent.get("/")
        for name in containers[:3]:
            with contextlib.suppress(urllib.error.HTTPError):
                agent.get(f"/debug/pprof/heap?container={name}")
    time.sleep(args.seconds)


def processes_come_and_go(node, _agent, args):
    processes_there(node, args)
    time.sleep(args.seconds / 2)
    node.end_processes()
    time.sleep(args.seconds / 2)


def hoppers(node, _args):
    places = [node.container() for _ in range(2000)]
    for half in (places[::2], places[1::2]):
        node.start([sys.executable, "-c", HOPPER], 1, None, stdin=subprocess.PIPE, text=True)
        node.processes[-1].stdin.write("\n".join(half))
        node.processes[-1].stdin.close()


def windows_end(_node, _agent, _args):
    time.sleep(125)


def exec_storm(_node, _agent, args):
    """Short programs, as many as two shells start."""
    shells = [subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) for _ in range(2)]
    time.sleep(2 * args.seconds)
    for shell in shells:
        shell.kill()
        shell.wait()


def go_processes(node, _args):
    with open(os.path.join(node.work, "main.go"), "w", encoding="utf-8") as f:
        f.write(GO_SOURCE)
    program = os.path.join(node.work, "sleeper")
    subprocess.run(["go", "build", "-o", program, os.path.join(node.work, "main.go")], check=True,
                   env=os.environ | {"GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"})
    node.start([program], 1000, [node.container() for _ in range(1000)], env={"GOMAXPROCS": "1"})


def scrape(_node, agent, args):
    time.sleep(4 * args.seconds)
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        page = agent.metrics()
        gzip.decompress(agent.get("/metrics", **{"Accept-Encoding": "gzip"}))
    print(f"{'':26}{sum(not line.startswith('#') for line in page.splitlines())} samples on the metrics page")


def spinners(_node, _agent, args):
    """Many programs that run, so that the drains have something to do."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(50)]
    time.sleep(args.seconds)
    for spinner in spinning:
        spinner.kill()
        spinner.wait()


MAPPER = """
import ctypes, mmap, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
page = mmap.PAGESIZE
at = libc.mmap(None, 60000 * page, 3, 0x22, -1, 0)
for i in range(0, 60000, 2):
    libc.mprotect(at + i * page, page, 1)
code = os.open("/bin/true", os.O_RDONLY)
while True:
    libc.mmap(None, page, 5, 2, code, 0)
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass
"""


def many_mappings(_node, _agent, args):
    """A process with 60,000 mappings that maps code all the time, so that its list is read again and again."""
    mapper = subprocess.Popen([sys.executable, "-c", MAPPER])
    time.sleep(args.seconds)
    mapper.kill()
    mapper.wait()


def flame_graphs(node, agent, _args):
    subprocess.run([FLOOD, "flood", agent.address, node.entity], check=True, stdout=subprocess.DEVNULL)


def stored_profiles(node, _args):
    store = os.path.join(node.work, "store")
    os.mkdir(store)
    node.entity = subprocess.run([FLOOD, "fill", store, "2000"], check=True, capture_output=True,
                                 text=True).stdout.strip()


SHORT = ["--window", "5s"]
PROVOCATIONS = {
    "idle": (no_node, rest, SHORT),
    "3000-cgroups": (cgroups_there, cgroups_walked, SHORT),
    "3000-cgroups-come-and-go": (no_node, cgroups_come_and_go, SHORT),
    "pod-list-2-mb": (pods_2_mb, rest, SHORT),
    "pod-list-5000-pods": (pods_5000, rest, SHORT),
    "5000-containers": (containers_named, containers_watched, SHORT),
    "5000-containers-alone": (containers_named, containers_watched, SHORT + ["--host-processes=false"]),
    "5000-containers-pages": (containers_named, look_at_pages, SHORT + ["--host-processes=false"]),
    "2000-processes": (processes_there, look_at_targets, SHORT + ["--pull"]),
    "2000-processes-come-and-go": (no_node, processes_come_and_go, SHORT),
    "2000-series": (hoppers, windows_end, ["--window", "60s", "--cpu-rate", "99"]),
    "exec-storm": (no_node, exec_storm, SHORT),
    "20000-metrics": (go_processes, scrape, SHORT),
    "spinners": (no_node, spinners, SHORT),
    "60000-mappings": (no_node, many_mappings, SHORT),
    "flame-graphs": (stored_profiles, flame_graphs, SHORT + ["--store-dir", "STORE"]),
}


def provoke(name, args):
    prepare, run, options = PROVOCATIONS[name]
    node = Node()
    try:
        prepare(node, args)
        agent = Agent(node, [os.path.join(node.work, "store") if o == "STORE" else o for o in options])
        try:
            run(node, agent, args)
            longest = agent.longest()
            n_long = agent.long_turns()
        finally:
            end_s = agent.stop()
        print(f"{name:26}{1000 * agent.start_s:7.0f}{n_long:8}{1000 * end_s:9.0f}  " +
              f"\n{'':52}".join(f"{1000 * cpu:7.1f}{1000 * wall:8.1f}  {at}" for cpu, wall, at in
                                longest[:args.callbacks]), flush=True)
    finally:
        node.close()


def main():
    parser = benchoptions.Parser(__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--callbacks", type=int, default=4)
    parser.add_argument("name", nargs="*", choices=[[], *PROVOCATIONS])
    args = parser.parsed()
    print(f"{'':26}{'start':>7}{'> 20 ms':>8}{'end':>9}  longest calls of callbacks\n"
          f"{'':26}{'cpu ms':>7}{'turns':>8}{'ms':>9}  cpu ms wall ms")
    for name in args.name or PROVOCATIONS:
        provoke(name, args)


if __name__ == "__main__":
    main()
