#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How well short-lived programs of Node and Java are named.

  starts.py [--runs 40] [--only node,java] [--lives 150,300] [--modes one,many] [--pause S] [--spin N]

Starts programs one after the other. The main thread of each computes until it has taken its life in CPU time, from the start
of the process on: in a function of the age, a0 in the first 25 ms, a1 in the next (many), or in one function (one). Each
writes the CPU time of its own code at each age. bench_starts samples the programs as the agent does. The output has, for each
life: the samples that the CPU time in the program's own code is worth ("due"), the share of these whose innermost function has
a name, the share of those with a whole stack of names, and other shares of all samples of the main threads; then the named
share by age."""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

STEP_MS = 25
STEPS = 64
RATE = 97
COMPLETE = "0"

JS = """"use strict";
const fs = require("fs");
const life = Number(process.argv[2]) * 1e6, one = process.argv[3] === "one", step = %d * 1e6;
let sink = 1;
function cpu() { return Number(fs.readFileSync("/proc/thread-self/schedstat", "latin1").split(" ")[0]); }
function work(end) {
	do {
		for (let i = 0; i < 500000; i++)
			sink = (sink * 31 + i) | 0;
	} while (cpu() < end);
}
%s
const ages = [%s];
function main() {
	const out = [];
	let before = cpu();
	while (before < life) {
		const k = Math.floor(before / step);
		ages[one ? 0 : Math.min(k, ages.length - 1)](Math.min(life, (k + 1) * step));
		const now = cpu();
		out.push(k + ":" + (now - before));
		before = now;
	}
	fs.writeSync(3, out.join(" ") + "\\n");
}
main();
"""

JAVA = """import java.io.*;
public class Ages {
	static int sink = 1;
	static byte[] bytes = new byte[64];
	static long cpu() throws IOException {
		try (FileInputStream in = new FileInputStream("/proc/thread-self/schedstat")) {
			int n = in.read(bytes);
			long v = 0;
			for (int i = 0; i < n && bytes[i] >= '0'; i++)
				v = v * 10 + bytes[i] - '0';
			return v;
		}
	}
	static void work(long end) throws IOException {
		do {
			for (int i = 0; i < 100000; i++)
				sink = sink * 31 + i;
		} while (cpu() < end);
	}
%s
	static void at(int k, long end) throws IOException {
		switch (k) {
%s
		}
	}
	public static void main(String[] args) throws IOException {
		long life = Long.parseLong(args[0]) * 1000000, step = %d * 1000000L, before = cpu();
		boolean one = args[1].equals("one");
		StringBuilder out = new StringBuilder();
		while (before < life) {
			int k = (int)(before / step);
			at(one ? 0 : Math.min(k, %d), Math.min(life, (k + 1) * step));
			long now = cpu();
			out.append(' ').append(k).append(':').append(now - before);
			before = now;
		}
		out.append('\\n');
		try (FileOutputStream f = new FileOutputStream("/proc/self/fd/3")) {
			f.write(out.toString().getBytes());
		}
	}
}
"""


def make_programs(folder):
    with open(f"{folder}/ages.cjs", "w") as f:
        f.write(JS % (STEP_MS, "\n".join(f"function a{k}(end) {{ work(end); }}" for k in range(STEPS)),
                      ", ".join(f"a{k}" for k in range(STEPS))))
    with open(f"{folder}/Ages.java", "w") as f:
        f.write(JAVA % ("\n".join(f"\tstatic void a{k}(long end) throws IOException {{ work(end); }}" for k in range(STEPS)),
                        "\n".join(f"\t\tcase {k}: a{k}(end); break;" for k in range(STEPS)), STEP_MS, STEPS - 1))
    subprocess.run(["javac", "--release", "8", "-Xlint:-options", "-d", folder, f"{folder}/Ages.java"], check=True)


COMMANDS = {"node": ["{node}", "{folder}/ages.cjs"], "java": ["{java}", "-Xshare:auto", "-cp", "{folder}", "Ages"]}


def start(command, life, mode, out):
    """Runs one; returns its pid and the CPU time by age."""
    pipe, to = os.pipe()
    pid = os.posix_spawn(command[0], command + [str(life), mode], os.environ,
                         file_actions=[(os.POSIX_SPAWN_DUP2, to, 3), (os.POSIX_SPAWN_CLOSE, pipe)])
    os.close(to)
    with os.fdopen(pipe) as f:
        text = f.read()
    os.waitpid(pid, 0)
    out.write(json.dumps({"pid": pid, "life": life, "mode": mode,
                          "ages": [a.split(":") for a in text.split() if ":" in a]}) + "\n")


def child(args):
    """The sampled part: all commands in turn. The first two of a runtime teach the agent its image."""
    with open(args.child, "w") as out:
        for name in args.only.split(","):
            command = [part.format(folder=args.folder, node=args.node, java=args.java) for part in COMMANDS[name]]
            for _ in range(2):
                start(command, 4000, "one", open(os.devnull, "w"))
            lives = args.lives or {"node": "150,300,600", "java": "300,600,1200"}[name]
            for mode in args.modes.split(","):
                for life in lives.split(","):
                    for _ in range(args.runs):
                        time.sleep(args.pause)
                        out.write(json.dumps({"what": name}) + "\n")
                        start(command, int(life), mode, out)


def percent(a, b):
    return f"{100 * a / b:5.1f}" if b else "    -"


def report(runs_path, lines, by_age):
    groups, of_pid = {}, {}
    what = None
    for line in open(runs_path):
        run = json.loads(line)
        if "what" in run:
            what = run["what"]
            continue
        key = (what, run["mode"], run["life"])
        of_pid[str(run["pid"])] = key
        g = groups.setdefault(key, {"n": 0, "due": collections.Counter(), "named": collections.Counter(),
                                    "whole": 0, "ok": 0, "c": collections.Counter()})
        g["n"] += 1
        for age, ns in run["ages"]:
            g["due"][int(age)] += int(ns) * RATE / 1e9
    for line in lines:
        f = line.rstrip("\n").split("\t")
        if f[0] not in of_pid:
            continue
        g = groups[of_pid[f[0]]]
        count, end, n_runtime, named, unnamed, age, innermost = int(f[3]), f[4], int(f[6]), int(f[7]), int(f[8]), int(f[9]), f[10]
        main = f[2] in ("node", "java", "MainThread")
        g["c"]["all"] += count
        g["c"]["main"] += count * main
        g["c"]["native"] += count * main * (not n_runtime)
        g["c"]["cut"] += count * main * (end != COMPLETE)
        g["c"]["gone"] += count * main * (unnamed > 0)
        g["c"]["runtime"] += count * main * (n_runtime > 0)
        if age >= 0 and not innermost.startswith("["):
            g["ok"] += count
            g["named"][age] += count
            g["whole"] += count * (end == COMPLETE and not unnamed)
    for (what, mode, life), g in groups.items():
        due = sum(g["due"].values())
        c = g["c"]
        print(f"{what:5} {mode:4} {life:5} ms x{g['n']}: due {due:6.0f} named {percent(g['ok'], due)} % whole {percent(g['whole'], due)} % |"
              f" main {c['main']} native {percent(c['native'], c['main'])} % runtime {percent(c['runtime'], c['main'])} %"
              f" with gone {percent(c['gone'], c['main'])} % cut {percent(c['cut'], c['main'])} %")
        if by_age and mode == "many":
            print("   by age: " + " ".join(f"{a * STEP_MS}:{percent(g['named'][a], g['due'][a]).strip()}" for a in sorted(g["due"])))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--only", default="node,java")
    parser.add_argument("--lives", default="")
    parser.add_argument("--modes", default="one,many")
    parser.add_argument("--pause", type=float, default=0.05)
    parser.add_argument("--spin", type=int, default=0)
    parser.add_argument("--node", default="/usr/bin/node")
    parser.add_argument("--java", default="/usr/bin/java")
    parser.add_argument("--bench", default="build/test/bench/bench_starts")
    parser.add_argument("--folder", default="")
    parser.add_argument("--child", default="")
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    with tempfile.TemporaryDirectory() as folder:
        make_programs(folder)
        spinners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(args.spin)]
        try:
            done = subprocess.run([args.bench, sys.executable, sys.argv[0], *sys.argv[1:], "--folder", folder,
                                   "--child", f"{folder}/runs"], stdout=subprocess.PIPE, text=True, check=True)
        finally:
            for s in spinners:
                s.kill()
        lines = done.stdout.splitlines()
        report(f"{folder}/runs", [line for line in lines if not line.startswith("cpu\t")], True)
        print([line for line in lines if line.startswith("cpu\t")], open("/proc/loadavg").read().split()[:2])


main()
