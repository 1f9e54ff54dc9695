#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
The largest programs of a machine at once: Chromium lays out a page, clang and rustc compile, and a Go
program of some 100 MB starts again and again. Prints the peak memory (PSS) of the agent and of the
process that reads DWARF, the bytes of the caches of symbols, and the shares of samples and frames
with names by program. A program that is missing is left out, with a line that says so.

The Go program is --go, else the largest Kubernetes program of e2e/cluster (in
~/.cache/podprof-tools), else terraform. Root; four minutes.
"""
import collections
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import benchoptions
import names
import workloads

PROGRAMS = ("chrom", "clang", "rustc", "large-go")
PAGE = """<!doctype html><div id=all></div><script>
function round() {
  const rows = [];
  for (let i = 0; i < 2000; i++)
    rows.push(`<p style="float:left;width:${i % 90}%;border:1px solid"><b>${i}</b> ${"word ".repeat(i % 30)}</p>`);
  document.getElementById("all").innerHTML = rows.join("");
  document.title = document.body.offsetHeight;
  setTimeout(round, 10);
}
round();
</script>"""


def go_program(path):
    found = [path] if path else sorted(
        glob.glob(os.path.expanduser("~/.cache/podprof-tools/kubernetes-*/kube-apiserver")) + ["/usr/local/bin/terraform"],
        key=lambda p: os.path.exists(p) and os.path.getsize(p), reverse=True)
    return found[0] if os.path.exists(found[0]) else None


def commands(to, options):
    """Of each program: what runs, and its file."""
    with open(f"{to}/page.html", "w", encoding="utf-8") as f:
        f.write(PAGE)
    loop = "while :; do {} >{}/out 2>&1; done"
    source = os.path.join(workloads.HERE, "workloads")
    chromium, clang = shutil.which("chromium"), shutil.which("clang") or shutil.which("clang-14")
    go = go_program(options.go)
    made = {
        "chromium": chromium and (
            f"exec {chromium} --headless --no-sandbox --disable-gpu --user-data-dir={to}/chromium "
            f"--remote-debugging-port=0 file://{to}/page.html >{to}/chromium.log 2>&1"),
        "clang": clang and loop.format(f"{clang} -O2 -c -x c++ {source}/templates.cc -o {to}/clang.o", to),
        "rustc": shutil.which("rustc") and loop.format(f"rustc -O {source}/collections.rs -o {to}/rust.out", to),
    }
    if go:
        os.symlink(go, f"{to}/large-go")
        made["large-go"] = loop.format(f"{to}/large-go --help", to)
    for name in ("chromium", "clang", "rustc", "large-go"):
        if not made.get(name):
            print(f"{name} is left out: the program is missing", file=sys.stderr)
    return {name: command for name, command in made.items() if command}


class Memory:
    """Peaks, in KiB: of the agent's processes and of the DWARF process, and of all together."""

    def __init__(self):
        self.peak = collections.Counter()

    def look(self, pid):
        now = collections.Counter()
        for p in workloads.descendants(pid):
            with contextlib.suppress(OSError, AttributeError):
                with open(f"/proc/{p}/comm") as f:
                    kind = "DWARF" if f.read().startswith("podprof-dwarf") else "agent"
                with open(f"/proc/{p}/smaps_rollup") as f:
                    text = f.read()
                for what in ("Pss", "Pss_Anon"):
                    n = int(re.search(rf"^{what}: +(\d+)", text, re.M).group(1))
                    now[kind, what] += n
                    now["all", what] += n
        for key, n in now.items():
            self.peak[key] = max(self.peak[key], n)

    def show(self):
        print("| process | PSS, MiB | of it anonymous, MiB |\n|---|---|---|")
        for kind in ("agent", "DWARF", "all"):
            print(f"| {kind} | {self.peak[kind, 'Pss'] / 1024:.0f} | {self.peak[kind, 'Pss_Anon'] / 1024:.0f} |")


def metrics():
    with urllib.request.urlopen(f"http://{workloads.LISTEN}/metrics", timeout=60) as answer:
        return answer.read().decode()


def show_metrics(text):
    for name in ("podprof_memory_budget_bytes", "podprof_cache_bytes", "podprof_dwarf_requests_total",
                 "podprof_symbol_reads_total"):
        for line in re.findall(rf"^{name}[{{ ].*", text, re.M):
            if not line.endswith(" 0"):
                print(f"  {line}")


def show_profiles(store):
    """By program: names.py's columns over all profiles."""
    print("| program | samples | function without a name, % | frames without a name, % | with lines, % | inlined, % | reason |\n"
          "|---|---|---|---|---|---|---|")
    for program in PROGRAMS:
        total, reasons = collections.Counter(), collections.Counter()
        for path in glob.glob(f"{store}/*/*.pb.gz"):
            if not os.path.basename(os.path.dirname(path)).startswith(program):
                continue
            profile = names.Profile(path)
            n, shares = profile.shares(False)
            total["samples"] += n
            for name, share in shares.items():
                total[name] += n * share
            for reason in profile.reasons:
                reasons[reason] += 1
        n = total["samples"]
        if n:
            print(f"| {program} | {n} | {total['function'] / n:.1f} | {total['unnamed'] / n:.1f} | {total['lines'] / n:.1f} | "
                  f"{total['inlined'] / n:.1f} | {', '.join(f'`{r}`' for r, _ in reasons.most_common(3))} |", flush=True)


def main():
    parser = benchoptions.Parser(__doc__)
    parser.option("seconds", 180, "length of the measurement")
    parser.option("rate", 97)
    parser.option("window", "20s")
    parser.option("memory-budget", "96MiB", "of the agent")
    parser.option("go", "", "large Go program, that ends when it is asked for --help")
    options = parser.parsed()
    rules = {"relabel_configs": [{"action": "keep", "source_labels": ["service_name"],
                                  "regex": f"({'|'.join(PROGRAMS)}).*"}]}
    memory = Memory()
    print(f"{workloads.conditions(options.rate)}, {options.seconds} s, --memory-budget {options.memory_budget}")
    with tempfile.TemporaryDirectory(prefix="podprof-bench-") as to:
        with open(f"{to}/settings.json", "w", encoding="utf-8") as f:
            json.dump(rules, f)
        programs = [subprocess.Popen(["sh", "-c", command], start_new_session=True, cwd=to)
                    for command in commands(to, options).values()]
        agent = subprocess.Popen(
            [workloads.PODPROF, "agent", "--window", options.window, "--cpu-rate", str(options.rate), "--listen",
             workloads.LISTEN, "--store-dir", f"{to}/store", "--go-heap-profiler", "disabled", "--config",
             f"{to}/settings.json", "--memory-budget", options.memory_budget],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + options.seconds
            while time.monotonic() < end:
                memory.look(agent.pid)
                time.sleep(0.5)
            text = metrics()
        finally:
            for program in programs:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(program.pid, 9)
                program.wait()
            workloads.stop_profiler(agent)
        memory.show()
        show_metrics(text)
        show_profiles(f"{to}/store")


if __name__ == "__main__":
    main()
