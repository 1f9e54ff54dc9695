#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ask an agent's HTTP server for more than it should do.

  flood.py fill DIR PROFILES         a store of so many CPU profiles of one entity; prints the entity's id
  flood.py flood ADDRESS ENTITY      61 flame graphs over 30 connections, and metrics, while a prober asks for
                                     /-/healthy, /-/ready and /metrics; prints what came back as NAME VALUE
"""
import collections
import gzip
import http.client
import os
import random
import sys
import threading
import time

CONNECTIONS = 30
REQUESTS = 61
# The server limits the connections of an address, and a kubelet has its own.
PROBER = "127.0.0.2"
# The test's own patience, not a claim.
PATIENCE_S = 120


# ---------------------------------------------------------------- a store

def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def profile(n_samples, n_functions, depth):
    """A pprof file with distinct stacks, https://github.com/google/pprof/blob/main/proto/profile.proto"""
    rng = random.Random(1)
    strings = ["", "cpu", "nanoseconds"] + [f"a/package.function_{i}" for i in range(n_functions)]
    out = [field(1, field(1, 1) + field(2, 2))]
    for _ in range(n_samples):
        stack = b"".join(varint(rng.randrange(n_functions) + 1) for _ in range(depth))
        out.append(field(2, field(1, stack) + field(2, varint(10_000_000))))
    for i in range(n_functions):
        out.append(field(4, field(1, i + 1) + field(3, 4096 + 16 * i) + field(4, field(1, i + 1))))
        out.append(field(5, field(1, i + 1) + field(2, i + 3)))
    out += [field(6, s.encode()) for s in strings]
    return gzip.compress(b"".join(out), 6)


def fill(directory, n):
    # Any hash will do: the store takes the folder's own labels.
    name = "flood-00000000"
    folder = os.path.join(directory, name)
    os.makedirs(folder)
    with open(os.path.join(folder, "labels.json"), "w", encoding="utf-8") as f:
        f.write('{"service_name": "flood"}\n')
    data = profile(500, 1000, 40)
    now = time.time()
    for i in range(n):
        at = now - 60 * (n - i)
        start = time.strftime("%Y%m%dT%H%M%S", time.gmtime(at))
        with open(os.path.join(folder, f"{start}.000Z_60s_cpu.pb.gz"), "wb") as f:
            f.write(data)
    return name


# ---------------------------------------------------------------- requests

def ask(address, path, source="127.0.0.1"):
    """The status and the seconds of one request; status 0 without an answer."""
    begun = time.monotonic()
    try:
        connection = http.client.HTTPConnection(address, timeout=PATIENCE_S, source_address=(source, 0))
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        status = response.status
        if status == 503 and path.endswith("json") and not response.getheader("Retry-After"):
            status = -503
        connection.close()
    except (OSError, http.client.HTTPException):
        status = 0
    return status, time.monotonic() - begun


def flood(address, entity):
    target = f"/entity/{entity}/flame.json?kind=cpu"
    left = [REQUESTS]
    lock = threading.Lock()
    statuses = collections.Counter()

    def attacker():
        while True:
            with lock:
                if not left[0]:
                    return
                left[0] -= 1
            status, _ = ask(address, target)
            with lock:
                statuses[status] += 1

    threads = [threading.Thread(target=attacker) for _ in range(CONNECTIONS)]
    begun = time.monotonic()
    for t in threads:
        t.start()
    probes = collections.Counter()
    longest = collections.Counter()
    while any(t.is_alive() for t in threads) or time.monotonic() - begun < 2:
        for path, name in (("/-/healthy", "healthy"), ("/-/ready", "ready"), ("/metrics", "metrics")):
            status, seconds = ask(address, path, PROBER)
            probes[f"{name}_{status}"] += 1
            longest[name] = max(longest[name], seconds)
        time.sleep(0.02)
    print("seconds", round(time.monotonic() - begun, 3))
    for status, n in sorted(statuses.items()):
        print(f"flame_{status}", n)
    for name, n in sorted(probes.items()):
        print(name, n)
    for name, seconds in sorted(longest.items()):
        print(f"longest_ms_{name}", round(1000 * seconds))


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        print(fill(sys.argv[2], int(sys.argv[3])))
    else:
        flood(sys.argv[2], sys.argv[3])
