#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An upgrade with other values makes a new pod with these values; an uninstall leaves nothing in the cluster or on the
# node.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

# The ids of the agent's BPF programs: this machine may run other agents
bpf_programs() {
	local id pid
	id=$(kubectl -n podprof get pod "$(podprof_pod)" -o jsonpath='{.status.containerStatuses[0].containerID}')
	pid=$(node_ctr task ls | awk -v id="${id##*/}" '$1 == id { print $2 }')
	# (the first process watches over the second)
	for pid in "$pid" $(cat "/proc/$pid/task/$pid/children"); do
		cat "/proc/$pid/fdinfo/"* 2>/dev/null || true
	done | awk '$1 == "prog_id:" { print $2 }' | sort -un
}
# loaded: those of $programs that the kernel has. Status 1 without an answer of bpftool.
loaded() {
	local all
	all=$("$bpftool" -j prog show | jq '.[].id') && (grep -xF "$programs" <<<"$all" || true)
}
left() { kubectl get all,configmaps,serviceaccounts,clusterroles,clusterrolebindings -A \
	-l app.kubernetes.io/instance=podprof -o name; }
bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)

podprof_install --set config.cpu-rate=19
one=$(podprof_pod)
podprof_install --set config.cpu-rate=49
[ "$(podprof_pod)" != "$one" ] || fail "the pod is the same after an upgrade"
kubectl -n podprof get configmap -l app.kubernetes.io/name=podprof -o jsonpath='{.items[0].data.config\.json}' | jq -e '."cpu-rate" == 49' >/dev/null || fail "the settings are not new"
[ "$(left | wc -l)" -ge 5 ] || fail "what was installed has no label: $(left)"
programs=$(bpf_programs)
[ -n "$programs" ] || fail "the agent has no BPF programs"
[ "$(loaded)" = "$programs" ] || fail "of the BPF programs $(paste -sd' ' <<<"$programs") only $(loaded | paste -sd' ') are seen"
note "installed: $(left | wc -l) objects, $(wc -w <<<"$programs") BPF programs"

podprof_uninstall
# Not without an answer of the API server
gone() {
	local objects
	objects=$(left) && [ -z "$objects" ]
}
until_true gone || fail "left behind: $(left)"
no_programs() {
	local found
	found=$(loaded) && [ -z "$found" ]
}
until_true no_programs || fail "its BPF programs are still there"
note "nothing is left"
