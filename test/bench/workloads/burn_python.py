# SPDX-License-Identifier: Apache-2.0
"""Python: calls ten deep and JSON both ways. See workloads.py."""
import json
import sys
import time


def leaf(n):
    return sum(i * i % 7 for i in range(n))


def down(depth, n):
    return down(depth - 1, n) + 1 if depth else leaf(n)


def serve(request):
    answer = json.loads(request)
    answer["value"] = down(10, 400)
    return json.dumps(answer)


def main(share):
    request = json.dumps({"list": list(range(60)), "map": {"key": "value"}})
    begin, cpu = time.monotonic(), time.process_time()
    while True:
        while time.process_time() - cpu < share * (time.monotonic() - begin):
            serve(request)
        time.sleep(0.005)


main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.15)
