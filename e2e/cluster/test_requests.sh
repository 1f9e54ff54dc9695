#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The agent's requests to the kubelet and the API server, by the servers' own counts: at rest, and while 50 pods start.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

at_least() { [ "$("${@:2}")" -ge "$1" ]; }
pods=50

# Without a watch that follows one of full length: each lasts five to ten minutes, and the next minute may have its end.
asked_apiserver() {
	jq -n 'def seconds: sub("\\.[0-9]+"; "") | fromdate;
		reduce inputs as $e ({asked: 0, ended: 0};
			if $e.stage == "ResponseComplete" and $e.verb == "watch" and
				($e.stageTimestamp | seconds) - ($e.requestReceivedTimestamp | seconds) >=
				($e.requestURI | capture("timeoutSeconds=(?<s>[0-9]+)").s | tonumber) - 1 then .ended += 1
			elif $e.stage != "RequestReceived" then .
			elif $e.verb == "watch" and .ended > 0 then .ended -= 1
			else .asked += 1 end) | .asked' "$node/audit.log"
}
asked_kubelet() {
	kubectl get --raw "/api/v1/nodes/$node_name/proxy/metrics" |
		awk '/^kubelet_http_requests_total.*path="pods"/ { sum += $NF } END { printf "%d\n", sum }'
}

start_pods() {
	kubectl create namespace many >/dev/null
	kubectl -n many create deployment many --image=localhost/workloads:e2e --replicas=$pods --dry-run=client -o json |
		jq '.spec.template.spec += {terminationGracePeriodSeconds: 1} |
			.spec.template.spec.containers[0] += {imagePullPolicy: "Never", command: ["/work", "short"]}' |
		kubectl apply -f - >/dev/null
	kubectl -n many rollout status deployment/many --timeout="$patience" >/dev/null || fail "$pods pods do not start"
}

named() { [ "$(metric podprof_metadata_containers 'outcome="ok"')" -ge $((before + pods)) ]; }

# Containers with paths like pods' but outside of this cluster: podprof asks the kubelet repeatedly for ten seconds, or
# until their end, and then counts them.
strangers() { echo $(($(metric podprof_metadata_waits_total) - $(metric podprof_metadata_waits_total 'outcome="ok"'))); }

# quiet_minute SOURCE MOST: at most MOST requests, unless another program on this machine starts a container
quiet_minute() {
	local asked before
	for _ in 1 2 3 4 5; do
		before=$(strangers)
		asked=$("asked_$1")
		SECONDS=0
		sleep 60
		asked=$(($("asked_$1") - asked))
		note "$1: $asked requests in $SECONDS quiet seconds"
		[ "$asked" -gt $(($2 * SECONDS / 60)) ] || return 0
		sleep 20 # ten seconds, and the pause of a settled node's looks
		[ "$(strangers)" -gt "$before" ] || fail "$asked requests, more than $2 in a minute"
		note "$(($(strangers) - before)) containers of something else on this machine: once more"
	done
	fail "this machine starts containers all the time"
}

# count SOURCE MOST-QUIET MOST-BUSY FLAGS...: MOST-BUSY is "seconds" for one request in each second
count() {
	local source=$1 quiet=$2 busy=$3 asked
	shift 3
	podprof_install "$@"
	until_true at_least 10 metric podprof_metadata_containers 'outcome="ok"' || fail "no names"
	sleep 35 # until young containers are old
	quiet_minute "$source" "$quiet"
	before=$(metric podprof_metadata_containers 'outcome="ok"')
	asked=$("asked_$source")
	SECONDS=0
	start_pods
	until_true named || fail "$(metric podprof_metadata_containers 'outcome="ok"') of $((before + pods)) have names"
	asked=$(($("asked_$source") - asked))
	note "$source: $asked requests while $pods pods started, in $SECONDS s"
	[ "$busy" != seconds ] || busy=$((SECONDS + 1))
	[ "$asked" -le "$busy" ] || fail "$asked requests, more than $busy"
	kubectl delete namespace many --wait=true >/dev/null
}

workloads_up
# A container starts now and then
kubectl -n batch patch cronjob tick -p '{"spec": {"suspend": true}}' >/dev/null
kubectl -n batch delete pod restarting --now >/dev/null
count apiserver 0 2
# Each four seconds, and each second while something is not known: a container that ends or begins costs some requests
count kubelet 20 seconds --set metadata.source=kubelet --set metadata.kubeletVerify=none
