# SPDX-License-Identifier: Apache-2.0
"""Works all the time in the innermost of so many functions, each with its own code. With 'c', C calls each."""
import sys

WORDS = list(range(256)) * 512
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
        exec(compile(call.format(n=n, inner=n - 1), f"deep{n % 8}.py", "exec"), globals())
    outermost = globals()[f"f{depth}"]
    while True:
        outermost()


main()
