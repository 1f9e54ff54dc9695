# Functions that are made, run for some milliseconds and dropped, for ever. The process has the name of the
# one that runs.
import collections
import os
import sys
import time

SOURCE = 'def outer%06d(burn, end):\n    inner%06d(burn, end)\ndef inner%06d(burn, end):\n    burn(end)\n'


def burn(end):
    while time.perf_counter() < end:
        pass


def make(k):
    names = {}
    exec(compile(SOURCE % (k, k, k), 'made', 'exec'), names)
    return names


def forever():
    comm = os.open('/proc/self/comm', os.O_WRONLY)
    kept = collections.deque()
    k = 0
    while True:
        made = make(k)
        os.write(comm, b'g%06d' % k)
        made['outer%06d' % k](burn, time.perf_counter() + 0.003)
        os.write(comm, b'none')
        if k // 50 % 2:  # fifty in a row take each other's place at once, the next fifty live on
            kept.append(made)
        else:
            made.clear()
        if len(kept) > 60:
            kept.popleft().clear()
        k += 1


print('ready')
sys.stdout.flush()
forever()
