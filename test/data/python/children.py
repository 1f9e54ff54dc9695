# SPDX-License-Identifier: Apache-2.0
# Seconds of CPU time in inner() of children that end soon, one after the other.
import os
import sys
import time

TIME = 0.05


def inner():
    while time.process_time() < TIME:
        for _ in range(500):
            pass


def outer():
    inner()


for _ in range(int(float(sys.argv[1]) / TIME)):
    if os.fork() == 0:
        outer()
        os._exit(0)
    os.wait()
