#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All ways to create a container; podprof's names must equal the API server's. Runs first on a node: init containers run
# once, and no profile with other settings may have arrived.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

podprof_install --set config.go-heap-profiler=force-annotated
workloads_up

# Each container has its own pod, namespace and service_name, also in samples from before its name was known.
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

# The Go programs' values, only theirs, on a page that Prometheus can read
page=$node/metrics
podprof_get /metrics >"$page"
"$promtool" check metrics <"$page" || fail "promtool"
[ "$(metric container_go_alloc_bytes_total 'namespace="shop",' 'container="api"')" -gt 10000000 ] || fail "what the Go program has allocated"
[ "$(metric container_go_heap_profile_info 'service_name="unsampled"' 'state="forced"')" = 1 ] ||
	fail "an annotation that asks for heap profiles: $(grep unsampled "$page")"
# (samples without a namespace belong to other programs of this machine)
others=$(grep '^container_go_.*namespace=' "$page" | grep -v 'container="\(api\|app\)",') && fail "not of Go: $others"
note "$(grep -c '^container_go_' "$page") Go metrics, of the Go programs alone"
