#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of many addresses by podprof, addr2line and llvm-symbolizer: cost, and how many answers are equal.

symbolizers.py [-n ADDRESSES] [--show N] [--other NAME=COMMAND] FILE...

Each program starts anew and gets the same addresses, spread over the code at random, in one order. The CPU time and the
peak of memory are of the program and its children. An answer is the chain of functions with file names and lines,
innermost first. Two answers are equal if all of it is. The directories of files, C++ parameters and return types, and the endings of
compilers' clones do not count, nor does the form of a name that nobody knows. Addresses between two functions are among
the different ones: addr2line takes them for the function before. --show prints the first N different answers. --other adds a program with the options and the output of
addr2line.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

import benchoptions

PODPROF = os.environ.get("PODPROF", "build/podprof")
# Addresses on one command line.
BATCH = 20000


def code_of(path):
    """(address, size) of .text."""
    out = subprocess.run(["readelf", "-SW", path], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == ".text":
            return int(words[3], 16), int(words[5], 16)
    sys.exit(f"{path}: no .text")


# A process has the peak of the process that it is forked from, so a small one is between.
BETWEEN = """
import os, sys
pid = os.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
_, status, used = os.wait4(pid, 0)
with open(sys.argv[1], "w") as out:
    print(status, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=out)
"""


def run(command, stdin=None):
    """(output, CPU seconds, peak MiB)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as text, tempfile.NamedTemporaryFile("r") as used:
        text.write((stdin or "").encode())
        text.seek(0)
        between = [sys.executable, "-S", "-E", "-c", BETWEEN, used.name]
        subprocess.run(between + command, stdin=text, stdout=out, stderr=subprocess.DEVNULL, check=True)
        status, cpu, peak = used.read().split()
        if status != "0":
            sys.exit(f"{command[0]}: exit status {status}")
        out.seek(0)
        return out.read().decode(errors="replace"), float(cpu), float(peak)


def without_types(name):
    """A C++ function's name without its return type and parameters."""
    name = name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator{}")
    depth, begin = 0, 0
    for i, c in enumerate(name):
        if c in "<([{":
            if c == "(" and depth == 0:
                return name[begin:i]
            depth += 1
        elif c in ">)]}" and name[i - 1 : i] != "-":
            depth -= 1
        elif c == " " and depth == 0 and not name[begin:i].endswith("operator"):
            begin = i + 1
    return name[begin:]


def name_of(function):
    """A name as all of them write it."""
    if function == "??" or re.search(r"\+0x[0-9a-f]+$", function):
        return "?"
    function = re.sub(r"( \[clone|\(\.|\.(constprop|isra|part|cold|llvm|lto_priv)\b).*", "", function)
    return re.sub(r"\s+", "", without_types(function))


def frame(function, file, line):
    """Without a line, the file is a guess from the symbol table."""
    line = int(line or 0)
    return name_of(function), os.path.basename(file) if file and line else "", line


def by_podprof(path, addresses):
    out, cpu, rss = run([PODPROF, "inspect", "symbols", "--json", path] + [f"{a:x}" for a in addresses])
    chains = []
    for line in out.splitlines():
        chains.append([frame(f["function"], f["file"], f["line"]) for f in json.loads(line)])
    return chains, cpu, rss


def by_others(command, path, addresses):
    """The output form of addr2line -a -i -f -C, which both have."""
    out, cpu, rss = run(command + ["-a", "-i", "-f", "-C", "-e", path], "".join(f"0x{a:x}\n" for a in addresses))
    chains, lines = [], out.splitlines()
    i = 0
    while i < len(lines):
        if re.fullmatch(r"0x[0-9a-f]+", lines[i]):
            chains.append([])
            i += 1
            continue
        file, _, line = re.sub(r" \(discriminator.*", "", lines[i + 1]).rpartition(":")
        chains[-1].append(frame(lines[i], "" if file == "??" else file, line if line.isdigit() else 0))
        i += 2
    return chains, cpu, rss


def main():
    parser = benchoptions.Parser(__doc__)
    parser.add_argument("-n", type=int, default=10000)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--other", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("files", nargs="+")
    args = parser.parsed()
    if args.n > BATCH:
        sys.exit(f"-n: {BATCH} at most")
    others = [("addr2line", ["addr2line"]), ("llvm-symbolizer", ["llvm-symbolizer", "--output-style=GNU"])]
    for other in args.other:
        name, command = other.split("=", 1)
        others.append((name, command.split()))
    print("| file | addresses | program | CPU s | MiB | equal answers, % | equal functions, % |")
    print("|---|---|---|---|---|---|---|")
    for path in args.files:
        start, size = code_of(path)
        rng = random.Random(1)
        addresses = [start + rng.randrange(size) for _ in range(args.n)]
        ours, cpu, rss = by_podprof(path, addresses)
        label = f"{os.path.basename(path)}, {os.path.getsize(path) >> 20} MiB"
        print(f"| {label} | {args.n} | podprof | {cpu:.2f} | {rss:.0f} | | |")
        for name, command in others:
            if not shutil.which(command[0]):
                print(f"| {label} | {args.n} | {name} | not installed | | | |")
                continue
            chains, cpu, rss = by_others(command, path, addresses)
            equal = [a == b for a, b in zip(ours, chains)]
            functions = [[f[0] for f in a] == [f[0] for f in b] for a, b in zip(ours, chains)]
            print(f"| {label} | {args.n} | {name} | {cpu:.2f} | {rss:.0f} | {100 * sum(equal) / args.n:.2f} | "
                  f"{100 * sum(functions) / args.n:.2f} |")
            for at in [i for i, same in enumerate(equal) if not same][: args.show]:
                print(f"    {addresses[at]:x}\n        podprof {ours[at]}\n        {name} {chains[at]}")


if __name__ == "__main__":
    main()
