# SPDX-License-Identifier: Apache-2.0
"""Works all the time in the innermost of so many functions, each with its own code. With 'c', C calls each. As in
modules, all functions of a file have one string with its name; no two neighbours are of one file."""
import sys

WORDS = list(range(256)) * 512
FILES = [f"deep{n}.py" for n in range(8)]
CALLS = {"python": "def f{n}():\n    return f{inner}()\n",
         "c": "def f{n}(_=0):\n    return sorted((0,), key=f{inner})\n"}


def f0(_=0):
    total = 0
    for i in range(0, len(WORDS), 8):
        total += WORDS[i]
    return total


def main():
    depth, call = int(sys.argv[1]), CALLS[sys.argv[2]]
    for n in range(1, depth + 1):
        exec(compile(call.format(n=n, inner=n - 1), FILES[n % 8], "exec"), globals())
    outermost = globals()[f"f{depth}"]
    while True:
        outermost()


main()
