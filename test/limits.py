#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Make docs/design/limits.md out of the code, and say which limits lack their comment.

usage: limits.py > docs/design/limits.md      exit status 1 if a limit lacks something

A limit is a "#define ..._MAX" (or _MAX_NS, _MAX_S) of agent/ or bpf/. The comment right above it, or behind it
on the same line, has two parts: first the unit and the reason, then "Reached:" and the visible effect, or
"Reached: -" where nothing outside of podprof can reach the limit.
"""
import re
import subprocess
import sys

DEFINE = re.compile(r"#define[ \t]+([A-Z0-9_]+_MAX(?:_NS|_S)?)[ \t]+(.*)")
HEAD = """# Limits

Everything that something outside of podprof can make larger has a ceiling. The ceiling stands beside its type in the
code, with its unit and reason. `make limits` generates this page from the code, and `make lint` checks it. The last
column tells the effect of the ceiling and where it shows: a metric, an outcome that the caller counts, or "-" where
nothing outside can reach it.
"""


def comment_above(lines, at):
    """The text of the comment that ends on the line above lines[at]; '' if there is none."""
    end = at - 1
    if end < 0 or not lines[end].rstrip().endswith("*/"):
        return ""
    start = end
    while "/*" not in lines[start]:
        start -= 1
    return "\n".join(lines[start : end + 1])


def plain(comment):
    """A comment without its marks, on one line."""
    inner = re.search(r"/\*\**(.*?)\*/", comment, re.S)
    words = re.sub(r"\n\s*\* ?", " ", inner[1]) if inner else ""
    return re.sub(r"\s+", " ", words).strip()


def limits(path):
    """Yield (name, value, what, reached) of each limit in a file."""
    lines = open(path).read().split("\n")
    for at, line in enumerate(lines):
        found = DEFINE.match(line)
        if not found:
            continue
        name, rest = found.groups()
        value = "computed" if rest.endswith("\\") else re.sub(r"\s+", " ", rest.split("/*")[0]).strip()
        end = at
        while "/*" in rest and "*/" not in lines[end]:
            end += 1
        behind = "\n".join(lines[at : end + 1]) if "/*" in rest else ""
        what, _, reached = plain(behind or comment_above(lines, at)).partition("Reached:")
        yield name, value, what.strip(), reached.strip().rstrip(".")


def main():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "agent/*.[ch]", "agent/*.cc", "bpf/*.[ch]"],
        check=True, capture_output=True, text=True).stdout.split()
    missing = 0
    folder = None
    print(HEAD, end="")
    for path in sorted(set(listed), key=lambda p: (p.rsplit("/", 1)[0], p)):
        try:
            rows = list(limits(path))
        except FileNotFoundError:  # deleted, not committed yet
            continue
        for name, value, what, reached in rows:
            if not what or not reached:
                print(f"{path}: {name} has no comment with 'Reached:' right above it", file=sys.stderr)
                missing += 1
            here, file = path.rsplit("/", 1)
            if here != folder:
                folder = here
                print(f"\n## {folder}/\n\n| limit | value | file | unit and reason | reached |\n|---|---|---|---|---|")
            cells = (f"`{name}`", f"`{value}`", f"`{file}`", what.rstrip("."), reached)
            print("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    sys.exit(1 if missing else 0)


main()
