#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The rights are revoked while the agent runs, and restored: named containers keep their names, new ones have none, with
# the reason, and nothing else ends.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

answers() { metric podprof_metadata_requests_total "source=\"$1\"" "outcome=\"$2\""; }
at_least() { [ "$("${@:2}")" -ge "$1" ]; }
ready_says() { podprof_get /-/ready | grep -q "$1"; }

revoke() {
	kubectl get clusterrolebinding podprof -o json |
		jq 'del(.metadata.resourceVersion, .metadata.uid, .metadata.creationTimestamp)' >"$node/binding.json"
	kubectl delete clusterrolebinding podprof >/dev/null
}
give_back() { kubectl apply -f "$node/binding.json" >/dev/null 2>&1; }

newcomer() {
	kubectl -n shop delete pod "$1" --now --ignore-not-found >/dev/null
	kubectl -n shop run "$1" --image=localhost/workloads:e2e --image-pull-policy=Never --command -- /work short >/dev/null
	# (the scheduler and the controllers have to find the API server again)
	kubectl -n shop wait --for=condition=Ready "pod/$1" --timeout="$patience" >/dev/null || fail "pod $1"
}

# revoked SOURCE: requests are denied from then on
revoked() {
	local source=$1 began
	began=$(date +%s)
	newcomer "new-$source"
	until_true ready_says "^metadata: failing, $source: .*40[13]" || fail "still said to be ready: $(podprof_get /-/ready)"
	at_least 1 answers "$source" denied || fail "no denial was counted"
	until_true judge --since "$began" --expect deployment=5 --expect main=2 || fail "names were not kept"
	judge --since "$began" --expect deployment=5 --absent short || fail "a name that nobody has told"
	note "denied by $source: $(podprof_get /-/ready | tr '\n' ' ')"
	began=$(date +%s)
	give_back
	until_true judge --since $((began - 10)) --expect short=1 || fail "the newcomer has no name"
	note "a name for the newcomer $(($(date +%s) - began)) s after the right was given back"
	kubectl -n shop delete pod "new-$source" --now >/dev/null
	[ "$(restarts)" = 0 ] || fail "it has ended $(restarts) times"
}

workloads_up
podprof_install --set metadata.source=kubelet --set metadata.kubeletVerify=none
until_true at_least 10 metric podprof_metadata_containers 'outcome="ok"' || fail "no names"
revoke
revoked kubelet

podprof_install --set metadata.source=apiserver
until_true at_least 10 metric podprof_metadata_containers 'outcome="ok"' || fail "no names"
revoke
# An open watch continues until its end
stop kube-apiserver
start_apiserver
revoked apiserver
