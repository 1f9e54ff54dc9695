#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare what has arrived at pyrosink with what the API server says of the pods.

    series.py SINK SEEN [--since SECONDS] [--expect NAME=SAMPLES]... [--absent NAME]... [--nameless SAMPLES]
              [--pod-only SAMPLES] [--by-id | --by-runtime]

SEEN has pods.json, replicasets.json and jobs.json: all that "kubectl get --watch" has told of them, so
that pods that are gone are known, too. Every profile is looked at. Each of a container of this node has
to have the names of its pod, and the service_name that docs/configuration.md promises, found here by
the objects' owners; and its stacks may be in no other container's function (work.c). Those without
names are counted: they may be there, at most --nameless samples of them, but wrong names may not; and those
with the pod's name that are not said to be its sandbox's, at most --pod-only.

--since: only those that began at that time or later. --expect: so many samples of work_NAME, or main.NAME, are
there under the right names. --absent: there are none of it. --by-id: by an agent that cannot know names; the
container's id and its pod's UID have to be the right ones. --by-runtime: by one that knows names alone, of
no labels, annotations and owners.
"""
import argparse
import collections
import glob
import json
import os
import re
import sys

ID = re.compile("[0-9a-f]{64}$")
# The functions that identify containers; other programs may also have a function "work_..."
with open(os.path.dirname(os.path.abspath(__file__)) + "/workloads/work.c", encoding="utf-8") as source:
    WORKS = re.findall(r"\bX\((\w+)\)", source.read())
OWN = re.compile("(work_(" + "|".join(WORKS) + ")|main\\.(workGo|allocateGo|allocateUnasked))$")


def objects(path):
    """What a kubectl watch has printed: each version of each object. A lost connection is an event, too, and
    another watch begins with all objects."""
    decoder, text, at = json.JSONDecoder(), open(path, encoding="utf-8").read(), 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        try:
            event, at = decoder.raw_decode(text, at)
        except ValueError:  # the end, or an incomplete last line
            return
        if event["type"] != "ERROR":
            yield event["object"]


def owner(thing):
    for reference in thing["metadata"].get("ownerReferences", []):
        if reference.get("controller"):
            return reference["kind"], reference["name"]
    return None, None


class Truth:
    def __init__(self, seen, by_runtime):
        self.by_runtime = by_runtime
        self.owners = {}  # of ReplicaSets and Jobs
        self.containers = {}  # by id: pod and program
        self.uids = {}  # of their pods, by the same
        self.commands = {}  # by where
        self.services = {}  # of pods
        for kind in "replicasets", "jobs":
            for thing in objects(f"{seen}/{kind}.json"):
                at = thing["kind"], thing["metadata"]["namespace"], thing["metadata"]["name"]
                self.owners[at] = owner(thing)[1]
        for pod in objects(f"{seen}/pods.json"):
            self.add(pod)

    def service(self, pod):
        meta = pod["metadata"]
        marks = meta.get("annotations", {}), meta.get("labels", {})
        kind, name = owner(pod)
        if kind == "Node":  # a static pod
            name = meta["name"].removesuffix("-" + pod["spec"]["nodeName"])
        if self.by_runtime:
            return name if kind == "Node" else meta["name"]
        return (marks[0].get("podprof.io/service-name")
                or marks[0].get("resource.opentelemetry.io/service.name")
                or marks[1].get("app.kubernetes.io/instance")
                or marks[1].get("app.kubernetes.io/name")
                or self.owners.get((kind, meta["namespace"], name)) or name or meta["name"])

    def add(self, pod):
        place = pod["metadata"]["namespace"], pod["metadata"]["name"]
        self.services[place] = self.service(pod)
        spec, status = pod["spec"], pod.get("status", {})
        # the API server's copy of a static pod has another UID
        uid = pod["metadata"].get("annotations", {}).get("kubernetes.io/config.hash") or pod["metadata"]["uid"]
        for which, running in (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"),
                               ("ephemeralContainers", "ephemeralContainerStatuses")):
            commands = {c["name"]: c.get("command") or c.get("args") or [""] for c in spec.get(which, [])}
            for name, command in commands.items():
                self.commands[place + (name,)] = command
            for c in status.get(running, []):
                ids = [c.get("containerID", "")]
                for state in c.get("state", {}), c.get("lastState", {}):
                    ids.append(state.get("terminated", {}).get("containerID", ""))
                for cid in filter(None, ids):
                    self.containers[cid.split("//")[-1]] = place + (c["name"],), commands[c["name"]]
                    self.uids[cid.split("//")[-1]] = uid


class Judge:
    def __init__(self, truth, by_id):
        self.truth = truth
        self.counted = "nameless" if by_id else "named"
        self.wrong = []
        self.samples = collections.Counter()  # of CPU profiles, by known names
        self.functions = collections.Counter()  # under the right names
        self.places = collections.defaultdict(collections.Counter)

    def look(self, path):
        with open(path, encoding="utf-8") as f:
            entry = json.load(f)
        labels = entry["labels"]
        container = labels.get("container", "")
        cid = labels.get("container_id") or (container if ID.match(container) else "")
        what = self.kind(labels, cid, entry)
        if labels["__name__"] == "process_cpu":
            self.samples[what] += entry["total"]
            place = "/".join(labels.get(k, "-") for k in ("namespace", "pod", "container"))
            self.places[what][place, labels["service_name"]] += entry["total"]
            if what == self.counted:
                for name, n in entry["functions"].items():
                    self.functions[re.sub("^(work_|main\\.)", "", name)] += n

    def kind(self, labels, cid, entry):
        place = tuple(labels.get(k) for k in ("namespace", "pod", "container"))
        if place[0] is None:
            if cid not in self.truth.containers:
                self.stacks([""], entry, labels)
                return "elsewhere" if cid else "host"
            if labels.get("pod_uid") != self.truth.uids[cid]:
                self.wrong.append(("pod_uid", labels, self.truth.uids[cid]))
            self.stacks(self.truth.containers[cid][1], entry, labels)
            return "nameless"
        if place[:2] not in self.truth.services or place[2] and place not in self.truth.commands:
            self.wrong.append(("no such container", labels))
        elif labels["service_name"] != self.truth.services[place[:2]]:
            self.wrong.append(("service_name", labels, self.truth.services[place[:2]]))
        elif cid and cid in self.truth.containers and self.truth.containers[cid][0][:2] != place[:2]:
            self.wrong.append(("another's id", labels, self.truth.containers[cid]))
        elif place[2]:
            self.stacks(self.truth.commands[place], entry, labels)
        if place[2]:
            return "named"
        # the sandbox's, mostly runc's work before "pause"; or a container's with a lost name
        return "sandbox" if labels.get("level") == "pod" else "pod_only"

    def stacks(self, command, entry, labels):
        own = {"/work": f"work_{command[1] if len(command) > 1 else None}",
               "/gowork": "main.(workGo|allocateGo)", "/gounsampled": "main.allocateUnasked"}.get(command[0], "-")
        for name in entry["functions"]:
            if OWN.match(name) and not re.fullmatch(own, name):
                self.wrong.append(("stacks", name, labels, command))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("sink")
    p.add_argument("seen")
    p.add_argument("--since", type=float, default=0)
    p.add_argument("--expect", action="append", default=[])
    p.add_argument("--absent", action="append", default=[])
    p.add_argument("--nameless", type=int)
    p.add_argument("--pod-only", type=int)
    p.add_argument("--by-id", action="store_true")
    p.add_argument("--by-runtime", action="store_true")
    p.add_argument("--verbose", action="store_true")
    o = p.parse_args()
    judge = Judge(Truth(o.seen, o.by_runtime), o.by_id)
    for path in sorted(glob.glob(f"{o.sink}/*.json")):
        with open(path, encoding="utf-8") as f:
            began = json.load(f)["time_nanos"] / 1e9
        if began >= o.since:
            judge.look(path)
    print("           samples:", ", ".join(f"{n} {what}" for what, n in sorted(judge.samples.items())))
    missing = 0
    for want in o.expect:
        name, n = want.split("=")
        if judge.functions[name] < int(n):
            missing += 1
            print(f"           {judge.functions[name]} samples of {name} under what is its own, not {n}")
    for name in o.absent:
        if judge.functions[name]:
            missing += 1
            print(f"           {judge.functions[name]} samples of {name}")
    for what, most in ("nameless", o.nameless), ("pod_only", o.pod_only):
        if most is not None and judge.samples[what] > most:
            missing += 1
            print(f"           {judge.samples[what]} samples {what}, more than {most}")
    for wrong in judge.wrong[:10]:
        print("           WRONG", *wrong)
    if o.verbose or judge.wrong or missing:
        for what, places in sorted(judge.places.items()):
            for (place, service), n in sorted(places.items()):
                print(f"           {what:9} {n:6} {place} ({service})")
    return 1 if judge.wrong or missing else 0


sys.exit(main())
