#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold more connections to a server than it serves, while the standard input is open.

  crowd.py ADDRESS IDLE SLOW

IDLE connections send nothing, SLOW ones a byte of a request each time round, from 200 addresses of loopback. Closed ones
come back after a pause. Prints "ready" once all have been open or refused once, and at the end of the input the number of connections
made and of those that the server closed.
"""
import collections
import errno
import itertools
import resource
import select
import socket
import sys
import time

ADDRESSES = 200
# Until a closed connection comes back.
PAUSE_S = 10
# A request that never ends, whether the server takes it for HTTP or for TLS.
BYTES = b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03" + b"x" * 100000


class Crowd:
    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.address = (host, int(port))
        self.sources = itertools.cycle(f"127.0.{1 + i // 100}.{1 + i % 100}" for i in range(ADDRESSES))
        self.epoll = select.epoll()
        self.open = {}
        self.away = collections.deque()
        self.made = self.closed = 0

    def connect(self, is_slow):
        s = socket.socket()
        s.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        s.bind((next(self.sources), 0))
        s.setblocking(False)
        if s.connect_ex(self.address) not in (0, errno.EINPROGRESS):
            s.close()
            return
        self.made += 1
        self.open[s.fileno()] = [s, is_slow, 0]
        self.epoll.register(s.fileno(), select.EPOLLRDHUP | select.EPOLLIN)

    def sweep(self):
        """Slow ones send; closed ones come back."""
        for fd, (s, is_slow, sent) in list(self.open.items()):
            if is_slow and sent < len(BYTES):
                try:
                    s.send(BYTES[sent:sent + 1])
                    self.open[fd][2] += 1
                except OSError:
                    pass
        for fd, _ in self.epoll.poll(0.05, 2000):
            s, is_slow, _ = self.open.pop(fd)
            self.epoll.unregister(fd)
            s.close()
            self.closed += 1
            self.away.append((time.monotonic() + PAUSE_S, is_slow))
        while self.away and self.away[0][0] < time.monotonic():
            self.connect(self.away.popleft()[1])


def main():
    address, idle, slow = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    want = idle + slow + 100
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (want, max(hard, want)))
    crowd = Crowd(address)
    for i in range(idle + slow):
        crowd.connect(i % (idle + slow) < slow)
        if i % 500 == 0:
            crowd.sweep()
    print("ready", flush=True)
    stdin = select.poll()
    stdin.register(sys.stdin, select.POLLIN | select.POLLHUP)
    while not stdin.poll(200):
        crowd.sweep()
    print("made", crowd.made, "closed", crowd.closed, flush=True)


main()
