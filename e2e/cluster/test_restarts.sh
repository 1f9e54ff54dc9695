#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Everything around the agent is restarted or replaced while it runs; the agent continues, and opens at most one watch
# at the API server.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

at_least() { [ "$("${@:2}")" -ge "$1" ]; }

# asked VERB: number of podprof's requests in kube-apiserver's audit log, from line $mark on
asked() { tail -n "+$((mark + 1))" "$node/audit.log" | jq -s --arg verb "$1" \
	'map(select(.stage == "RequestReceived" and .verb == $verb)) | length'; }
watching() { at_least 1 asked watch; }
set_mark() { mark=$(wc -l <"$node/audit.log"); }

# newly_named: new pods get their names
newly_named() {
	local began
	began=$(date +%s)
	kubectl -n shop delete pod -l app=web --wait=false >/dev/null
	# the delay of controllers after a server's return is not podprof's
	kubectl -n shop rollout status deployment/web --timeout="$patience" >/dev/null || fail "no new pods"
	until_true judge --since "$began" --expect deployment=5 || {
		judge --since "$began" --expect deployment=5
		fail "new pods have no names"
	}
	[ "$(restarts)" = 0 ] || fail "it has ended $(restarts) times"
}

workloads_up
set_mark
podprof_install
until_true at_least 10 metric podprof_metadata_containers 'outcome="ok"' || fail "no names"
# The container runtime's state has the names earlier than the API server
until_true watching || fail "it does not watch: $(podprof_get /-/ready)"
note "start: $(asked list) lists, $(asked watch) watches"

set_mark
stop kubelet
newly_sampled=$(metric podprof_samples_total)
start_kubelet
kubectl wait --for=condition=Ready "node/$node_name" --timeout="$patience" >/dev/null
newly_named
[ "$(metric podprof_samples_total)" -gt "$newly_sampled" ] || fail "no samples while the kubelet was away"
[ "$(asked list)" = 0 ] || fail "$(asked list) lists because a kubelet was restarted"
note "the kubelet restarted, pods replaced: $(asked list) lists, $(asked watch) watches"

set_mark
stop kube-apiserver
sleep 15
start_apiserver
until_true watching || fail "it does not watch again"
newly_named
[ "$(asked list)" -le 1 ] && [ "$(asked watch)" -le 2 ] || fail "$(asked list) lists, $(asked watch) watches after an outage"
note "kube-apiserver away for 15 s: $(asked list) lists, $(asked watch) watches"

# Another account with the same name: all old tokens are invalid, until the kubelet fetches a new one
kubectl -n podprof get serviceaccount podprof -o json | jq 'del(.metadata.uid, .metadata.resourceVersion)' >"$node/account.json"
kubectl -n podprof delete serviceaccount podprof >/dev/null
kubectl apply -f "$node/account.json" >/dev/null 2>&1
stop kube-apiserver # also ends the open watch
start_apiserver
denied() { at_least 1 metric podprof_metadata_requests_total 'source="apiserver"' 'outcome="denied"'; }
# (between two tries are up to 30 s)
until_true denied || fail "a token of an account that is gone is good for something"
set_mark
stop kubelet
start_kubelet
until_true watching || fail "the new token is not used"
newly_named
note "another token: $(asked list) lists, $(asked watch) watches"
