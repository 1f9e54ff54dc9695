#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions, files and lines of podprof at many addresses of real files, compared with addr2line, llvm-symbolizer and
eu-addr2line.

symbols.py [-n ADDRESSES] [--files N] [--goal PERCENT] [--show N] FOLDER...

Of each kind of source but Go's (make check-go) N files of the folders are taken at random, and of each file so many
addresses. An answer is the chain of functions with file names and lines, innermost first, in the form of
test/bench/symbolizers.py. The other programs often differ from each other. The rules, the first one that fits:

  all        the others that are installed have podprof's answer
  one        at least one of the others has podprof's answer
  alias      the same but for the name of a function; both names are symbols at the same address
  between    podprof has no name, and no function of the symbol tables holds the address
  start      llvm-symbolizer has no name either
  unlike     none of these

Fails if less than PERCENT of a kind's addresses fit a rule.
"""
import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "test", "bench"))
import images  # noqa: E402
import symbolizers  # noqa: E402

EU = os.environ.get("EU_ADDR2LINE", "eu-addr2line")
RULES = ("all", "one", "alias", "between", "start", "unlike")
OTHERS = (
    ("addr2line", ["addr2line"]),
    ("llvm-symbolizer", ["llvm-symbolizer", "--output-style=GNU"]),
    ("eu-addr2line", [EU]),
)


def by_eu(path, addresses):
    """NAME or "NAME inlined at PLACE in NAME", then FILE:LINE:COLUMN."""
    command = [EU, "-a", "-i", "-f", "-C", "-e", path]
    text = "".join(f"0x{a:x}\n" for a in addresses)
    out = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", check=False).stdout
    chains, lines, i = [], out.splitlines(), 0
    while i < len(lines):
        if re.fullmatch(r"0x[0-9a-f]+", lines[i]):
            chains.append([])
            i += 1
            continue
        place = re.fullmatch(r"(.*?):(\d+)(?::\d+)?", lines[i + 1]) if i + 1 < len(lines) else None
        name = re.sub(r" inlined at .*", "", lines[i])
        file, line = place.groups() if place else ("", 0)
        chains[-1].append(symbolizers.frame(name, "" if file == "??" else file, line))
        i += 2
    return chains


def symbols_of(path):
    """({name: addresses}, [(address, end)] sorted) of the functions of both tables."""
    names, ranges = collections.defaultdict(set), []
    for table in ([], ["-D"]):
        out = subprocess.run(["nm", "-S", "-C", *table, path], capture_output=True, text=True, check=False).stdout
        for line in out.splitlines():
            found = re.match(r"([0-9a-f]+) (?:([0-9a-f]+) )?([tTwWiuV]) (.*)", line)
            if not found:
                continue
            address, size = int(found[1], 16), int(found[2] or "0", 16)
            names[symbolizers.name_of(found[4].split("@")[0])].add(address)
            ranges.append((address, address + size))
    return names, sorted(ranges)


def is_held(ranges, address):
    return any(start <= address < end for start, end in ranges)


def is_alias(names, ours, theirs):
    if len(ours) != len(theirs) or [f[1:] for f in ours] != [f[1:] for f in theirs]:
        return False
    return all(a[0] == b[0] or names.get(a[0], set()) & names.get(b[0], set()) for a, b in zip(ours, theirs))


def rule_of(address, ours, others, names, ranges):
    equal = [ours == chain for chain in others.values()]
    if all(equal):
        return "all"
    if any(equal):
        return "one"
    if any(is_alias(names, ours, chain) for chain in others.values()):
        return "alias"
    if ours[0][0] == "?" and not is_held(ranges, address):
        return "between"
    if ours[0][0] == "?" and others.get("llvm-symbolizer", [("", "", 0)])[0][0] == "?":
        return "start"
    return "unlike"


def compare(path, addresses, others, show):
    """A count of the rules, and of the answers equal to each of the others."""
    ours, _, _ = symbolizers.by_podprof(path, addresses)
    theirs = {}
    for name, command in others:
        chains = by_eu(path, addresses) if name == "eu-addr2line" else symbolizers.by_others(command, path, addresses)[0]
        if len(chains) == len(addresses):
            theirs[name] = chains
    names, ranges = symbols_of(path)
    rules, equal = collections.Counter(), collections.Counter()
    for i, address in enumerate(addresses):
        chains = {name: of[i] for name, of in theirs.items()}
        rule = rule_of(address, ours[i], chains, names, ranges)
        rules[rule] += 1
        equal.update(name for name, chain in chains.items() if chain == ours[i])
        if rule == "unlike" and rules[rule] <= show:
            print(f"{path} {address:x}\n    podprof {ours[i]}")
            for name, chain in chains.items():
                print(f"    {name} {chain}")
    return rules, equal


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=300)
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--goal", type=float, default=98)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("folders", nargs="+")
    args = parser.parse_args()
    others = [(name, command) for name, command in OTHERS if shutil.which(command[0])]
    rng = random.Random(1)
    found, failed = images.files_below(args.folders), False
    print("| source | files | addresses | " + " | ".join(f"= {name}, %" for name, _ in others) + " | " +
          " | ".join(f"{rule}, %" for rule in RULES) + " |")
    print("|---" * (3 + len(others) + len(RULES)) + "|")
    for kind, _ in images.KINDS[1:]:
        files = rng.sample(found[kind], min(args.files, len(found[kind])))
        rules, equal = collections.Counter(), collections.Counter()
        for path, start, size in files:
            addresses = [start + rng.randrange(size) for _ in range(args.n)]
            of_file = compare(path, addresses, others, args.show)
            rules.update(of_file[0])
            equal.update(of_file[1])
        n = sum(rules.values()) or 1
        share = [100 * equal[name] / n for name, _ in others] + [100 * rules[rule] / n for rule in RULES]
        print(f"| {kind} | {len(files)} | {n} | " + " | ".join(f"{s:.2f}" for s in share) + " |", flush=True)
        failed |= bool(files) and 100 - share[-1] < args.goal
    sys.exit(failed)


if __name__ == "__main__":
    main()
