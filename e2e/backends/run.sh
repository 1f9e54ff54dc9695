#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All kinds of destinations at once, each server behind a proxy with a new fault in every phase: nothing is lost, and
# only a profile whose answer was lost arrives twice. Prints the agent's memory in each phase.
#
#   run.sh SECONDS PHASES
#
# The servers are a collector, Pyroscope's push handler, and stand-ins for Parca, Coroot and OTLP that check what the
# servers check. A folder has the truth.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build/e2e build/test/results
for tool in pyrosink backends checkprofile collector; do
	ln -sf "$(test/tool.sh $tool)" build/e2e/$tool
done
gcc -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -static -o build/e2e/burn e2e/workloads/burn.c
for name in goalloc goserve; do
	(cd e2e/workloads/$name && CGO_ENABLED=0 ../../../test/go.sh build -o ../../../build/e2e/$name .)
done
# shellcheck source=e2e/lib.sh
. e2e/lib.sh
seconds=$1 phases=$2
faults=(down slow 429 lost 503 lying garbage cut 413 huge)
servers=(pyroscope parca otlp coroot collector)

mkdir "$work/sink" "$work/faults"
"$fixtures/pyrosink" -dir "$work/sink" -address-file "$work/sink.address" >"$work/sink.log" 2>&1 &
background+=($!)
"$fixtures/backends" -out "$work/entries" -address-file "$work/backends.address" >"$work/check.log" 2>&1 &
background+=($!)
collector=127.0.0.1:$(free_port)
cat >"$work/collector.yaml" <<EOF2
receivers: {otlp: {protocols: {http: {endpoint: "$collector"}}}}
exporters: {file: {path: "$work/collected", format: proto}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [file]}}
EOF2
"$fixtures/collector" --config "$work/collector.yaml" --feature-gates=service.profilesSupport >"$work/collector.log" 2>&1 &
background+=($!)
until_true test -s "$work/sink.address" -a -s "$work/backends.address" || fail "no sinks"
answers() { [ "$(curl -s -o "$work/body" -w '%{http_code}' -X POST "http://$collector/v1development/profiles")" != 000 ]; }
until_true answers || fail "no collector: $(tail -n 3 "$work/collector.log")"
stand_ins=http://$(cat "$work/backends.address")
"$fixtures/backends" proxy -dir "$work/faults" "pyroscope=http://$(cat "$work/sink.address")" "parca=$stand_ins" \
	"otlp=$stand_ins" "coroot=$stand_ins" "collector=http://$collector" >"$work/proxy.log" 2>&1 &
background+=($!)
for name in "${servers[@]}"; do
	until_true test -s "$work/faults/$name.address" || fail "no proxy"
done
at() { echo "http://$(cat "$work/faults/$1.address")"; }

agent_start --window 2s --host-processes=false --off-cpu 1 --go-heap-profiler force \
	--destination "file=$work/out,bytes=4GiB" --destination "pyroscope=$(at pyroscope)" \
	--destination "parca=$(at parca)" --destination "otlp=$(at otlp)" --destination "coroot=$(at coroot)" \
	--destination "otlp=$(at collector)"
containerd_start
container_run "$fixtures/burn"
for _ in 1 2 3; do
	container_run "$fixtures/goalloc"
	container_run "$fixtures/goserve"
done

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
sleep 10 # some windows
nothing_waits() { [ "$(queued)" = 0 ]; }
until_true nothing_waits || fail "$(queued) bytes stay in the queues"
memory end
dropped=$(metric podprof_export_profiles_total 'outcome="dropped')
[ "$dropped" = 0 ] || fail "$dropped profiles are dropped: $(metrics_page | grep 'profiles_total.*outcome="dropped.*[^0]$')"
agent_stop # sends the last window
for name in "${servers[@]}"; do
	note "$name: $(sort "$work/faults/$name.requests" | uniq -c | awk '{ printf "%s %s, ", $2, $1 }')"
done

[ ! -d "$work/faults/collector.lost" ] || lost="collector=$work/faults/collector.lost"
"$fixtures/backends" read -out "$work/stored" "folder=$work/out" "pyroscope=$work/sink" "collector=$work/collected" 2>"$work/check.log" ||
	fail "read: $(tail -n 3 "$work/check.log")"
"$fixtures/backends" read -out "$work/excused" -lost ${lost:+"$lost"} 2>"$work/check.log" || fail "read: $(tail -n 3 "$work/check.log")"
status=0
"$fixtures/backends" compare -lost "$work/faults/lost" "$work/entries" "$work/stored" "$work/excused" >"$work/compared" 2>"$work/compare.log" || status=$?
while read -r line; do note "$line"; done <"$work/compared"
[ $status = 0 ] || fail "$(grep -c . "$work/compare.log") differences: $(head -n 5 "$work/compare.log")"
