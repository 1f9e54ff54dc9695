#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names from the container runtime's state on the node, read with the chart's capabilities through the first process's
# root: without rights in the cluster, without a token, and with the node's cgroups as the only mount.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

# The running containers of pods: each needs a name
running() {
	kubectl get pods -A -o json | jq '[.items[].status | (.containerStatuses, .initContainerStatuses, .ephemeralContainerStatuses)
		| values | .[] | select(.state.running)] | length'
}
all_named() { [ "$(metric podprof_metadata_containers 'outcome="ok"')" -ge "$(running)" ]; }
pod_has() { kubectl -n podprof get pod "$(podprof_pod)" -o json | jq -r "$1"; }

[ "$node_shape" = container ] || fail "the first process is not the node's: PODPROF_E2E_SHAPE=container"
podprof_uninstall 2>/dev/null || true
podprof_install --set metadata.source=runtime
workloads_up
began=$(date +%s)

rights=$(kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -l app.kubernetes.io/instance=podprof -o name)
[ -z "$rights" ] || fail "rights for an agent that asks nobody: $rights"
mounts=$(pod_has '.spec.volumes[] | .hostPath.path // (select(.projected) | "a token")' | sort -u)
[ "$mounts" = /sys/fs/cgroup ] || fail "mounted into it: $mounts"

until_true all_named || fail "of $(running) containers $(metric podprof_metadata_containers 'outcome="ok"') are named"
until_true judge --by-runtime --since "$began" --expect deployment=20 --expect daemonset=10 --expect main=5 --expect sidecar=5 \
	--expect ephemeral=5 --expect static=5 --expect left=5 --expect right=5 --expect workGo=5 || {
	judge --by-runtime --verbose --since "$began" --expect deployment=20 --expect static=5
	fail "not all is there, or under its names"
}
# A new container, from its first sample on
kubectl -n shop delete pod newcomer --now --ignore-not-found >/dev/null
began=$(date +%s)
kubectl -n shop run newcomer --image=localhost/workloads:e2e --image-pull-policy=Never --command -- /work short >/dev/null
until_true judge --by-runtime --since "$began" --expect short=10 --nameless 0 || {
	judge --by-runtime --since "$began" --expect short=10 --nameless 0
	fail "a container that begins"
}
judge --by-runtime --since "$began" --expect short=10 --nameless 0
kubectl -n shop delete pod newcomer --now >/dev/null

for other in kubelet apiserver; do
	[ "$(metric podprof_metadata_requests_total "source=\"$other\"")" = 0 ] || fail "$other was asked"
done
note "$(podprof_get /-/ready | grep '^metadata'), $(metric podprof_metadata_containers 'outcome="ok"') containers named"
note "files of containerd read: $(metric podprof_metadata_state_reads_total 'source="containerd"' 'outcome="ok"')," \
	"refused: $(metric podprof_metadata_state_reads_total 'outcome="refused"')"
podprof_uninstall
