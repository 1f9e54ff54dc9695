#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every way in which a container comes to be, and all that podprof sends is named as the API server says. It
# comes first on a node: init containers run once, and of others' settings nothing may have arrived.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

podprof_install --set config.go-heap-profiler=force-annotated
workloads_up

# Each in the pod, the namespace and under the service_name that are its own, and what was sampled before its
# name was known, too.
everything=(--expect deployment=30 --expect daemonset=15 --expect statefulset=15 --expect job=5
	--expect cronjob=5 --expect restarting=5 --expect init=3 --expect sidecar=10 --expect main=10
	--expect ephemeral=10 --expect left=10 --expect right=10 --expect annotated=10 --expect labelled=10
	--expect static=10 --expect workGo=10 --expect allocateUnasked=1 --nameless 5 --pod-only 20
	--absent optedout)
until_true judge "${everything[@]}" || {
	judge "${everything[@]}"
	fail "not all is there, or under its names"
}
judge "${everything[@]}"

# The Go programs' numbers, theirs alone, on a page that Prometheus can read
page=$node/metrics
podprof_get /metrics >"$page"
"$promtool" check metrics <"$page" || fail "promtool"
[ "$(metric container_go_alloc_bytes_total 'namespace="shop",' 'container="api"')" -gt 10000000 ] || fail "what the Go program has allocated"
[ "$(metric container_go_heap_profile_info 'service_name="unsampled"' 'state="forced"')" = 1 ] ||
	fail "an annotation that asks for heap profiles: $(grep unsampled "$page")"
# (what has no namespace is somebody else's on this machine)
others=$(grep '^container_go_.*namespace=' "$page" | grep -v 'container="\(api\|app\)",') && fail "not of Go: $others"
note "$(grep -c '^container_go_' "$page") Go metrics, of the Go programs alone"
