#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the agent itself costs: CPU seconds a minute, memory, samples lost, time to the first profile;
# with nothing running, and with 100 processes of 20 programs that together use about one CPU.
#
#   agent.sh [SECONDS]     length of each of the two runs (60)
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
work=$(mktemp -d /tmp/podprof-bench-XXXXXX)
children=()

cleanup() {
	for pid in "${children[@]}"; do kill "$pid" 2>/dev/null || true; done
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

hz=$(getconf CLK_TCK)
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
memory_kib() { awk -v what="$2:" '$1 == what { print $2 }' "/proc/$1/smaps_rollup"; }

# run NAME: the agent for that long, with 10 s windows so that all of its work is in the figure
run() {
	local name=$1 pid before after started first
	mkdir "$work/$name"
	started=$(date +%s%N)
	build/podprof agent --window 10s --listen 127.0.0.1:17070 --store-dir "$work/$name" \
		2>"$work/$name.log" &
	pid=$!
	children+=("$pid")
	until [ -n "$(find "$work/$name" -name '*.pb.gz' -print -quit)" ]; do sleep 0.1; done
	first=$(date +%s%N)
	before=$(cpu_ticks "$pid")
	sleep "$seconds"
	after=$(cpu_ticks "$pid")
	curl -s http://127.0.0.1:17070/metrics >"$work/$name.metrics"
	printf '%-8s agent CPU %.3f s/min, RSS %d KiB, PSS %d KiB, first profile after %.1f s\n' "$name" \
		"$(echo "scale=6; ($after - $before) / $hz * 60 / $seconds" | bc)" \
		"$(memory_kib "$pid" Rss)" "$(memory_kib "$pid" Pss)" \
		"$(echo "scale=3; ($first - $started) / 1000000000" | bc)"
	awk '/^podprof_samples_total/ { all += $NF; if ($0 ~ /lost/) lost += $NF }
	     /^podprof_bpf_map_bytes/ { maps = $NF }
	     END { printf "         samples %d, lost %d, BPF maps %d KiB\n", all, lost, maps / 1024 }' \
		"$work/$name.metrics"
	kill -TERM "$pid"
	wait "$pid" || true
}

run idle

for image in $(seq 20); do
	gcc -O1 -fno-omit-frame-pointer -DNUMBER="$image" -o "$work/program$image" test/bench/mostly_asleep.c
	for _ in 1 2 3 4 5; do
		"$work/program$image" &
		children+=($!)
	done
done
sleep 2
run loaded
