#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two agents look at a node that is a container. For the inner agent, in a pod, PIDs differ from the kernel's. For the
# outer agent, the pods' cgroups are below the node's cgroup, which looks like a Docker container's: of several nested
# containers the innermost has the sample.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

[ "$node_shape" = container ] || fail "the node is no container: PODPROF_E2E_SHAPE=container"
outer_sink=$node/outer
mkdir -p "$outer_sink"

# Outside of the whole node, except for its network
start_outside() {
	nsenter --net --target "$(cat "$node/pids/holder")" -- "$@" >>"$node/logs/outer.log" 2>&1 </dev/null &
	echo $! >"$node/pids/outer"
	disown
}
outer_get() { nsenter --net --target "$(cat "$node/pids/holder")" -- curl -sf "http://127.0.0.1:7171$1"; }

workloads_up
podprof_install
start outer-sink "$pyrosink" -dir "$outer_sink" -listen "$node_address:4041"
trap 'stop outer; stop outer-sink' EXIT
began=$(date +%s)
start_outside "$top/build/podprof" agent --listen 127.0.0.1:7171 --window 5s --node-name outer \
	--destination "pyroscope=http://$node_address:4041"
until_true outer_get /-/ready || fail "the agent outside is not ready: $(tail -n 5 "$node/logs/outer.log")"

everybody=(--since "$began" --expect deployment=50 --expect daemonset=20 --expect statefulset=20 --expect main=20
	--expect sidecar=20 --expect static=20 --expect left=20 --expect right=20 --expect annotated=20
	--expect labelled=20 --expect workGo=20)
outer_judge() { "$cluster/series.py" "$outer_sink" "$node/seen" --by-id "$@" "${everybody[@]}"; }
until_true outer_judge || {
	outer_judge --verbose
	fail "seen from outside, not all is there, or it is another's"
}
until_true judge "${everybody[@]}" || {
	judge "${everybody[@]}" --verbose
	fail "seen from inside, not all is there, or it is another's"
}
note "from outside:"
outer_judge
note "from inside:"
judge "${everybody[@]}"

# The node's own daemons are the outer container's
jq -e --arg id "${node_outer##*/}" -s 'any(.labels.container == $id and .labels.pod_uid == null)' "$outer_sink"/*.json >/dev/null ||
	fail "nothing of the node itself"
# Both agents read Go's heaps in processes of an inner namespace, by their own PIDs
has_heap() {
	jq -es 'any(.labels.__name__ == "memory" and (.labels.pod == null or .labels.container == "api") and
		.functions["main.allocateGo"] != null)' "$1"/*.json >/dev/null
}
until_true has_heap "$outer_sink" || fail "no Go heap from outside"
until_true has_heap "$node/sink" || fail "no Go heap from inside"
[ "$(metric container_go_alloc_bytes_total 'namespace="shop",' 'container="api"')" -gt 1000000 ] || fail "no Go heap from inside"
lost() { awk '/^podprof_entity_lookups_total\{outcome="unknown/ { sum += $NF } END { printf "%d", sum }'; }
note "samples whose entity was not found: outside $(outer_get /metrics | lost), inside $(podprof_get /metrics | lost)"
