#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The cost of idle processes: the agent's CPU time, memory and kernel maps without and with 1,000 sleeping processes.
# Two agents, one after the other, with the same settings.
#
#   sleepers.sh [SECONDS] [PROCESSES]     length of each of the two runs (60), how many (1000)
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-60}
processes=${2:-1000}
work=$(mktemp -d /tmp/podprof-sleepers-XXXXXX)
agent=
sleepers=

cleanup() {
	[ -z "$agent" ] || kill "$agent" 2>/dev/null || true
	[ -z "$sleepers" ] || kill -- "-$sleepers" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

hz=$(getconf CLK_TCK)
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

run() {
	local before after working
	build/podprof agent --window 10s --listen 127.0.0.1:17272 --store-dir "$work/$1" 2>"$work/$1.log" &
	agent=$!
	sleep 12 # the first window, and the work of the start
	working=$(tr -d ' ' <"/proc/$agent/task/$agent/children")
	before=$(cpu_ticks "$working")
	sleep "$seconds"
	after=$(cpu_ticks "$working")
	curl -s http://127.0.0.1:17272/metrics >"$work/$1.metrics"
	printf 'idle: %-9s agent CPU %.2f s/min, RSS %d KiB, ' "$1" \
		"$(echo "scale=4; ($after - $before) / $hz * 60 / $seconds" | bc)" \
		"$(awk '/^Rss:/ { print $2 }' "/proc/$working/smaps_rollup")"
	awk '/^podprof_bpf_map_bytes/ { maps = $NF }
	     /^podprof_unwind_entries.*processes/ { known = $NF }
	     END { printf "BPF maps %d KiB, processes known to the walker %d\n", maps / 1024, known }' \
		"$work/$1.metrics"
	kill -TERM "$agent"
	wait "$agent" || true
	agent=
}

run without
# shellcheck disable=SC2016 # for the inner shell
setsid bash -c 'for _ in $(seq '"$processes"'); do sleep 3600 & done; wait' &
sleepers=$!
sleep 5
run with
