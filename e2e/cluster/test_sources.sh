#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Each source of names in turn, with exactly the chart's rights for the source.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

# all_named: every container that can have a name has one
all_named() {
	local pods
	pods=$(kubectl get pods -A -o json | jq '[.items[] | select(.status.phase == "Running")] | length') &&
		[ "$(metric podprof_metadata_containers 'outcome="ok"')" -ge "$pods" ]
}
answers() { metric podprof_metadata_requests_total "source=\"$1\"" 'outcome="ok"'; }
# The container runtime's state has the names earlier than the servers
answered() { [ "$(answers "$1")" -ge 1 ] && podprof_get /-/ready | grep -qE "^metadata: ok,(.*;)? $1(: ok)?$"; }

# by SOURCE FLAGS...: after this installation names are there at once, from this source alone, and right
by() {
	local source=$1 began other
	shift
	podprof_install "$@"
	began=$(date +%s)
	until_true answered "$source" || fail "$source has answered $(answers "$source") times: $(podprof_get /-/ready)"
	until_true all_named || fail "not all are named: $(podprof_get /-/ready)"
	for other in kubelet apiserver; do
		[ "$other" = "$source" ] || [ "$(answers "$other")" = 0 ] || fail "$other has answered $(answers "$other") times"
	done
	until_true judge --since "$began" --expect deployment=10 --expect main=5 --expect static=5 || {
		judge --since "$began" --expect deployment=10 --expect main=5 --expect static=5
		fail "names by $source"
	}
	note "named by $source after $(($(date +%s) - began)) s: ${*:-as it is}"
}

# opted_out N: the number of excluded pods, each with its container and its sandbox. podprof recognises a sandbox some
# ten seconds after the agent's start, and counts it from then on.
opted_out() { [ "$(metric podprof_entities_excluded)" = $((2 * $1)) ]; }

# followed: a pod opts out, and in again; the source reports both within 5 seconds, plus the delay of observing
followed() {
	local took
	until_true opted_out 1 || fail "not one pod is left out: $(metric podprof_entities_excluded)"
	SECONDS=0
	kubectl -n shop annotate pod annotated podprof.io/profile=false >/dev/null
	until_true opted_out 2 || fail "an annotation is not seen: $(podprof_get /-/ready)"
	took=$SECONDS
	kubectl -n shop annotate pod annotated podprof.io/profile- >/dev/null
	until_true opted_out 1 || fail "that an annotation is gone is not seen"
	note "an annotation was seen after $took s, and its end after $((SECONDS - took)) s: $(podprof_get /-/ready | grep ^metadata)"
	in_time "$SECONDS" 16 "two annotations seen"
}

# The kubelet's list with more data: an annotation has at most 256 KiB, and so has a pod
large_list() {
	local pod
	for pod in annotated labelled; do
		jq -n --arg ballast "$(printf '%0100000d' 0)" \
			'{metadata: {annotations: {a: $ballast, b: $ballast}}}' >"$node/ballast.json"
		kubectl -n shop patch pod "$pod" --patch-file "$node/ballast.json" >/dev/null
	done
}
small_list() {
	local pod
	for pod in annotated labelled; do kubectl -n shop annotate pod "$pod" a- b- >/dev/null; done
}
is_watching() { podprof_get /-/ready | grep -q "^metadata: .*its lists are large.*; apiserver: ok"; }

workloads_up
kubelet_signed() {
	stop kubelet
	start_kubelet "$kubelet_certificate"
	until_true kubectl get --raw "/api/v1/nodes/$node_name/proxy/healthz" || fail "the kubelet is not back"
}
kubelet_selfsigned() {
	stop kubelet
	start_kubelet
	until_true kubectl get --raw "/api/v1/nodes/$node_name/proxy/healthz" || fail "the kubelet is not back"
}

# A kubelet with a self-signed certificate, as most have
kubelet_selfsigned
podprof_uninstall 2>/dev/null || true
by apiserver
by apiserver --set metadata.source=apiserver
by kubelet --set metadata.source=kubelet --set metadata.kubeletVerify=none
# A certificate signed by the cluster's CA
kubelet_signed
by kubelet --set metadata.source=kubelet
by kubelet
followed

# The list becomes too large for frequent polling
large_list
until_true is_watching || fail "the API server is not watched: $(podprof_get /-/ready)"
followed
small_list

# Nobody: ids for names, and none is wrong
podprof_install --set metadata.source=none
began=$(date +%s)
until_true eval '[ "$(ls -t "$node/sink" | wc -l)" -gt 0 ] && [ "$(metric podprof_metadata_containers "outcome=\"not_asked\"")" -ge 10 ]' ||
	fail "containers that nobody asks for: $(podprof_get /-/ready)"
until_true eval 'judge --since "$began" | grep -q nameless' || fail "nothing of those that have no names"
judge --since "$began" --absent deployment --absent main
kubelet_selfsigned
