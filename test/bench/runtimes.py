#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Stacks and costs of profilers beside servers of language runtimes, by turns:

  python      Django in gunicorn, two processes of four threads
  java        Spring Boot (Tomcat)
  java-fp     the same with -XX:+PreserveFramePointer
  node        Fastify

--peer 'NAME=COMMAND' adds another profiler that sends OTLP profiles; {endpoint} in its command is the
collector's gRPC address, {rate} the sampling rate. Both profilers send to the same collector, and one
set of rules reads both:

  complete    the outermost frame is the start of the program or of a thread (ELF entry point, or code
              whose unwind table has no return address), and no frame is an error
  functions   functions of the language in a stack, with inlined ones
  named       frames with names: of the language, and native ones
  whole       complete stacks whose functions of the language all have names; and whose native ones have, too
  language    samples with functions of the language; other threads of a runtime (compilers, garbage
              collection) have none
  innermost   of these samples, those whose innermost function of the language has a name

--together N measures N servers at once instead, of the kinds of --only by turns, each with a client that
waits --pause ms after each answer. --load N adds N programs that want the CPUs.

Root. Needs pip, npm, mvn and wrk. The servers' libraries are downloaded once.
"""
import contextlib
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import beside_peers  # noqa: E402
import collected  # noqa: E402
import workloads  # noqa: E402

SOURCES = os.path.join(workloads.HERE, "servers")
PYTHON_PACKAGES = ["django==5.2.19", "gunicorn==23.0.0"]


# ---------------------------------------------------------------- the servers


def prepare(python):
    """A folder with the servers and their libraries, kept between runs."""
    key = hashlib.sha256(" ".join([python, *PYTHON_PACKAGES]).encode())
    for folder, _, names in sorted(os.walk(SOURCES)):
        for name in sorted(names):
            with open(os.path.join(folder, name), "rb") as f:
                key.update(f.read())
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    to = f"{cache}/podprof-tools/servers-{key.hexdigest()[:16]}"
    if not os.path.exists(to):
        shutil.rmtree(f"{to}.new", ignore_errors=True)
        shutil.copytree(SOURCES, f"{to}.new")
        workloads.run(python, "-m", "pip", "install", "--quiet", "--root-user-action=ignore", "--target",
                      f"{to}.new/python", *PYTHON_PACKAGES)
        workloads.run("npm", "install", "--silent", "--no-fund", "--no-audit", cwd=f"{to}.new")
        workloads.run("mvn", "--quiet", "--batch-mode", "package", cwd=f"{to}.new", stdout=subprocess.DEVNULL)
        os.rename(f"{to}.new", to)
    return to


class Server:
    """A server and a client that asks it all the time. The program's link gives it a name of its own."""

    def __init__(self, name, program, arguments, environment=None):
        self.name, self.comm = name, "pw-" + name
        self.program, self.arguments = program, arguments
        self.environment = environment or {}
        self.client_arguments = ["-c8"]
        self.process = self.client = None

    def start(self, to):
        port = str(workloads.free_port())
        link = f"{to}/{self.comm}"
        os.symlink(os.path.realpath(self.program), link)
        values = {"port": port, "dir": to}
        with open(f"{to}/log", "w") as log:
            self.process = subprocess.Popen(
                [link, *(a.format(**values) for a in self.arguments)], stdout=log, stderr=log, cwd=to,
                env=os.environ | {k: v.format(**values) for k, v in self.environment.items()})
        url = f"http://127.0.0.1:{port}/"
        for _ in range(600):
            with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:
                answer.read()
                break
            time.sleep(.2)
        self.client = subprocess.Popen(["wrk", "-t1", *self.client_arguments, "-d24h", url], stdout=subprocess.DEVNULL)

    def pids(self):
        return workloads.family(self.process.pid)

    def is_service(self, name):
        return name == self.comm

    def cpu_s(self):
        return sum(workloads.cpu_s(pid) for pid in self.pids())

    def files(self):
        """Executable mapped files, by their last names; the program itself first."""
        paths = [os.path.realpath(self.program)]
        for pid in self.pids():
            paths += workloads.mapped_programs(pid)
        return {os.path.basename(p): p for p in paths}

    def stop(self):
        for process in (self.client, self.process):
            if process:
                process.terminate()
        for process in (self.client, self.process):
            if process:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(30)
                process.kill()
                process.wait()


class Servers:
    """Several servers as one."""

    def __init__(self, name, parts):
        self.name, self.parts = name, parts

    def start(self, to):
        for i, part in enumerate(self.parts):
            os.makedirs(f"{to}/{i}")
            part.start(f"{to}/{i}")

    def pids(self):
        return [pid for part in self.parts for pid in part.pids()]

    def is_service(self, name):
        return any(part.is_service(name) for part in self.parts)

    def cpu_s(self):
        return sum(part.cpu_s() for part in self.parts)

    def files(self):
        return {name: path for part in self.parts for name, path in part.files().items()}

    def stop(self):
        for part in self.parts:
            part.stop()


def servers(options, at):
    java = ["-Xmx512m", "-jar", f"{at}/target/server-1.jar", "--server.port={port}",
            "--server.address=127.0.0.1", "--logging.level.root=warn"]
    return {
        "python": Server("python", options.python, [
            "-m", "gunicorn", "--workers", "2", "--threads", "4", "--bind", "127.0.0.1:{port}", "shop:application"],
            {"PYTHONPATH": f"{at}/python:{at}", "SHOP_DIR": "{dir}"}),
        "java": Server("java", options.java, java),
        "java-fp": Server("java-fp", options.java, ["-XX:+PreserveFramePointer", *java]),
        "node": Server("node", options.node, [f"{at}/server.js", "{port}"]),
    }


# ---------------------------------------------------------------- what was delivered


def starts_of_files(server):
    return {name: collected.starts_of(path) for name, path in server.files().items()
            if os.path.isfile(path) and open(path, "rb").read(4) == b"\x7fELF"}


class Counts:
    def __init__(self):
        self.all = self.samples = self.complete = self.functions = self.with_language = self.innermost = 0
        self.frames = 0  # inlined functions of the language count, native ones do not
        self.whole = self.whole_native = 0
        self.language = self.language_named = self.native = self.native_named = 0
        self.times = set()

    def add(self, stack, n, starts):
        language = [f for f in stack if f.is_language()]
        native = [f for f in stack if f.kind not in collected.LANGUAGES and f.kind != "kernel"]
        complete = collected.is_complete(stack, starts)
        whole = complete and all(f.is_named() for f in language)
        self.samples += n
        self.complete += n * complete
        self.whole += n * whole
        self.whole_native += n * (whole and all(f.is_named() for f in native))
        self.functions += n * sum(len(f.names) or 1 for f in language)
        self.frames += n * sum((len(f.names) or 1) if f.is_language() else 1 for f in stack)
        self.with_language += n * bool(language)
        self.innermost += n * (bool(language) and language[0].is_named())
        self.language += n * len(language)
        self.language_named += n * sum(f.is_named() for f in language)
        self.native += n * len(native)
        self.native_named += n * sum(f.is_named() for f in native)

    def seconds(self):
        return sum(duration for _, duration in self.times) / 1e9


def together(options, at, to):
    """--together's servers, with one slow client each."""
    script = f"{to}/slow.lua"
    with open(script, "w") as f:
        f.write(f"function delay() return {options.pause} end\n")
    parts = []
    for kind in itertools.islice(itertools.cycle(options.only.split(",")), options.together):
        parts.append(servers(options, at)[kind])
        parts[-1].client_arguments = ["-c1", "-s", script]
    return Servers(f"{options.together} servers", parts)


def is_server(resource, server, pids):
    pid = resource.get("process.pid")
    return int(pid) in pids if pid is not None else server.is_service(resource.get("service.name"))


def count(path, server, pids, begin_ns, end_ns, counts, starts):
    """Profiles that lie in that time."""
    for profile in collected.profiles(path):
        if profile.time_ns < begin_ns or profile.time_ns + profile.duration_ns > end_ns:
            continue
        wanted = is_server(profile.resource, server, pids)
        counts.times.add((profile.time_ns, profile.duration_ns))
        for n, sample in profile.counts():
            counts.all += n
            if wanted:
                counts.add(profile.stack(sample), n, starts)


# ---------------------------------------------------------------- a measurement


class Costs:
    def __init__(self, pid):
        self.at_s = time.monotonic()
        self.cpu_s = workloads.family_cpu_s(pid)
        self.bpf_ns, _ = workloads.bpf_of(pid)


class Turns:
    """All turns of a profiler beside one server."""

    def __init__(self):
        self.counts = Counts()
        self.seconds = self.cpu_s = self.bpf_ns = self.server_s = self.pss_kib = 0

    def row(self, server, name, rate):
        c = self.counts

        def share(part, of):
            return f"{100 * part / of:.1f}" if of else "-"

        span = c.seconds()
        delivered = share(c.samples / span, rate * self.server_s / self.seconds) if span else "-"
        return {
            "server": server, "profiler": name, "samples": c.samples, "delivered %": delivered,
            "complete %": share(c.complete, c.samples),
            "whole %": share(c.whole, c.samples),
            "whole, native named %": share(c.whole_native, c.samples),
            "functions": f"{c.functions / c.samples:.1f}" if c.samples else "-",
            "named %": share(c.language_named, c.language),
            "native named %": share(c.native_named, c.native),
            "language %": share(c.with_language, c.samples),
            "innermost %": share(c.innermost, c.with_language),
            "CPU %": f"{100 * self.cpu_s / self.seconds / workloads.CPUS:.2f}",
            "BPF us": f"{self.bpf_ns / self.seconds / 1e3 / (c.all / span):.1f}" if c.all and span else "-",
            "PSS MiB": f"{self.pss_kib / 1024:.0f}"}


def turn(server, command, to, options, turns, starts):
    os.makedirs(to)
    collector = collected.Collector(to)
    command = [w.format(rate=options.rate, endpoint=collector.grpc, http=collector.http) for w in command]
    profiler = workloads.start_profiler(command, to, options.rate)
    try:
        workloads.wait_until_sampling(profiler)
        time.sleep(options.warm_up)
        begin_ns, before, server_s = time.time_ns(), Costs(profiler.pid), server.cpu_s()
        turns.pss_kib = max(turns.pss_kib, workloads.watch(profiler.pid, options.seconds))
        end_ns, after = time.time_ns(), Costs(profiler.pid)
        turns.seconds += after.at_s - before.at_s
        turns.cpu_s += after.cpu_s - before.cpu_s
        turns.bpf_ns += after.bpf_ns - before.bpf_ns
        turns.server_s += server.cpu_s() - server_s
        pids = set(server.pids())
        time.sleep(options.window + 1)  # the last report
    finally:
        workloads.stop_profiler(profiler)
        collector.stop()
    count(collector.path, server, pids, begin_ns, end_ns, turns.counts, starts)


@contextlib.contextmanager
def load(programs):
    """That many programs that compute all the time."""
    burners = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(programs)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def measure(server, profilers, to, options):
    found = {name: Turns() for name in profilers}
    os.makedirs(to)
    try:
        server.start(to)
        time.sleep(options.server_warm_up)
        starts = starts_of_files(server)
        with load(options.load):
            for i in range(options.rounds):
                for name, command in profilers.items():
                    turn(server, command, f"{to}/{name}-{i}", options, found[name], starts)
    finally:
        server.stop()
    return [turns.row(server.name, name, options.rate) for name, turns in found.items()]


def chosen(options, stack):
    """The servers of --only, one after the other, or those of --together."""
    at = prepare(options.python)
    if options.together:
        return [together(options, at, stack.enter_context(tempfile.TemporaryDirectory()))]
    return [servers(options, at)[name] for name in options.only.split(",")]


def main():
    parser = beside_peers.Parser(__doc__, 40, 2)
    parser.option("warm-up", 15, "from a profiler's first samples")
    parser.option("server-warm-up", 20, "from a server's first answer")
    parser.option("rate", 97)
    parser.option("only", "python,java,java-fp,node", "servers")
    parser.option("together", 0, "servers at once; 0: one after the other")
    parser.option("pause", 20, "milliseconds of a client of --together")
    parser.option("load", 0, "programs that want the CPUs, beside the servers")
    options = parser.parsed()
    profilers = beside_peers.profilers(options)
    with contextlib.ExitStack() as stack:
        made = chosen(options, stack)
        beside_peers.run(options, options.rate, lambda to: (
            row for server in made for row in measure(server, profilers, f"{to}/{server.name}", options)))


if __name__ == "__main__":
    main()
