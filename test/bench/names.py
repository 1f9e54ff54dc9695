#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Frames without a name in profiles of usual programs, by `podprof record`:

  shares of the samples whose function, or any frame, has no name (IMAGE+0xSTART), with the reason;
  shares of all frames without a name, with a line, and in inlined functions.

Of the kernel under network load only the kernel's frames count. PostgreSQL needs Debian's package
postgresql, Rust a rustc; musl comes out of Debian's package. A small program is profiled without its debug file, with
this file in /usr/lib/debug/.build-id, and with a debuginfod server on loopback. --postgres FOLDER does the same with a
PostgreSQL of the user, installed to FOLDER with its debug information (configure --prefix=FOLDER CFLAGS='-g -O2').
--before PROGRAM profiles each program with another podprof as well, by turns, without --debuginfod.

At the end: what `go tool pprof -list` shows of the C++ program. Root; two minutes.
"""
import collections
import contextlib
import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import overhead
import benchoptions
import workloads

SOURCES = os.path.join(workloads.HERE, "workloads")
PODPROF = os.path.abspath(workloads.PODPROF)
TOOL = os.path.join(workloads.HERE, "../tool.sh")
DEBUG_FOLDER = "/usr/lib/debug/.build-id"
SERVER_SECONDS = 60
KERNEL = "[kernel.kallsyms]"
LOCATION = re.compile(r" *(\d+): 0x[0-9a-f]+ (?:M=(\d+) )?(.*)")
PLACE = re.compile(r"(.*) \S*:(\d+):\d+ s=\d+")
SAMPLE = re.compile(r" +(\d+) +\d+: ([\d ]+)$")
UNNAMED = re.compile(r".*\+0x[0-9a-f]+$")

# A client and a server of TCP over loopback, for ever.
NETWORK = """
import os, socket
listener = socket.create_server(("127.0.0.1", 0))
if os.fork() == 0:
    with socket.create_connection(listener.getsockname()) as client:
        while True:
            client.sendall(bytes(4096))
server, _ = listener.accept()
while server.recv(4096):
    pass
"""


class Profile:
    """What `go tool pprof -raw` says of a profile."""

    def __init__(self, path):
        text = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True, text=True, check=True).stdout
        head, rest = text.split("Samples:\n", 1)  # the parts may be empty
        samples, rest = rest.split("Locations\n", 1)
        locations, mappings = rest.split("Mappings\n", 1)
        self.reasons = re.findall(r"^Comment: unnamed [\d.]+% (\w+)", head, re.M)
        self.samples = [(int(m[1]), [int(x) for x in m[2].split()])
                        for m in map(SAMPLE.match, samples.split("\n")) if m]
        kernel = {m[1] for m in re.finditer(r"^(\d+): \S+ (\S+)", mappings, re.M) if m[2] == KERNEL}
        self.frames, self.kernel = {}, set()
        for line in locations.split("\n"):
            found = LOCATION.fullmatch(line)
            if found:
                at = int(found[1])
                self.frames[at] = []
                if found[2] in kernel:
                    self.kernel.add(at)
            place = PLACE.match(found[3] if found else line.strip())
            self.frames[at].append((place[1], int(place[2])) if place else ("+0x0", 0))

    def shares(self, kernel_only):
        """Percentages: function, any frame; frames, with lines, inlined. And the number of samples."""
        n = collections.Counter()
        for count, stack in self.samples:
            if kernel_only:
                stack = [at for at in stack if at in self.kernel]
            if not stack:
                continue
            unnamed = [bool(UNNAMED.match(self.frames[at][0][0])) for at in stack]
            n["samples"] += count
            n["function"] += count * unnamed[0]
            n["any"] += count * any(unnamed)
            n["frames"] += count * len(stack)
            n["unnamed"] += count * sum(unnamed)
            n["lines"] += count * sum(self.frames[at][0][1] > 0 for at in stack)
            n["inlined"] += count * sum(len(self.frames[at]) > 1 for at in stack)
        whole = {"function": "samples", "any": "samples", "unnamed": "frames", "lines": "frames", "inlined": "frames"}
        return n["samples"], {name: 100 * n[name] / max(n[of], 1) for name, of in whole.items()}


class Names:
    def __init__(self, to, seconds, before):
        self.to, self.seconds, self.before = to, seconds, before
        columns = ["program", "samples", "function, %", "any frame, %", "reason", "frames, %", "with lines, %", "inlined, %"]
        if before:
            columns += ["before: samples", "function, %", "any frame, %", "frames, %"]
        self.line(columns)
        print("|" + "---|" * len(columns))

    @staticmethod
    def line(cells):
        print(f"| {' | '.join(cells)} |", flush=True)

    def profile(self, podprof, *arguments):
        path = f"{self.to}/profile.pb.gz"
        subprocess.run([podprof, "record", "-d", f"{self.seconds}s", "-o", path, *arguments], check=True,
                       cwd=self.to, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return path

    def row(self, name, pid, *options, kernel_only=False):
        """Returns the profile's path."""
        process = ("--pid", str(pid))
        n, shares = Profile(self.profile(self.before, *process)).shares(kernel_only) if self.before else (0, {})
        path = self.profile(PODPROF, *process, *options)
        before = [str(n)] + [f"{shares[x]:.1f}" for x in ("function", "any", "unnamed")] if self.before else []
        profile = Profile(path)
        n, shares = profile.shares(kernel_only)
        reasons = "" if kernel_only else ", ".join(f"`{r}`" for r in dict.fromkeys(profile.reasons))
        self.line([name, str(n), f"{shares['function']:.1f}", f"{shares['any']:.1f}", reasons] +
                  [f"{shares[x]:.1f}" for x in ("unnamed", "lines", "inlined")] + before)
        if not n:
            sys.exit(f"{name}: no samples")
        return path

    def command(self, name, *command):
        """A program that takes its seconds as an argument, or has no end."""
        with running(command, cwd=self.to) as pid:
            return self.row(name, pid)


@contextlib.contextmanager
def running(command, **options):
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **options) as program:
        try:
            yield program.pid
        finally:
            program.kill()


class DebugFile:
    """The debug information of a program, which loses it."""

    def __init__(self, program, folder):
        os.mkdir(folder)
        self.folder, self.path = folder, f"{folder}/{os.path.basename(program)}.debug"
        workloads.run("objcopy", "--only-keep-debug", program, self.path)
        workloads.run("strip", program)
        notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
        self.build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]

    @contextlib.contextmanager
    def installed(self):
        """Where Debian's packages of debug symbols have it."""
        folder = f"{DEBUG_FOLDER}/{self.build_id[:2]}"
        path = f"{folder}/{self.build_id[2:]}.debug"
        os.makedirs(folder, exist_ok=True)
        try:
            shutil.copyfile(self.path, path)
            yield
        finally:
            os.unlink(path)
            with contextlib.suppress(OSError):  # other files
                os.rmdir(folder)

    @contextlib.contextmanager
    def served(self):
        """The URL of a server that has it."""
        server = subprocess.run([TOOL, "debuginfod"], capture_output=True, text=True, check=True).stdout.strip()
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        environment = {**os.environ, "HOME": self.folder, "DEBUGINFOD_URLS": ""}
        with running([server, "-p", str(port), "-d", ":memory:", "-t", "1", "-F", self.folder], cwd=self.folder,
                     stderr=subprocess.DEVNULL, env=environment):
            until = time.monotonic() + SERVER_SECONDS
            while not self.is_served(url):
                if time.monotonic() > until:
                    sys.exit("debuginfod does not serve the debug file")
                time.sleep(0.2)
            yield url

    def is_served(self, url):
        try:
            with urllib.request.urlopen(f"{url}/buildid/{self.build_id}/debuginfo") as answer:
                return answer.status == 200
        except urllib.error.URLError:  # not yet
            return False


def measure_debug_file(names, name, debug, pid):
    """A running program, without its debug file and with it."""
    names.row(f"{name}, no debug file", pid)
    with debug.installed():
        names.row(f"{name}, debug file in `{DEBUG_FOLDER}`", pid)
    with debug.served() as url:
        names.row(f"{name}, `--debuginfod`", pid, "--debuginfod", url, "--debuginfod-dir", f"{debug.folder}/cache")


def build_musl(to):
    """A static program with Debian's musl, stripped."""
    os.mkdir(f"{to}/package")
    os.chmod(f"{to}/package", 0o777)  # apt downloads as a user of its own
    workloads.run("apt-get", "download", "-q", "musl-dev", cwd=f"{to}/package", stdout=subprocess.DEVNULL)
    workloads.run("dpkg-deb", "-x", glob.glob(f"{to}/package/*.deb")[0], f"{to}/musl")
    lib, include = glob.glob(f"{to}/musl/usr/lib/*-linux-musl")[0], glob.glob(f"{to}/musl/usr/include/*-linux-musl")[0]
    own = subprocess.run(["gcc", "-print-libgcc-file-name"], capture_output=True, text=True, check=True).stdout.strip()
    workloads.run("gcc", "-O2", "-static", "-nostdinc", "-isystem", include, "-nostdlib", "-o", f"{to}/musl-program",
                  f"{lib}/crt1.o", f"{lib}/crti.o", f"{SOURCES}/burn_c.c", f"{lib}/libc.a", own, f"{lib}/crtn.o")
    workloads.run("strip", f"{to}/musl-program")


@contextlib.contextmanager
def busy_postgres(to, pgbench):
    """The server's pid."""
    os.mkdir(to)
    server = overhead.Postgres(to, pgbench)
    try:
        with running([pgbench, "-h", server.at, "-n", "-S", "-c", "2", "-T", "100000", "postgres"],
                     stderr=subprocess.DEVNULL, **server.ids):
            yield server.server.pid
    finally:
        server.stop()


def measure_postgres(names, own):
    program = overhead.postgres_program()
    if program:
        with busy_postgres(f"{names.to}/debian", program) as pid:
            names.row("Debian's PostgreSQL with pgbench, no debug file", pid)
    else:
        print("PostgreSQL is left out: the package postgresql is missing", file=sys.stderr)
    if own:
        copy = f"{names.to}/postgres"
        shutil.copytree(own, copy)
        debug = DebugFile(f"{copy}/bin/postgres", f"{names.to}/postgres-debug")
        with busy_postgres(f"{names.to}/own", f"{copy}/bin/pgbench") as pid:
            measure_debug_file(names, "PostgreSQL from source with pgbench", debug, pid)


def measure(names, own_postgres):
    to = names.to
    long = str(names.seconds + 600)
    workloads.run("g++", "-O2", "-g", "-o", f"{to}/templates", f"{SOURCES}/templates.cc")
    cpp = names.command("C++ with many templates, `-g`", f"{to}/templates", long)
    listing = subprocess.run(["go", "tool", "pprof", "-list", "shop::Index.*add", cpp], capture_output=True, text=True, check=True).stdout
    if shutil.which("rustc"):
        # as cargo does: without debug information it also removes the standard library's
        for name, flags in (("release with `debug = 1`", ("debuginfo=1",)),
                            ("release without debug information", ("debuginfo=0", "-C", "strip=debuginfo"))):
            workloads.run("rustc", "-C", "opt-level=3", "-C", *flags, "-o", f"{to}/collections",
                          f"{SOURCES}/collections.rs")
            names.command(f"Rust, {name}", f"{to}/collections", long)
    else:
        print("Rust is left out: no rustc", file=sys.stderr)
    workloads.run("go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", f"{to}/go-service", ".", cwd=f"{SOURCES}/go")
    names.command("Go service, `-s -w`", f"{to}/go-service", "1")
    build_musl(to)
    names.command("static musl program, stripped", f"{to}/musl-program", "1")
    workloads.run("gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-pthread", "-o", f"{to}/small", f"{SOURCES}/burn_c.c")
    debug = DebugFile(f"{to}/small", f"{to}/small-debug")
    with running([f"{to}/small", "1"], cwd=to) as pid:
        measure_debug_file(names, "small C program", debug, pid)
    measure_postgres(names, own_postgres)
    with running([sys.executable, "-c", NETWORK], cwd=to, stderr=subprocess.DEVNULL) as pid:
        names.row("the kernel's own frames, TCP over loopback", pid, kernel_only=True)
    return listing


def main():
    parser = benchoptions.Parser(__doc__)
    parser.option("seconds", 5, "of each profile")
    parser.option("before", what="another podprof program")
    parser.option("postgres", what="folder of an installed PostgreSQL with debug information")
    options = parser.parsed()
    before = os.path.abspath(options.before) if options.before else None
    with tempfile.TemporaryDirectory(prefix="podprof-names-") as to:
        os.chmod(to, 0o711)
        listing = measure(Names(to, options.seconds, before), options.postgres)
    lines = [line for line in listing.split("\n") if re.search(r"push_back|make_shared", line)]
    print("\ngo tool pprof -list:\n" + "\n".join(lines))
    if not lines:
        sys.exit("pprof shows no source lines")


if __name__ == "__main__":
    main()
