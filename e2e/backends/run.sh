#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All kinds of destinations at once, each server behind a proxy with a new fault in every phase: nothing is lost, and
# only a profile whose answer was lost arrives twice. Prints the agent's memory in each phase.
#
#   run.sh SECONDS PHASES
#
# A folder has the truth.
set -eu
cd "$(dirname "$0")/../.."
# shellcheck source=e2e/backends/servers.sh
. e2e/backends/servers.sh
gcc -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -static -o build/e2e/burn e2e/workloads/burn.c
for name in goalloc goserve; do
	(cd e2e/workloads/$name && CGO_ENABLED=0 ../../../test/go.sh build -o ../../../build/e2e/$name .)
done
seconds=$1 phases=$2
faults=(down slow 429 lost 503 lying garbage cut 413 huge)

servers_start
containerd_start
container_run "$fixtures/burn"
for _ in 1 2 3; do
	container_run "$fixtures/goalloc"
	container_run "$fixtures/goserve"
done
only_own_containers "$work/own.json"
agent_start --config "$work/own.json" --window 2s --host-processes=false --off-cpu 1 --go-heap-profiler force \
	--destination "file=$work/out,bytes=4GiB" --destination "pyroscope=$(at pyroscope)" \
	--destination "parca=$(at parca)" --destination "otlp=$(at otlp)" --destination "coroot=$(at coroot)" \
	--destination "otlp=$(at collector)"

# The working process is the agent's child.
working=$(pgrep -P "$agent_pid")
kib() { awk -v name="$1:" '$1 == name { print $2 }' "/proc/$working/status"; }
queued() { metric podprof_export_queue_bytes; }
sent() { metric podprof_export_profiles_total 'outcome="sent"'; }
requests() { grep -c . "$work/faults/$1.requests" 2>/dev/null || true; }
anonymous=0
memory() {
	note "$(printf '%-6s RSS %6d KiB, anonymous %6d KiB, in the queues %6d KiB, sent %d' "$1" "$(kib VmRSS)" "$(kib RssAnon)" \
		$(($(queued) / 1024)) "$(sent)")"
}
declare -A had
phase() {
	local i
	for i in "${!servers[@]}"; do
		had[${servers[i]}]=$(requests "${servers[i]}")
		echo "${faults[($1 + 2 * i) % ${#faults[@]}]}" >"$work/faults/${servers[i]}.fault"
	done
	for ((i = 0; i < seconds; i++)); do
		sleep 1
		[ "$(kib RssAnon)" -le "$anonymous" ] || anonymous=$(kib RssAnon)
	done
	for i in "${servers[@]}"; do
		until_true has_more "$i" || fail "$i gets no requests: $(cat "$work/faults/$i.fault")"
	done
	memory "phase $1"
}
has_more() { [ "$(requests "$1")" -gt "$((${had[$1]:-0} + 1))" ]; }

some_sent() { [ "$(sent)" -gt 100 ]; }
until_true some_sent || fail "nothing is sent"
memory start
for ((p = 0; p < phases; p++)); do phase "$p"; done
rm "$work"/faults/*.fault
healthy_at=$SECONDS
is_empty() { [ "$(queued)" -lt 400000 ]; }
until_true is_empty || fail "the queues do not get empty"
note "recovered after $((SECONDS - healthy_at)) s; anonymous memory was at most $anonymous KiB"
# The containers' last windows, too: the end of the agent is no part of this test.
for id in "${containers[@]}"; do container_remove "$id"; done
no_series() { [ "$(metric podprof_series)" = 0 ]; }
until_true no_series || fail "removed containers have profiles"
sleep 10 # some windows
nothing_waits() { [ "$(queued)" = 0 ]; }
until_true nothing_waits || fail "$(queued) bytes stay in the queues"
memory end
dropped=$(metric podprof_export_profiles_total 'outcome="dropped')
[ "$dropped" = 0 ] || fail "$dropped profiles are dropped: $(metrics_page | grep 'profiles_total.*outcome="dropped.*[^0]$')"
agent_stop # sends the last window
servers_compare
