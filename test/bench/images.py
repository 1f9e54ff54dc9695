#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of many addresses of many files, cold: cost by kind of source.

images.py [-n ADDRESSES] [--images N] [--copies] [--kind KIND]... [--only NAME]... [--other NAME=COMMAND]... FOLDER...

Finds the programs and libraries below the folders, each of another build, and sorts them by the best source of names:
Go's table, DWARF, .symtab, .dynsym. Of each kind up to N files are taken at random, and of each file so many addresses.
With --copies, N files of each kind are taken: where there are fewer, copies with other build ids are added. A
program names all addresses of a kind in one process (addr2line in one process for each file). The CPU time is of the
program and its children, memory the peak of the largest process. Named are the addresses with a function. --only leaves out other programs.
--other adds a program that reads lines "FILE ADDRESS..." and writes in the form of addr2line -a -i -f.
"""
import collections
import os
import random
import re
import shutil
import struct
import sys
import tempfile

import benchoptions
import symbolizers

BUILD = os.environ.get("BUILD", "build")
KINDS = (("Go", ".gopclntab"), ("DWARF", ".debug_info"), (".symtab", ".symtab"), (".dynsym", ".dynsym"))
# Code below has few functions.
TEXT_MIN = 4096


def sections_of(path):
    """{name: (address, size, type, offset)} of an x86-64 or arm64 program or library; None of another file."""
    with open(path, "rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            return None
        kind, machine = struct.unpack_from("<HH", head, 16)
        (offset,) = struct.unpack_from("<Q", head, 40)
        n, names = struct.unpack_from("<HH", head, 60)
        if kind not in (2, 3) or machine not in (62, 183) or not n or names >= n:
            return None
        file.seek(offset)
        table = file.read(64 * n)
        if len(table) < 64 * n:
            return None
        file.seek(struct.unpack_from("<Q", table, 64 * names + 24)[0])
        text = file.read(struct.unpack_from("<Q", table, 64 * names + 32)[0])
        found = {}
        for i in range(n):
            name, what, _, address, offset, size = struct.unpack_from("<IIQQQQ", table, 64 * i)
            found[text[name : text.find(b"\0", name)].decode(errors="replace")] = (address, size, what, offset)
        return found


def build_of(path, sections):
    """What two copies of a file have in common."""
    note = sections.get(".note.gnu.build-id") or sections[".text"]
    with open(path, "rb") as file:
        file.seek(note[3])
        return file.read(min(note[1], 4096))


def files_below(folders):
    """{kind: [(path, address of the code, size)]}"""
    found, seen = collections.defaultdict(list), set()
    for folder in folders:
        for where, _, names in sorted(os.walk(folder)):
            for path in (os.path.join(where, name) for name in sorted(names) if " " not in where + name):
                try:
                    sections = sections_of(path) if os.path.isfile(path) and not os.path.islink(path) else None
                    text = sections.get(".text") if sections else None
                    if not text or text[1] < TEXT_MIN or text[2] != 1:
                        continue
                    build = build_of(path, sections)
                except (OSError, ValueError, OverflowError, MemoryError):  # or a damaged file
                    continue
                kind = next((kind for kind, name in KINDS if name in sections), None)
                if kind and build not in seen:
                    seen.add(build)
                    found[kind].append((path, text[0], text[1]))
    return found


def add_copies(files, n, folder, rng):
    """Makes @n files of fewer: copies, each with a build id of its own."""
    files = list(files)
    for i in range(n - len(files)):
        path, start, size = files[i]
        copy = os.path.join(folder, f"{i}-{os.path.basename(path)}")
        shutil.copyfile(path, copy)
        note = sections_of(copy).get(".note.gnu.build-id")
        if note:
            with open(copy, "r+b") as file:
                file.seek(note[3] + 16)
                file.write(rng.randbytes(note[1] - 16))
        files.append((copy, start, size))
    return files


def run(commands):
    """(output, CPU seconds, peak MiB) of [(command, input)], one after the other."""
    results = [symbolizers.run(command, text) for command, text in commands]
    return "".join(r[0] for r in results), sum(r[1] for r in results), max(r[2] for r in results)


def count(output):
    """(addresses, addresses with a function, lines of functions)"""
    n = named = functions = 0
    fresh = False
    for i, line in enumerate(output.splitlines()):
        if re.fullmatch(r"0x[0-9a-f]+", line):
            n += 1
            fresh, at = True, i
        elif (i - at) % 2 == 1:
            known = line != "??" and not re.search(r"\+0x[0-9a-f]+$", line)
            functions += known
            named += known and fresh
            fresh = False
    return n, named, functions


def measure(args, kind, files, rng):
    """Prints a row for each program."""
    addresses = {path: [f"0x{start + at:x}" for at in rng.sample(range(size), args.n)] for path, start, size in files}
    lines = "".join(f"{path} {' '.join(of)}\n" for path, of in addresses.items())
    pairs = "".join(f"{path} {a}\n" for path, of in addresses.items() for a in of)
    programs = [
        ("podprof", [([f"{BUILD}/test/bench/bench_symbolize", "--list", f"{BUILD}/podprof"], lines)]),
        ("addr2line", [(["addr2line", "-a", "-i", "-f", "-C", "-e", p], "\n".join(of)) for p, of in addresses.items()]),
        ("llvm-symbolizer", [(["llvm-symbolizer", "--output-style=GNU", "-a", "-i", "-f", "-C"], pairs)]),
    ]
    programs += [(name, [(command.split(), lines)]) for name, command in (o.split("=", 1) for o in args.other)]
    for name, commands in programs:
        if not commands or not shutil.which(commands[0][0][0]) or name not in (args.only or [name]):
            continue
        output, cpu, peak = run(commands)
        n, named, functions = count(output)
        if n != len(files) * args.n:
            print(f"{name}: {n} answers of {len(files) * args.n}", file=sys.stderr)
        n = n or 1
        print(f"| {kind} | {len(files)} | {name} | {cpu:.2f} | {peak:.0f} | {100 * named / n:.1f} | {functions / n:.2f} |", flush=True)


def main():
    parser = benchoptions.Parser(__doc__)
    parser.add_argument("-n", type=int, default=1000)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--copies", action="store_true")
    parser.add_argument("--kind", action="append", choices=[kind for kind, _ in KINDS])
    parser.add_argument("--only", action="append", metavar="NAME")
    parser.add_argument("--other", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("folders", nargs="+")
    args = parser.parsed()
    rng = random.Random(1)
    print("| source | files | program | CPU s | MiB | named, % | functions an address |")
    print("|---|---|---|---|---|---|---|")
    found = files_below(args.folders)
    with tempfile.TemporaryDirectory(prefix="podprof-images-") as folder:
        for kind, _ in KINDS:
            if found[kind] and kind in (args.kind or [kind]):
                files = rng.sample(found[kind], min(args.images, len(found[kind])))
                measure(args, kind, add_copies(files, args.images, folder, rng) if args.copies else files, rng)


if __name__ == "__main__":
    main()
