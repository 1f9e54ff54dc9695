# SPDX-License-Identifier: Apache-2.0
"""OTLP profiles of any profiler, as an OpenTelemetry collector writes them to a file."""
import contextlib
import json
import os
import re
import socket
import subprocess
import time

import workloads

TOOL = os.path.join(workloads.HERE, "../tool.sh")
LANGUAGES = ("cpython", "jvm", "v8js")
START_BYTES = 64  # no start of a program is longer
ERROR_MAX = 1 << 16  # no code is below


# ---------------------------------------------------------------- the collector


class Collector:
    CONFIGURATION = """
receivers: {{otlp: {{protocols: {{grpc: {{endpoint: "{grpc}"}}, http: {{endpoint: "{http}"}}}}}}}}
exporters: {{file: {{path: {path}}}}}
service:
  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}
  pipelines: {{profiles: {{receivers: [otlp], exporters: [file]}}}}
"""

    def __init__(self, to):
        self.path = f"{to}/profiles.jsonl"
        self.grpc, self.http = (f"127.0.0.1:{workloads.free_port()}" for _ in range(2))
        with open(f"{to}/collector.yaml", "w") as f:
            f.write(self.CONFIGURATION.format(grpc=self.grpc, http=self.http, path=self.path))
        program = workloads.run(TOOL, "collector", stdout=subprocess.PIPE, text=True).stdout.strip()
        self.process = subprocess.Popen([program, "--config", f"{to}/collector.yaml",
                                         "--feature-gates=service.profilesSupport"], stderr=subprocess.DEVNULL)
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(self.grpc.split(":")):
                break
            time.sleep(.1)

    def stop(self):
        self.process.terminate()
        self.process.wait()


# ---------------------------------------------------------------- where stacks begin


def starts_of(path):
    """[begin, end) of code at which stacks begin: the entry point, and functions without a caller."""
    header = workloads.run("readelf", "-hW", path, stdout=subprocess.PIPE, text=True).stdout
    entry = int(re.search(r"Entry point address: +(0x[0-9a-f]+)", header).group(1), 16)
    ranges = [(entry, entry + START_BYTES)] if entry else []
    if os.path.getsize(path) < 4 << 20:
        text = subprocess.run(["readelf", "-W", "--debug-dump=frames", path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, check=False).stdout  # 1: a warning
        for fde in re.split(r"\n(?=[0-9a-f]+ [0-9a-f]+ )", text):
            found = re.search(r"FDE .*pc=([0-9a-f]+)\.\.([0-9a-f]+)", fde)
            if found and "DW_CFA_undefined: r16 (rip)" in fde:
                ranges.append((int(found.group(1), 16), int(found.group(2), 16)))
    return ranges


# ---------------------------------------------------------------- what the collector wrote


class Dictionary:
    """A request's tables. The collector leaves out zeros, and strings of resources are numbers."""

    def __init__(self, tables):
        self.tables = tables
        self.strings = tables["stringTable"]

    def string(self, row, key):
        return self.strings[row.get(key, 0)]

    def attributes(self, rows):
        found = {}
        for row in rows:
            value = row.get("value", {})
            key = row.get("key") or self.string(row, "keyStrindex")
            found[key] = (self.string(value, "stringValueStrindex") if "stringValueStrindex" in value
                          else next(iter(value.values()), None))
        return found

    def frame(self, index):
        row = self.tables["locationTable"][index]
        attributes = self.attributes(self.tables["attributeTable"][i] for i in row.get("attributeIndices", []))
        functions = [self.tables["functionTable"][line.get("functionIndex", 0)] for line in row.get("lines", [])]
        mapping = self.tables["mappingTable"][row.get("mappingIndex", 0)]
        return Frame(attributes.get("profile.frame.type", ""), int(row.get("address", 0)),
                     os.path.basename(self.string(mapping, "filenameStrindex")),
                     [self.string(f, "nameStrindex") for f in functions])

    def stack(self, index):
        return [self.frame(i) for i in self.tables["stackTable"][index].get("locationIndices", [])]


class Frame:
    """A frame, with several names if functions are inlined there."""
    MARKS = re.compile(r"\[(python|java|v8): |<unknown>$|<unintrospected JVM>$|V8::UnknownFrame$|$")
    NO_NAME = re.compile(r"\[(unknown|anon|vdso|heap|stack)\]|.*\+0x[0-9a-f]+$|$")

    def __init__(self, kind, address, file, names):
        self.kind, self.address, self.file, self.names = kind, address, file, names

    def is_language(self):
        """V8::... are kinds of frames, and no functions."""
        return self.kind in LANGUAGES and not (self.names and self.names[0].startswith("V8::"))

    def is_error(self):
        """A number instead of an address is the peer's reason."""
        return (self.kind == "abort-marker" or (not self.file and not self.names and 0 < self.address < ERROR_MAX)
                or any(re.match(r"\[(python|java|v8): ", n) for n in self.names))

    def is_named(self):
        names = self.names or [""]
        pattern = self.MARKS if self.kind in LANGUAGES else self.NO_NAME
        return not any(pattern.match(n) for n in names)

    def is_start(self, starts):
        if self.kind == "kernel":
            return any(n.startswith("ret_from_fork") for n in self.names)
        return any(begin <= self.address < end for begin, end in starts.get(self.file, []))


class Profile:
    """Samples of one process, or of one service, in a span."""

    def __init__(self, dictionary, resource, row):
        self.dictionary, self.resource, self.samples = dictionary, resource, row.get("samples", [])
        self.kind = dictionary.string(row.get("sampleType", {}), "typeStrindex")
        self.time_ns, self.duration_ns = int(row["timeUnixNano"]), int(row["durationNano"])

    def counts(self):
        """(number, sample) for stack()."""
        for sample in self.samples:
            yield (sum(map(int, sample["values"])) if sample.get("values")
                   else len(sample["timestampsUnixNano"])), sample

    def stack(self, sample):
        return self.dictionary.stack(sample["stackIndex"])


def profiles(path):
    """All profiles of numbers of samples."""
    with open(path) as f:
        for request in map(json.loads, f):
            dictionary = Dictionary(request["dictionary"])
            for resource in request.get("resourceProfiles", []):
                attributes = dictionary.attributes(resource.get("resource", {}).get("attributes", []))
                for row in (p for s in resource["scopeProfiles"] for p in s["profiles"]):
                    profile = Profile(dictionary, attributes, row)
                    if profile.kind == "samples":
                        yield profile


def is_complete(stack, starts):
    """starts: of each file, its starts_of()."""
    return bool(stack) and stack[-1].is_start(starts) and not any(f.is_error() for f in stack)
