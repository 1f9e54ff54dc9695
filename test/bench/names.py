#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Frames without a name in profiles of usual programs, by `podprof record`:

  shares of the samples whose function, or any frame, has no name (IMAGE+0xSTART), with the reason;
  shares of all frames without a name, with a line, and in inlined functions.

Of the kernel under network load only the kernel's frames count. PostgreSQL needs Debian's package
postgresql, Rust a rustc; musl comes out of Debian's package. At the end: what `go tool pprof -list`
shows of the C++ program. Root; two minutes.
"""
import collections
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

import overhead
import benchoptions
import workloads

SOURCES = os.path.join(workloads.HERE, "workloads")
PODPROF = os.path.abspath(workloads.PODPROF)
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
        head, rest = text.split("\nSamples:\n", 1)
        samples, rest = rest.split("\nLocations\n", 1)
        locations, mappings = rest.split("\nMappings\n", 1)
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
    def __init__(self, to, seconds):
        self.to, self.seconds = to, seconds
        print("| program | samples | function, % | any frame, % | reason | frames, % | with lines, % | inlined, % |\n"
              "|---|---|---|---|---|---|---|---|")

    def profile(self, *arguments):
        path = f"{self.to}/profile.pb.gz"
        subprocess.run([PODPROF, "record", "-d", f"{self.seconds}s", "-o", path, *arguments], check=True,
                       cwd=self.to, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return path

    def row(self, name, path, kernel_only=False):
        profile = Profile(path)
        n, shares = profile.shares(kernel_only)
        reasons = "" if kernel_only else ", ".join(f"`{r}`" for r in dict.fromkeys(profile.reasons))
        print(f"| {name} | {n} | {shares['function']:.1f} | {shares['any']:.1f} | {reasons} | {shares['unnamed']:.1f} | "
              f"{shares['lines']:.1f} | {shares['inlined']:.1f} |", flush=True)
        if not n:
            sys.exit(f"{name}: no samples")

    def command(self, name, *command):
        """A program that takes its seconds as an argument, or has no end."""
        with subprocess.Popen(command, cwd=self.to, stdout=subprocess.DEVNULL) as program:
            try:
                path = self.profile("--pid", str(program.pid))
            finally:
                program.kill()
        self.row(name, path)
        return path


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


def measure_postgres(names):
    program = overhead.postgres_program()
    if not program:
        print("PostgreSQL is left out: the package postgresql is missing", file=sys.stderr)
        return
    server = overhead.Postgres(names.to, program)
    try:
        bench = subprocess.Popen([program, "-h", server.at, "-n", "-S", "-c", "2", "-T", str(names.seconds + 600),
                                  "postgres"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **server.ids)
        try:
            names.row("Debian's PostgreSQL with pgbench, no debug file", names.profile("--pid", str(server.server.pid)))
        finally:
            bench.kill()
            bench.wait()
    finally:
        server.stop()


def measure(names):
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
    measure_postgres(names)
    with subprocess.Popen([sys.executable, "-c", NETWORK], stderr=subprocess.DEVNULL) as program:
        try:
            path = names.profile("--pid", str(program.pid))
        finally:
            program.kill()
    names.row("the kernel's own frames, TCP over loopback", path, kernel_only=True)
    return listing


def main():
    parser = benchoptions.Parser(__doc__)
    parser.option("seconds", 5, "of each profile")
    options = parser.parsed()
    with tempfile.TemporaryDirectory(prefix="podprof-names-") as to:
        os.chmod(to, 0o711)
        listing = measure(Names(to, options.seconds))
    lines = [line for line in listing.split("\n") if re.search(r"push_back|make_shared", line)]
    print("\ngo tool pprof -list:\n" + "\n".join(lines))
    if not lines:
        sys.exit("pprof shows no source lines")


if __name__ == "__main__":
    main()
