#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each turn has a whole window of podprof, wherever the turn begins."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import beside_peers  # noqa: E402


def main():
    for arguments in ([], ["--window", "60"], ["--window", "60", "--seconds", "90"], ["--seconds", "8", "--window", "1"]):
        sys.argv = [sys.argv[0], *arguments]
        options = beside_peers.Parser(__doc__, 40, 2).parsed()
        for begin in range(options.window):
            first = begin + (-begin) % options.window
            if first + options.window > begin + options.seconds:
                sys.exit(f"{arguments}: no window in {options.seconds} s from {begin} on")
    if options.seconds != 8:
        sys.exit("a turn that is long enough is longer")


if __name__ == "__main__":
    main()
