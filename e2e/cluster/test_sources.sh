#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# By each source of names in turn, with the rights that the chart gives for it and no more.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

# all_named: everybody that can have a name has one
all_named() {
	[ "$(metric podprof_metadata_containers 'outcome="ok"')" -ge "$(kubectl get pods -A --no-headers | grep -c Running)" ]
}
answers() { metric podprof_metadata_requests_total "source=\"$1\"" 'outcome="ok"'; }

# by SOURCE FLAGS...: installed so, names are there at once, from that source alone, and they are right
by() {
	local source=$1 began other
	shift
	podprof_install "$@"
	began=$(date +%s)
	until_true 30 all_named || fail "not all are named: $(podprof_get /-/ready)"
	for other in kubelet apiserver; do
		[ "$other" = "$source" ] && [ "$(answers "$other")" -ge 1 ] && continue
		[ "$other" != "$source" ] && [ "$(answers "$other")" = 0 ] && continue
		fail "$other has answered $(answers "$other") times"
	done
	podprof_get /-/ready | grep -qE "^metadata: ok,(.*;)? $source(: ok)?$" || fail "$(podprof_get /-/ready)"
	until_true 40 judge --since "$began" --expect deployment=10 --expect main=5 --expect static=5 || {
		judge --since "$began" --expect deployment=10 --expect main=5 --expect static=5
		fail "names by $source"
	}
	note "named by $source after $(($(date +%s) - began)) s: ${*:-as it is}"
}

workloads_up
kubelet_signed() {
	stop kubelet
	start_kubelet "$kubelet_certificate"
	until_true 30 kubectl get --raw "/api/v1/nodes/$node_name/proxy/healthz" || fail "the kubelet is not back"
}
kubelet_selfsigned() {
	stop kubelet
	start_kubelet
	until_true 30 kubectl get --raw "/api/v1/nodes/$node_name/proxy/healthz" || fail "the kubelet is not back"
}

# A kubelet that has signed its certificate itself, as most have
kubelet_selfsigned
podprof_uninstall 2>/dev/null || true
by apiserver
by apiserver --set metadata.source=apiserver
by kubelet --set metadata.source=kubelet --set metadata.kubeletVerify=none
# One that the cluster's CA has signed
kubelet_signed
by kubelet --set metadata.source=kubelet
by kubelet

# Nobody: ids for names, and none is wrong
podprof_install --set metadata.source=none
began=$(date +%s)
until_true 40 eval '[ "$(ls -t "$node/sink" | wc -l)" -gt 0 ] && [ "$(metric podprof_metadata_containers "outcome=\"not_asked\"")" -ge 10 ]' ||
	fail "containers that nobody asks for: $(podprof_get /-/ready)"
until_true 60 eval 'judge --since "$began" | grep -q nameless' || fail "nothing of those that have no names"
judge --since "$began" --absent deployment --absent main
kubelet_selfsigned
