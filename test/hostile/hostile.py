#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Containers that attack a live agent, and what their neighbours lose (root).

  hostile.py [--long] [--list] [NAME...]   all attacks, or some

Each attack runs in container cgroups of its own. Beside it run two victims with known functions: one
that started before all attacks ("early"), and a new program that starts during the attack ("late").
Each row of the table is one attack; the columns are explained below it. The short form runs several
attacks at once, for seconds.

The agent and each container have the same CPU weight. 'make bench-starved' has the agent of a full
Kubernetes node, with the chart's CPU request only.

PODPROF is another program to test; PODPROF_RSS_KIB is the limit of its memory, PODPROF_TIMES how many times
slower it is (sanitizers).
"""
import argparse
import bisect
import collections
import contextlib
import functools
import glob
import http.client
import json
import os
import re
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..")
sys.path[:0] = [os.path.join(TOP, "test", "bench"), HERE]
import flood  # noqa: E402
import starved  # noqa: E402
import workloads  # noqa: E402

PODPROF = os.environ.get("PODPROF", os.path.join(TOP, "build", "podprof"))
BUILT = os.path.join(TOP, "build", "hostile")
CPUS = os.cpu_count()
RATE = 97
SHARES = 1024  # of the agent and of each container
# The limits only end a failure: a busy machine may take minutes.
PATIENCE_S = int(os.environ.get("PODPROF_E2E_PATIENCE", "300"))
RSS_KIB = int(os.environ.get("PODPROF_RSS_KIB", "150000"))
TIMES = float(os.environ.get("PODPROF_TIMES", "1"))
# Of each claim much more than on a quiet machine; the table has the figures.
LOST_MAX = 0.2
LOST_STORM_MAX = 0.5
# Beyond the longest answer of a small server in the agent's cgroup, which has the machine's own delays: the answer,
# and the answer without the time that the loop waited for a CPU.
OWN_ANSWER_MAX_S = 0.5 * TIMES
# CPU time of one callback of the loop, on any machine.
CALLBACK_MAX_S = 0.1 * TIMES
# Of the early victim some 80 samples, and a window has the samples of a drain up to 1 s before it.
SHARE_MIN = 0.45
DRAIN_S = 1
ALL_MIN = 0.95
# The late victim's whole life is in profiles. Standard deviations of its samples, at random times of its CPU time.
SIGMAS = 5
NAMED_MIN = 0.9
WHOLE_MIN = 0.8
OUTERMOST = ("_start", "__libc_start_main", "clone", "clone3", "__clone", "__clone3", "runtime.goexit",
             "runtime.mstart", "runtime.mcall", "_rt0_amd64_linux")


class Failure(Exception):
    pass


def of_chart(pattern):
    """A number in the chart's files."""
    for name in ("values.yaml", "templates/daemonset.yaml"):
        with open(os.path.join(TOP, "charts", "podprof", name)) as f:
            found = re.search(pattern, f.read(), re.M)
        if found:
            return int(found.group(1))
    raise Failure(f"the chart has no {pattern}")


GRACE_S = of_chart(r"^terminationGracePeriodSeconds: (\d+)")
# The agent gives itself 25 s for an orderly end (agent.h), and its parent 1 s more for a kill (base/supervise.c).
ORDERLY_S = 25
END_MAX_S = GRACE_S - 3
# Times that an end needs a CPU, one after the other: the signal, the parent's deadline, the kill, the parent's end.
END_WAITS = 4
ANSWER_MAX_S = of_chart(r"livenessProbe:(?:\n.*){1,4}\n +timeoutSeconds: (\d+)")


def until(condition, what, patience=PATIENCE_S):
    end = time.monotonic() + patience
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > end:
            raise Failure(f"{what}, even after {patience} s")
        time.sleep(0.02)


# ---------------------------------------------------------------- cgroups


class Cgroups:
    """Below a cgroup of ours: the agent's, and one of each container. In the unified hierarchy and in that of
    the cpu controller, or in all of them, as container runtimes make them."""

    def __init__(self, all_trees=False):
        with open("/proc/mounts") as f:
            mounts = [line.split() for line in f]
        self.v2 = next((m[1] for m in mounts if m[2] == "cgroup2"), None)
        if not self.v2:
            raise Failure("no cgroup2")
        self.v1 = next((m[1] for m in mounts if m[2] == "cgroup" and "cpu" in m[3].split(",")), None)
        self.roots = [root for root in (self.v2, self.v1) if root]
        if all_trees:  # cpuset has no CPUs for a new cgroup
            self.roots += [m[1] for m in mounts if m[2] == "cgroup" and m[1] not in self.roots and
                           not re.search(r"\bcpuset\b|\bname=", m[3])]
        self.name = f"podprof-hostile-{os.getpid()}"
        self.made = []
        self.add("", 16 * SHARES)  # other users of the machine keep some
        self.add("agent")

    def add(self, path, shares=SHARES):
        for root in self.roots:
            at = os.path.join(root, self.name, path)
            if root == self.v2 and not self.v1:
                with contextlib.suppress(OSError), open(f"{os.path.dirname(at)}/cgroup.subtree_control", "w") as f:
                    f.write("+cpu")
            os.mkdir(at)
            self.made.append(at)
            if root == self.v1:
                with open(f"{at}/cpu.shares", "w") as f:
                    f.write(str(shares))
            elif not self.v1:
                with contextlib.suppress(OSError), open(f"{at}/cpu.weight", "w") as f:
                    f.write(str(1 + (shares - 2) * 9999 // 262142))

    def start(self, path, command, **options):
        procs = [os.path.join(root, self.name, path, "cgroup.procs") for root in self.roots]
        enter = "".join(f"echo $$ >{p} && " for p in procs)
        return subprocess.Popen(["sh", "-c", f'{enter}exec "$@"', "sh", *command], **options)

    def file(self, path, name):
        return os.path.join(self.v2, self.name, path, name)

    def kill(self, path):
        """Also of programs that fork."""
        def empty():
            with open(self.file(path, "cgroup.procs")) as f:
                pids = f.read().split()
            for pid in pids:
                with contextlib.suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
            return not pids
        until(empty, f"processes of {path} do not end")

    def remove(self):
        for at in reversed(self.made):
            until(lambda at=at: rmdir(at), f"{at} cannot be removed", 20)


def rmdir(path):
    with contextlib.suppress(FileNotFoundError, OSError):
        os.rmdir(path)
    return not os.path.exists(path)


def usage_s(path):
    with open(path) as f:
        return int(re.search(r"usage_usec (\d+)", f.read()).group(1)) / 1e6


class Container:
    """One process and its children, in a cgroup as Docker names them."""

    def __init__(self, node, command):
        self.node = node
        self.id = secrets.token_hex(32)
        self.path = f"docker-{self.id}.scope"
        node.cgroups.add(self.path)
        node.containers.append(self)
        self.stat = node.cgroups.file(self.path, "cpu.stat")
        self.output = os.path.join(node.work, f"{self.id[:12]}.out")
        with open(self.output, "wb") as out:
            self.process = node.cgroups.start(self.path, command, stdin=subprocess.PIPE, stdout=out, stderr=out)

    def usage_s(self):
        return usage_s(self.stat)

    def said(self):
        with open(self.output, errors="replace") as f:
            return f.read()

    def is_ready(self):
        if "ready" in self.said():
            return True
        if self.process.poll() is not None:
            raise Failure(f"an attacker ended: {self.said()}")
        return False

    def end(self):
        """First by its input: a stalled file system answers before its processes end."""
        if self.process.stdin:
            self.process.stdin.close()
            self.process.stdin = None
        self.node.cgroups.kill(self.path)
        self.process.wait()


# ---------------------------------------------------------------- the watcher, a process of its own


def serve():
    """The control: a server that does nothing else, with the priority and the cgroup of the agent. Tells its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        server.settimeout(1)
        while os.getppid() != 1:
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(10)
                    connection.recv(4096)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")


def watch(address, pid, control_port, early, to):
    """Health checks every 50 ms from one thread, and the same questions to the control from another; from a third
    the CPU time of a victim and the agent, and the agent's memory. At a real-time priority, so that a busy machine
    does not delay the questions. During each health check, also the time that the agent's loop, its first thread,
    waited for a CPU."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    out = open(to, "w", buffering=1)

    def ask(kind, asked):
        while True:
            at, before = time.time(), waited_s(pid)
            status, seconds = flood.ask(asked, "/-/healthy", flood.PROBER)
            out.write(json.dumps([kind, at, status, seconds, max(0, waited_s(pid) - before)]) + "\n")
            time.sleep(max(0, 0.05 - seconds))

    for asked in (("health", address), ("control", f"127.0.0.1:{control_port}")):
        threading.Thread(target=ask, args=asked, daemon=True).start()
    while os.getppid() != 1:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/status") as f:
            rss = re.search(r"^VmRSS:\s+(\d+)", f.read(), re.M)
            if rss:
                out.write(json.dumps(["state", time.time(), usage_s(early), workloads.cpu_s(pid),
                                      int(rss.group(1))]) + "\n")
        time.sleep(0.05)


def waited_s(pid):
    """The time that the first thread of a process was ready to run and had no CPU; 0 without the process."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/schedstat") as f:
        return int(f.read().split()[1]) / 1e9
    return 0


def end(pid, working_pid):
    """SIGTERM to the agent, and the times of both and of the agent's end; also the time that the parent and the loop
    waited for a CPU. At a real-time priority: beside a storm of processes the test itself has no CPU for seconds."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    poll = select.poll()
    poll.register(os.pidfd_open(pid), select.POLLIN)
    before = [waited_s(p) for p in (pid, working_pid)]
    waits = [0, 0]
    begun = time.time()
    os.kill(pid, signal.SIGTERM)
    while not poll.poll(20):
        waits = [max(w, waited_s(p) - b) for w, p, b in zip(waits, (pid, working_pid), before)]
        if time.time() > begun + PATIENCE_S:
            return
    print(json.dumps([begun, time.time(), *waits]), flush=True)


class Watched:
    def __init__(self, path):
        with open(path) as f:
            lines = [json.loads(line) for line in f if line.endswith("\n")]
        self.health = [x[1:] for x in lines if x[0] == "health"]
        self.control = [x[1:] for x in lines if x[0] == "control"]
        self.state = [x[1:] for x in lines if x[0] == "state"]
        self.times = [x[0] for x in self.state]

    def early_s(self, at):
        """The early victim's CPU time until @at."""
        i = min(max(1, bisect.bisect(self.times, at)), len(self.times) - 1)
        (t0, u0, *_), (t1, u1, *_) = self.state[i - 1:i + 1]
        return u0 + (u1 - u0) * (min(max(at, t0), t1) - t0) / ((t1 - t0) or 1)

    def between(self, begin, end):
        return [s for s in self.state if begin <= s[0] <= end] or [self.state[-1]]

    def answers(self, begin, end):
        return [h for h in self.health if begin <= h[0] <= end]

    def control_s(self, begin, end):
        """The longest answer of the control that has anything of this time."""
        return max((s for at, _, s, _ in self.control if begin <= at + s and at <= end), default=0)


# ---------------------------------------------------------------- the agent


class Agent:
    def __init__(self, node, name, address=None, options=(), store=None):
        self.address = address
        if not address:
            with socket.socket() as s:
                s.bind(("127.0.0.1", node.port))
                self.address = "127.0.0.1:%d" % s.getsockname()[1]
        self.log = os.path.join(node.work, f"{name}.log")
        with open(self.log, "wb") as log:
            self.process = node.cgroups.start("agent", [
                PODPROF, "agent", "--listen", self.address, "--node-name", "hostile", "--window",
                f"{node.window_s}s", "--store-dir", store or node.store, "--host-processes=false", *options],
                                               stderr=log)
        until(lambda: self.get("/-/ready")[0] == 200, "the agent is not ready")
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            self.working_pid = int(f.read())

    def get(self, path):
        try:
            connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S,
                                                    source_address=(flood.PROBER, 0))
            connection.request("GET", path)
            response = connection.getresponse()
            text = response.read().decode(errors="surrogateescape")
            connection.close()
            return response.status, text
        except OSError:
            return 0, ""

    def metrics(self):
        return Metrics(self.get("/metrics")[1])

    def said(self, what):
        with open(self.log, errors="replace") as f:
            return what in f.read()

    def has_silent_files(self):
        metrics = self.metrics()
        return (metrics.sum("podprof_images", '"opening"') + metrics.sum("podprof_images", '"slow"') or
                metrics.sum("podprof_file_threads_blocked"))

    def is_held_up(self):
        """Also by a close without an answer: the reader of Go heaps closes each program, and images stay open."""
        return self.has_silent_files() or self.metrics().sum("podprof_go_heap_reads_total", '"processes_unresponsive"')

    def has_samples(self):
        """Of half a second of all CPUs: the work on their files has begun."""
        return self.metrics().samples()[0] >= RATE * CPUS / 2


def kernel_stacks(pid):
    stacks = ""
    for task in glob.glob(f"/proc/{pid}/task/*"):
        with contextlib.suppress(OSError), open(f"{task}/comm") as comm, open(f"{task}/stack") as stack:
            stacks += f"{comm.read().strip()}: {' '.join(line.split()[-1] for line in stack)}\n"
    return stacks


def has_ended(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Metrics:
    def __init__(self, page):
        self.page = page

    def sum(self, name, label=""):
        return sum(float(line.split()[-1]) for line in self.page.splitlines()
                   if re.match(name + "[ {]", line) and label in line)

    def samples(self):
        """All wanted samples, and the lost ones."""
        kept = sum(self.sum("podprof_samples_total", f'outcome="{o}') for o in ("ok", "truncated", "lost"))
        lost = self.sum("podprof_samples_total", 'outcome="lost') + sum(
            self.sum("podprof_profiled_samples_total", f'outcome="{o}"') for o in ("lost", "over_limit", "failed"))
        return kept, lost

    def events_lost(self):
        return self.sum("podprof_process_events_lost_total")

    def callbacks(self, clock):
        """The longest call of each callback of the loop, so far."""
        return {name: float(s) for name, s in re.findall(
            r'^podprof_loop_longest_callback_seconds\{callback="([^"]+)",clock="%s"\} (\S+)' % clock, self.page, re.M)}

    def longer(self, before, clock):
        """The callbacks that had their longest call since @before."""
        earlier = before.callbacks(clock)
        return {name: s for name, s in self.callbacks(clock).items() if s > earlier.get(name, 0)}

    def grown(self, before):
        """Counters by outcome that are not as before, without those of the HTTP server and of containers."""
        values = [dict(line.rsplit(" ", 1) for line in m.page.splitlines()
                       if re.match(r"podprof_(?!http|exposition|loop)\w+_total", line)) for m in (before, self)]
        return {k: round(float(v) - float(values[0].get(k, 0)), 1) for k, v in values[1].items()
                if v != values[0].get(k)}


# ---------------------------------------------------------------- profiles


def is_named(mapping, _, function):
    """Not by the file, which stands for a missing name."""
    return function and not function.startswith("[") and os.path.basename(mapping) not in function


@functools.cache
def counts_of(path):
    """Samples of a profile: all, whole (the outermost frame is a first function), named (each frame)."""
    counts = collections.Counter()
    profile = starved.Profile(path)
    for sample in profile.samples:
        n = profile.packed(sample, 2)[0]
        frames = [profile.locations[i] for i in profile.packed(sample, 1)]
        mapping, _, outermost = frames[-1]
        counts["all"] += n
        counts["whole"] += n * ("kernel" in mapping or outermost in OUTERMOST)
        counts["named"] += n * all(is_named(*f) for f in frames)
        if frames[-1][2] not in OUTERMOST:
            counts["end " + "/".join(frames[-1][:1] + frames[-1][2:])] += n
    return counts


def stacks_of(windows):
    """Of all profiles of profiles_of()."""
    stacks = collections.Counter()
    for _, _, path in windows:
        stacks.update(counts_of(path))
    return stacks


def profiles_of(store, container):
    """[begin, end, path] of the container's CPU profiles."""
    found = []
    for folder in glob.glob(f"{store}/*{container.id[:12]}*"):
        for path in glob.glob(f"{folder}/*_cpu.pb.gz"):
            import gzip
            with gzip.open(path) as f:
                fields = dict(workloads.fields(f.read()))
            begin = fields.get(9, 0) / 1e9
            found.append((begin, begin + fields.get(10, 0) / 1e9, path))
    return sorted(found)


# ---------------------------------------------------------------- attacks


def program(name, *arguments):
    return [os.path.join(BUILT, name), *map(str, arguments)]


def worst_files(*kinds):
    def commands(node):
        folder = node.folder()
        paths = [os.path.join(folder, kind) for kind in kinds]
        for kind, path in zip(kinds, paths):
            subprocess.run(program("worstfile", kind, path), check=True)
        return [program("attack", "run", *paths)]
    return commands


# Those that a caller waits for.
SILENT_OPERATIONS = ("open", "getattr", "read", "lookup", "flush")


def silent(*operations):
    def commands(node):
        return [program("stallfs", node.folder(), os.path.join(BUILT, "attack"), o) for o in operations]
    return commands


def cut(node):
    path = os.path.join(node.folder(), "file")
    subprocess.run(program("worstfile", "lying", path), check=True)
    return [program("attack", "cut", path)]


def stack_of(kind):
    def commands(node):
        path = os.path.join(node.folder(), "file")
        subprocess.run(program("worstfile", kind, path), check=True)
        return [program("attack", "stack", path)]
    return commands


def images(node):
    return [program("attack", "images", node.folder(), 4090) for _ in range(3)]


def plain(*arguments):
    return lambda node: [program("attack", *arguments)]


def page_flood(node):
    """Its requests are the attack; the container only holds the clients."""
    return [[os.path.join(HERE, "flood.py"), "flood", node.agent.address, node.flooded]]


def check_flood(node, before, after, attackers):
    """Every answer is a graph, or a refusal with Retry-After. Some connections were too many of one address; the server
    closes these, or others that it takes for idle."""
    answers = dict(line.split() for line in attackers[0].said().splitlines()[1:])
    made, refused, closed = (int(answers.get(f"flame_{s}", 0)) for s in (200, 503, 0))

    def grown(name, label):
        return after.sum(name, label) - before.sum(name, label)
    least = grown("podprof_http_connections_total", '"per_address"')
    most = least + grown("podprof_http_connections_total", '"evicted"')
    if made + refused + closed != flood.REQUESTS or not least <= closed <= most:
        raise Failure(f"answers of the page: {answers}")
    if made < 9 or made != grown("podprof_http_jobs_total", '"ok"') or \
            refused != grown("podprof_http_jobs_total", '"busy"'):
        raise Failure(f"jobs of the page: {made} made, {refused} refused")
    for name in ("healthy", "ready", "metrics"):
        if any(re.match(f"{name}_(?!200)", a) for a in answers):
            raise Failure(f"{name} during the flood: {answers}")

    def abandoned():
        curl = ["curl", "-s", "-m", "0.05", "-o", "/dev/null"]
        subprocess.run([*curl, f"http://{node.agent.address}/entity/{node.flooded}/flame.json?kind=cpu"])
        return node.agent.metrics().sum("podprof_http_jobs_total", '"abandoned"')
    until(abandoned, "no job of a client that went away is abandoned")


# A line of the page; its group is a process of the container.
SILENT = r"no answer from the file system</i>\d+ files? of (?:process|\d+ processes, such as) (\d+): [^<]*/program"


def check_silent(node, _before, _after, attackers):
    """The page tells a process of the container, and its file that does not answer."""
    pids = set()
    for a in attackers:
        with open(node.cgroups.file(a.path, "cgroup.procs")) as f:
            pids.update(f.read().split())

    def told():
        return pids & set(re.findall(SILENT, node.agent.get("/")[1]))
    until(told, "the page tells no silent file of the attacker")
    check_targets(pids, "/program")


def check_targets(pids, path):
    """'inspect targets' tells it too, and ends although one of its threads cannot."""
    shown = subprocess.run([PODPROF, "inspect", "targets", "--json"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=True)
    slow = {str(p["pid"]): p["slow"] for line in shown.stdout.splitlines()
            for p in json.loads(line)["processes"] if p["slow"]}
    claim(any((slow.get(pid, {}).get("path") or "").endswith(path) for pid in pids),
          f"inspect targets tells no silent file of {pids}: {slow} {shown.stderr}")


def check_unawaited(node, _before, _after, attackers):
    """The file was closed without an answer, and neither the page nor the profile misses anything."""
    attacker = next(a for a in attackers if a.process.args[-1] == "release")
    until(lambda: "held" in attacker.said(), "the agent closes no file of the attacker")
    with open(node.cgroups.file(attacker.path, "cgroup.procs")) as f:
        pids = set(f.read().split())
    if pids & set(re.findall(SILENT, node.agent.get("/")[1])):
        raise Failure("a file whose close has no answer is told as silent")

    def named():
        stacks = stacks_of(profiles_of(node.store, attacker))
        return stacks["named"] >= max(1, stacks["all"] / 4)  # half of the code has no file
    until(named, "a file whose close has no answer has no names", 15)


def check_names(node, *_):
    """Names are escaped everywhere."""
    page, metrics = node.agent.get("/")[1], node.agent.get("/metrics")[1]
    with open(node.agent.log, errors="replace") as f:
        log = f.read()
    if '<b>"' in page or any("\033" in text for text in (page, metrics, log)):
        raise Failure("a name is not escaped")
    promtool = subprocess.run([os.path.join(HERE, "../tool.sh"), "promtool"], check=True, stdout=subprocess.PIPE,
                              text=True).stdout.strip()
    checked = subprocess.run([promtool, "check", "metrics"], input=metrics, text=True, capture_output=True)
    if checked.returncode:
        raise Failure(f"promtool: {checked.stdout}{checked.stderr}")


# storm: more process events than the agent reads in the CPU time that the machine leaves it. The victims keep
# their samples, but not all names; these attacks are the last ones, because the losses of one reach the next. They
# begin when the samples of those before are in profiles.
Attack = collections.namedtuple("Attack", "name commands group check storm", defaults=(None, False))
# Those of one group are one attack in the short form.
ATTACKS = [
    Attack("open without an answer", silent("open"), "silent file systems", check_silent),
    Attack("getattr without an answer", silent("getattr"), "silent file systems", check_silent),
    Attack("read without an answer", silent("read"), "silent file systems"),
    Attack("lookup in its root without an answer", silent("lookup"), "silent file systems"),
    Attack("flush without an answer", silent("flush"), "silent file systems"),
    Attack("release without an answer", silent("release"), "silent file systems", check_unawaited),
    Attack("ELF: 699,000 symbols, one name of 16 MiB", worst_files("name"), "ELF files"),
    Attack("ELF: 1,048,576 labels in one function", worst_files("labels"), "ELF files"),
    Attack("ELF: 1,169 segments of the same 16 MiB", worst_files("segments"), "ELF files"),
    Attack("ELF: 8 KiB with a segment of 8 TiB", worst_files("sparse"), "ELF files"),
    Attack("ELF: unwind tables of 8 TiB", worst_files("endless"), "ELF files"),
    Attack("ELF: 400,000 nested functions", worst_files("nested"), "ELF files"),
    Attack("ELF: 160,000 functions inside each other", stack_of("growing"), "ELF files"),
    Attack("ELF: lying headers, then cut off", cut, "ELF files"),
    Attack("Go: 300,000 functions over each other", worst_files("go"), "Go programs"),
    Attack("Go: 32 MiB like the begin of a line table", worst_files("words"), "Go programs"),
    Attack("Go: an endless list of heap records", lambda node: [program("goring")], "Go programs"),
    Attack("3 processes with 4,090 files each", images, "3 processes with 4,090 files each"),
    Attack("names with control characters", plain("names"), "names with control characters", check_names),
    Attack("150 spinners", plain("spin", 150), "150 spinners"),
    Attack("61 flame graphs over 30 connections", page_flood, "61 flame graphs over 30 connections", check_flood),
    Attack("exec storm", plain("exec", 4), "short processes", storm=True),
    Attack("short processes", plain("fork", 4), "short processes", storm=True),
    Attack("60,000 mappings, made again and again", plain("mappings"), "process events", storm=True),
    Attack("10,000 threads", plain("threads", 10000), "process events", storm=True),
]


def grouped(attacks):
    """The short form: one attack for each group."""
    groups = collections.defaultdict(list)
    for a in attacks:
        groups[a.group].append(a)
    for name, members in groups.items():
        checks = list(dict.fromkeys(a.check for a in members if a.check))
        check = checks[0] if len(checks) == 1 else lambda *state, checks=checks: [c(*state) for c in checks]
        yield Attack(name, lambda node, members=members: [c for a in members for c in a.commands(node)], name,
                     check if checks else None, any(a.storm for a in members))


# ---------------------------------------------------------------- a node under attack


class Node:
    def __init__(self, work, options, all_trees=False):
        self.work, self.long = work, options.long
        self.window_s, self.cpu_s, self.least_s = (3, 4, 12) if options.long else (1, 1.5, 2)
        self.port = options.port
        self.store = os.path.join(work, "store")
        os.mkdir(self.store)
        self.flooded = flood.fill(self.store, 300 if options.long else 60)
        self.other_store = os.path.join(work, "other-store")
        os.mkdir(self.other_store)
        flood.fill(self.other_store, 60)
        self.containers = []
        self.n = 0
        self.rows = []
        self.left = []
        self.cgroups = Cgroups(all_trees)
        self.watcher = None

    def folder(self):
        self.n += 1
        path = os.path.join(self.work, f"files-{self.n}")
        os.mkdir(path)
        return path

    def victim(self, percent):
        """A program that the agent has not seen: another file."""
        path = os.path.join(self.folder(), "copy")
        shutil.copy(os.path.join(BUILT, "victim"), path)
        return Container(self, [path, str(percent)])

    def begin(self):
        self.agent = Agent(self, "first")
        self.early = self.victim(40)
        self.watch_log = os.path.join(self.work, "watch")
        self.control = self.cgroups.start("agent", [sys.executable, __file__, "--serve"], stdout=subprocess.PIPE)
        port = self.control.stdout.readline().decode().strip()
        self.watcher = subprocess.Popen([sys.executable, __file__, "--watch", self.agent.address,
                                         str(self.agent.working_pid), port, self.early.stat, self.watch_log])
        # the CPU time of each judged window is known from its begin on
        until(lambda: os.path.exists(self.watch_log) and Watched(self.watch_log).times, "the watcher does not begin")
        since = Watched(self.watch_log).times[0]
        until(lambda: any(w[0] >= since for w in profiles_of(self.store, self.early)),
              "no profile of the early victim")

    def await_windows(self):
        """Until all samples so far are in profiles: a sample whose process has ended needs the events of its time."""
        def n():
            return len(glob.glob(f"{self.store}/*{self.early.id[:12]}*/*_cpu.pb.gz"))
        least = n() + 2  # the first may be of a window that has ended
        until(lambda: n() >= least, "no further windows")

    def attack(self, attack):
        if attack.storm:
            self.await_windows()
        before, begin = self.agent.metrics(), time.time()
        attackers = [Container(self, command) for command in attack.commands(self)]
        if attack.check is not check_flood:
            until(lambda: all(a.is_ready() for a in attackers), f"{attack.name}: not ready")
        ready = time.time()
        late = self.victim(100)
        until(lambda: late.usage_s() >= self.cpu_s and time.time() >= ready + self.least_s, "the late victim does not run")
        if attack.check is check_flood:
            until(lambda: attackers[0].process.poll() is not None, "the flood does not end")
        end = time.time()
        after = self.agent.metrics()
        if attack.check:
            attack.check(self, before, after, attackers)
        late.end()
        ended_s = self.leave(attack, attackers)
        for a in attackers:
            a.end()
        if self.agent.process.poll() is not None:
            raise Failure("the agent has ended")
        self.rows.append((attack, begin, end, before, after, late, attackers, ended_s))
        kept, lost = (b - a for a, b in zip(before.samples(), after.samples()))
        print(f"           {attack.name}: {end - begin:.1f} s, {kept:.0f} samples, {lost:.0f} lost; an agent beside it "
              f"ended in {ended_s:.1f} s", flush=True)

    def leave(self, attack, attackers):
        """A new agent beside the attack, and its end while it works on the attack. Returns the time from SIGTERM on."""
        agent = Agent(self, f"leaver-{len(self.rows)}", store=self.other_store)
        is_silent = any(a.process.args[-1] in SILENT_OPERATIONS for a in attackers)
        until(agent.is_held_up if is_silent else agent.has_samples, f"{attack.name}: no work of the attack")
        seconds = self.end(agent, attack.name)
        # A process with blocked threads stays until the file systems answer.
        self.left.append(agent)
        return seconds

    def end(self, agent, beside):
        """With a full queue of pages. Returns the time from SIGTERM on."""
        ask = [threading.Thread(target=flood.ask, args=(agent.address, f"/entity/{self.flooded}/flame.json?kind=cpu"),
                                daemon=True) for _ in range(4)]
        for thread in ask:
            thread.start()
        told = subprocess.run([sys.executable, __file__, "--end", str(agent.process.pid), str(agent.working_pid)],
                              stdout=subprocess.PIPE, check=True).stdout
        if not told:
            print(kernel_stacks(agent.working_pid))
            raise Failure(f"{agent.log}: the agent does not end, even after {PATIENCE_S} s")
        begun, ended, parent_s, loop_s = json.loads(told)
        agent.process.wait()
        seconds = ended - begun
        # On a machine that gives no CPU, the server without work of its own waits, too.
        control_s = Watched(self.watch_log).control_s(begun, ended) if self.watcher else 0
        claim(seconds <= END_MAX_S + END_WAITS * control_s,
              f"{beside}: the agent ended {seconds:.1f} s after SIGTERM, where the control took {control_s:.2f} s; its "
              f"parent waited {parent_s:.1f} s for a CPU, and its loop {loop_s:.1f} s")
        claim(seconds >= ORDERLY_S or (agent.said("msg=ended") and agent.process.returncode == 0),
              f"{agent.log}: not an orderly end, status {agent.process.returncode}")
        return seconds

    def finish(self):
        """The last windows, then the end beside file systems that do not answer, and another agent."""
        self.await_windows()  # the end has no time for those that wait for names
        attackers = [Container(self, c) for c in silent(*SILENT_OPERATIONS)(self)]
        until(lambda: all(a.is_ready() for a in attackers), "stalled file systems")
        until(self.agent.has_silent_files, "no file is stalled")
        rss = [s[3] for s in Watched(self.watch_log).state]
        self.watcher.kill()
        self.watcher.wait()
        self.watcher = None
        beside = "silent file systems"
        ended_s = self.end(self.agent, beside)
        # A process with the blocked threads stays behind. Another agent starts beside it.
        second = Agent(self, "second", self.agent.address)
        late = self.victim(100)
        until(lambda: profiles_of(self.store, late), "no profile by an agent that starts beside silent file systems")
        self.end(second, beside)
        for a in attackers:
            a.end()
        for agent in (self.agent, second, *self.left):
            until(lambda a=agent: has_ended(a.working_pid), f"{agent.log}: a process stays behind")
        stacks = stacks_of(profiles_of(self.store, late))
        late.end()
        claim(stacks["named"] >= NAMED_MIN * stacks["all"], f"beside silent file systems: {dict(stacks)}")
        claim(max(rss) <= RSS_KIB, f"the agent has grown to {max(rss)} KiB")
        print(f"           ended in {ended_s:.1f} s beside silent file systems; most memory {max(rss)} KiB")

    def clean(self):
        if self.watcher:
            self.watcher.kill()
            self.watcher.wait()
        for c in self.containers:
            with contextlib.suppress(Failure, OSError):
                c.end()
        with contextlib.suppress(Failure, OSError):
            self.cgroups.kill("agent")
        for process in (getattr(self, "agent", None),):
            if process:
                process.process.wait()
        self.cgroups.remove()


# ---------------------------------------------------------------- the judge

FAILED = []


def claim(holds, what):
    if not holds:
        FAILED.append(what)
        print(f"           FAILED: {what}")


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole else "-"


class Row:
    def __init__(self, node, watched, early, row):
        attack, begin, end, before, after, late, attackers, self.ended_s = row
        self.name, self.storm = attack.name, attack.storm
        windows = [w for w in early if begin <= (w[0] + w[1]) / 2 <= end and
                   watched.times[0] <= w[0] and w[1] <= watched.times[-1]]
        self.early = stacks_of(windows)
        self.early_s = watched.early_s(windows[-1][1]) - watched.early_s(windows[0][0]) if windows else 0
        # with the time whose samples the drains into the first window can have
        late_s = DRAIN_S + max((s for _, _, s, _ in watched.answers(begin - PATIENCE_S, end)), default=0)
        self.early_most_s = (watched.early_s(windows[-1][1]) - watched.early_s(windows[0][0] - late_s)
                             if windows else 0)
        self.late = stacks_of(profiles_of(node.store, late))
        self.late_s = late.usage_s()
        self.own_s = sum(a.usage_s() for a in attackers)
        own = [profiles_of(node.store, a) for a in attackers]
        self.own_missing = [a.process.args[4:] for a, windows in zip(attackers, own) if not windows]
        self.own = stacks_of(sum(own, []))
        (all0, lost0), (all1, lost1) = before.samples(), after.samples()
        self.lost, self.samples = lost1 - lost0, all1 - all0
        self.grown = after.grown(before)
        self.events_lost = after.events_lost() - before.events_lost()
        answers = watched.answers(begin, end)
        self.answers = len(answers)
        self.unhealthy = sum(status != 200 for _, status, _, _ in answers)
        self.longest_s = max((s for _, _, s, _ in answers), default=0)
        self.own_longest_s = max((s - waited for _, _, s, waited in answers), default=0)
        self.control_s = watched.control_s(begin, end)
        self.callbacks = after.longer(before, "cpu")
        self.longest_calls = after.longer(before, "wall")
        states = watched.between(begin, end)
        self.cpu = (states[-1][2] - states[0][2]) / ((states[-1][0] - states[0][0]) or 1)
        self.grown_kib = max(s[3] for s in states) - states[0][3]

    COLUMNS = ("attack", "own samples %", "own whole %", "own named %", "early samples %", "early whole %",
               "early named %", "late samples %", "late whole %", "late named %", "lost %", "events lost",
               "/-/healthy ms", "own ms", "control ms", "end s", "agent CPU %", "grown MiB")

    def __str__(self):
        cells = [self.name]
        for stacks, seconds in ((self.own, self.own_s), (self.early, self.early_s), (self.late, self.late_s)):
            cells += [percent(stacks["all"], RATE * seconds), percent(stacks["whole"], stacks["all"]),
                      percent(stacks["named"], stacks["all"])]
        cells += [percent(self.lost, self.samples), f"{self.events_lost:.0f}", f"{1000 * self.longest_s:.0f}",
                  f"{1000 * self.own_longest_s:.0f}", f"{1000 * self.control_s:.0f}", f"{self.ended_s:.1f}",
                  f"{100 * self.cpu:.1f}", f"{self.grown_kib / 1024:.0f}"]
        return "| " + " | ".join(cells) + " |"

    def check(self):
        before = len(FAILED)
        self.judge()
        if len(FAILED) > before:
            print("".join(f"             {k} +{v}\n" for k, v in self.grown.items()), end="")
            print("".join(f"             {1000 * s:.0f} ms by the clock: {name}\n"
                          for name, s in sorted(self.longest_calls.items(), key=lambda c: -c[1])[:5]), end="")

    def judge(self):
        late = RATE * self.late_s
        early_most = RATE * self.early_most_s
        for who, stacks, seconds, least, most in (
                ("early", self.early, self.early_s, SHARE_MIN * RATE * self.early_s, early_most),
                ("late", self.late, self.late_s, late - SIGMAS * late ** 0.5 - self.lost, late)):
            said = (f"{self.name}: the {who} victim: {dict(stacks)} in {seconds:.2f} s of CPU time, at most "
                    f"{most / RATE:.2f}")
            # no sample is counted twice
            claim(stacks["all"] <= most + SIGMAS * max(1, most) ** 0.5, said)
            claim(stacks["all"] >= max(1, least) and
                  (self.storm or (stacks["whole"] >= WHOLE_MIN * stacks["all"] and
                                  stacks["named"] >= NAMED_MIN * stacks["all"])), said)
        claim(not self.own_missing, f"{self.name}: no profile of {self.own_missing}")
        claim(self.lost <= (LOST_STORM_MAX if self.storm else LOST_MAX) * self.samples, f"{self.name}: lost {self.lost} of {self.samples} samples")
        claim(self.answers and not self.unhealthy, f"{self.name}: {self.unhealthy} of {self.answers} health checks failed")
        machine = f"where the control took {self.control_s:.2f} s"
        claim(self.longest_s <= ANSWER_MAX_S + self.control_s, f"{self.name}: a health check took {self.longest_s:.1f} s, {machine}")
        claim(self.own_longest_s <= OWN_ANSWER_MAX_S + self.control_s,
              f"{self.name}: a health check took {self.own_longest_s:.2f} s without the wait for a CPU, {machine}")
        for name, s in self.callbacks.items():
            claim(s <= CALLBACK_MAX_S, f"{self.name}: a call of {name} took {1000 * s:.0f} ms of the loop's CPU time")


LEGEND = """
own, early, late: the attackers' containers, the victim that ran before, the victim that started during the
attack. samples: share of the samples that the CPU time of the cgroup (cpu.stat) makes at the sampling rate;
whole: up to the first function; named: each frame has a name. lost: of all samples of the node. events lost:
process events. /-/healthy: the longest answer, asked every 50 ms; own: the longest one without the time that
the agent's loop was ready to run and had no CPU; control: the longest answer of a server that does nothing else, in
the agent's cgroup. end: from SIGTERM to the end of an agent that has begun work on the attack. agent CPU: of one
CPU. grown: memory."""


def check_all_windows(node, watched, windows):
    """The early victim from the first attack to the last: a row has few samples, and those of the drain before it."""
    windows = [w for w in windows if watched.times[0] <= w[0] and w[1] <= watched.times[-1]]
    stacks = stacks_of(windows)
    wanted = RATE * (watched.early_s(windows[-1][1]) - watched.early_s(windows[0][0]))
    lost = node.rows[-1][4].samples()[1]
    print(f"the early victim in {len(windows)} windows: {stacks['all']} samples, {percent(stacks['all'], wanted)} % of "
          f"those expected, one standard deviation is {percent(1, wanted ** 0.5)} %; {lost:.0f} of the node's are lost")
    claim(stacks["all"] >= ALL_MIN * wanted - SIGMAS * wanted ** 0.5 - lost, "the early victim misses samples in all")


def report(node, watched):
    early = profiles_of(node.store, node.early)
    rows = [Row(node, watched, early, row) for row in node.rows]
    print("| " + " | ".join(Row.COLUMNS) + " |\n" + "|---" * len(Row.COLUMNS) + "|")
    for row in rows:
        print(row)
    print(LEGEND)
    for row in rows:
        row.check()
    if rows:
        check_all_windows(node, watched, early)
    seconds = node.rows[-1][4].sum("podprof_unwind_compile_seconds_total") if node.rows else 0
    print(f"{CPUS} CPUs, {os.uname().release}, load {os.getloadavg()[0]:.1f}, windows of {node.window_s} s; "
          f"{seconds:.1f} s for unwind tables")


def main():
    if sys.argv[1:2] == ["--watch"]:
        watch(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5], sys.argv[6])
        return 0
    if sys.argv[1:2] == ["--end"]:
        end(int(sys.argv[2]), int(sys.argv[3]))
        return 0
    if sys.argv[1:2] == ["--serve"]:
        serve()
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="each attack alone, with time for exact figures")
    parser.add_argument("--list", action="store_true", help="the names of the attacks")
    parser.add_argument("--port", type=int, default=0, help="the agent's port (any)")
    parser.add_argument("--keep", action="store_true", help="keep the profiles and logs")
    parser.add_argument("names", nargs="*", help="a part of an attack's name")
    options = parser.parse_args()
    attacks = ATTACKS if options.long else list(grouped(ATTACKS))
    attacks = [a for a in attacks if not options.names or any(n in a.name for n in options.names)]
    if options.list:
        print("\n".join(a.name for a in attacks))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    work = tempfile.mkdtemp(prefix="podprof-hostile-")
    node = Node(work, options)
    try:
        node.begin()
        for a in attacks:
            node.attack(a)
        watched_rows = Watched(node.watch_log)
        try:
            node.finish()
        finally:
            report(node, watched_rows)
    except Failure as e:
        claim(False, str(e))
    finally:
        if FAILED:
            for log in glob.glob(f"{work}/*.log"):
                with open(log, errors="replace") as f:
                    print(f"--- {os.path.basename(log)}\n" + "".join(line[:300] for line in f.readlines()[-20:]))
        node.clean()
        if options.keep:
            print(work)
        else:
            shutil.rmtree(work, ignore_errors=True)
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
