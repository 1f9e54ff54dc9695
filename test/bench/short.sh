#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Short-lived processes: 200 a second, /bin/true and a program of 2 ms by turns. What the agent costs
# meanwhile, how many of the samples that their CPU time is worth come out under their names, and in
# how many of those the innermost user frame has a place in a file.
#
#   short.sh [SECONDS]     (30)
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-30}
rate=97
work=$(mktemp -d /tmp/podprof-short-XXXXXX)
agent=
cleanup() {
	[ -z "$agent" ] || kill "$agent" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

hz=$(getconf CLK_TCK)
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
metric() { awk -v name="$1" '$1 == name { print $2 }' "$work/metrics"; }
# total FILE...: samples of these profiles; flat NAME FILE...: CPU of a function by itself, in samples
total() { for file; do build/podprof inspect profile "$file"; done |
	awk '$1 == "types" && $2 == "samples/count" { n += $3 } END { print n + 0 }'; }

gcc -O2 -fomit-frame-pointer -o "$work/shortburn" test/bench/short_burn.c
build/podprof agent --window 10s --cpu-rate "$rate" --listen 127.0.0.1:17171 \
	--store-dir "$work/store" 2>"$work/log" &
agent=$!
sleep 3
idle=$(cpu_ticks "$agent")
sleep 10
before=$(cpu_ticks "$agent")
cpu_ns=$("$work/shortburn" spawn 200 "$seconds" /bin/true "$work/shortburn")
after=$(cpu_ticks "$agent")
curl -s http://127.0.0.1:17171/metrics >"$work/metrics"
kill -TERM "$agent"
wait "$agent" || true
agent=
cpus=$(nproc)
printf 'short: agent CPU %.2f %% of the node before, %.2f %% with them\n' \
	"$(echo "scale=4; ($before - $idle) / $hz / 10 / $cpus * 100" | bc)" \
	"$(echo "scale=4; ($after - $before) / $hz / $seconds / $cpus * 100" | bc)"
got=$(total "$work"/store/shortburn-*/*.pb.gz "$work"/store/true-*/*.pb.gz)
printf 'short: %d samples under their names; their CPU time is worth %d\n' "$got" \
	"$(echo "$cpu_ns * $rate / 1000000000" | bc)"
grep -E '^podprof_(space_reads|process_events_lost|resolved_pcs)' "$work/metrics" | grep -v ' 0$'
