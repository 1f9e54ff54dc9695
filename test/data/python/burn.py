# SPDX-License-Identifier: Apache-2.0
# Seconds of CPU time in inner(), which sorted() in C calls for outer().
import sys
import time


def inner(x):
    n = 0
    for i in range(2000):
        n += i * x
    return n


def outer():
    return sorted([3, 1, 2] * 10, key=inner)


def main():
    end = time.process_time() + float(sys.argv[1])
    while time.process_time() < end:
        outer()


main()
