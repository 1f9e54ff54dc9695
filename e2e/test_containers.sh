#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The whole way, twice: a C program that burns CPU and a Go program that allocates, each in its own container; from the
# kernel and the process's memory to a Pyroscope push handler, the store and the metrics.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

check() { "$fixtures/checkprofile" "$@" >>"$work/check.log" 2>&1 || fail "checkprofile $*"; }
have() { [ "$("$fixtures/checkprofile" "$@" 2>/dev/null | wc -l)" -gt 0 ]; }

mkdir "$work/sink" "$work/store"
"$fixtures/pyrosink" -dir "$work/sink" -address-file "$work/sink.address" >"$work/sink.log" 2>&1 &
background+=($!)
until_true test -s "$work/sink.address" || fail "no sink"

agent_start --window 8s --store-dir "$work/store" \
	--destination "pyroscope=http://$(cat "$work/sink.address")"
containerd_start

# The containers start after the agent, as on a node.
container_run "$fixtures/burn"
burn=$container burn_pod=$pod_uid
container_run "$fixtures/goalloc"
goalloc=$container
note "containers ${burn:0:12} (burn), ${goalloc:0:12} (goalloc)"

sink_has() { have -label "container=$1" -type "$2" "$work/sink"; }
until_true sink_has "$burn" cpu || fail "no CPU profile of the container arrived"
until_true sink_has "$goalloc" alloc_space || fail "no heap profile of the container arrived"
# Enough samples to exclude five points by chance: 1,500 samples have a standard deviation of 1.2.
samples_of() {
	"$fixtures/checkprofile" -label "container=$1" -type samples "$work/sink" |
		sed -n 's|.*samples/count total \([0-9]*\).*|\1|p'
}
enough() { [ "$(samples_of "$burn")" -ge 1500 ]; }
until_true enough || fail "only $(samples_of "$burn") samples of the burning container"

# Identity
jq -e --arg id "$burn" --arg uid "$burn_pod" -s 'map(select(.labels.container == $id)) | length > 0 and all(
	.labels.__name__ == "process_cpu" and .labels.node == "e2e-node" and .labels.pod_uid == $uid)' \
	"$work"/sink/*.json >/dev/null || fail "labels of the burning container"

# Function shares, and every stack reaches main
check -label "container=$burn" -type cpu -function '^burn_seventy$' -cum -share 70 -tolerance 5 "$work/sink"
check -label "container=$burn" -type cpu -function '^burn_thirty$' -cum -share 30 -tolerance 5 "$work/sink"
check -label "container=$burn" -type cpu -function '^main$' -cum -share 99 -tolerance 1 "$work/sink"

# The Go program's allocations, from its heap profile and from the counters, which include the program's other
# allocations
first=$(profile_of "$work/sink" "$goalloc")
check -type inuse_space -function '^main.allocateKept$' -cum -value 33554432 -tolerance 1 "$first"
check -label "container=$goalloc" -type alloc_space -function '^main.allocateLost$' -cum -value 134217728 -tolerance 4 "$work/sink"

bytes=$(metric container_go_alloc_bytes_total "container=\"$goalloc\"")
about=$((160 * 1024 * 1024))
if [ "$bytes" -lt $((about * 99 / 100)) ] || [ "$bytes" -gt $((about * 105 / 100)) ]; then
	fail "container_go_alloc_bytes_total is $bytes, about $about were allocated"
fi
objects=$(metric container_go_alloc_objects_total "container=\"$goalloc\"")
[ "$objects" -ge 10 ] || fail "container_go_alloc_objects_total is $objects, 10 were allocated"
note "Go: $bytes bytes, $objects objects"
for gauge in goroutines next_gc_bytes heap_alloc_bytes heap_objects heap_inuse_bytes heap_sys_bytes gc_heap_live_bytes inuse_bytes; do
	[ "$(metric "container_go_$gauge" "container=\"$goalloc\"")" -gt 0 ] || fail "container_go_$gauge"
done

# The page of metrics
curl -sf "http://$agent/metrics" >"$work/metrics.txt"
"$fixtures/promtool" check metrics <"$work/metrics.txt" >"$work/promtool.log" 2>&1 || fail "promtool check metrics"
while read -r family; do
	grep -q "^| \`$family\`" "$top/docs/metrics.md" || fail "docs/metrics.md does not tell about $family"
done < <(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$work/metrics.txt")
curl -sf -H 'Accept: application/openmetrics-text' "http://$agent/metrics" | tail -1 | grep -q '^# EOF$' || fail "OpenMetrics"
curl -sf "http://$agent/-/healthy" >/dev/null || fail "not healthy"

# Nothing was lost on the way
lost=$(($(metric podprof_samples_total 'outcome="lost') + $(metric podprof_profiled_samples_total 'outcome="lost"') +
	$(metric podprof_profiled_samples_total 'outcome="failed"')))
[ "$lost" = 0 ] || fail "$lost samples were lost"
note "samples: $(metric podprof_samples_total), lost 0, profiles sent: $(metric podprof_export_profiles_total 'outcome="sent"')"

# The page lists the container and has its flame graph
curl -sf "http://$agent/" >"$work/page.html"
grep -q "${burn:0:12}" "$work/page.html" || fail "the page does not show the container"
graph=$(sed -n 's|.*href="\(/entity/[^"]*'"${burn:0:12}"'[^"]*\)".*|\1|p' "$work/page.html" | head -n 1)
curl -sf "http://$agent$graph/flame.json?kind=cpu" | jq -e '.names | index("burn_seventy")' >/dev/null ||
	fail "the flame graph at $graph does not show burn_seventy"

curl -sf "http://$agent$graph" >"$work/entity.html"
for tag in title h1; do sed -n "s|.*<$tag>\\([^<]*\\)</$tag>.*|\\1|p" "$work/entity.html" >"$work/$tag"; done
[ "$(cat "$work/title")" = "$(cat "$work/h1") · podprof" ] || fail "the title is $(cat "$work/title")"

# The store: any pprof tool opens the files
agent_stop
files=("$work"/store/*"${burn:0:12}"*/*_cpu.pb.gz)
[ -e "${files[0]}" ] || fail "no CPU profile of the container in the store"
check -type cpu -function '^burn_seventy$' -cum -share 70 -tolerance 5 "${files[@]}"
"$top/test/go.sh" tool pprof -top "${files[@]}" 2>/dev/null | sed -n '5,12s/^/           /p'
