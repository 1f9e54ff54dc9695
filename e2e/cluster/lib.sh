# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The common part of the tests on the node. run.sh starts each test, with the paths of programs.

set -eu -o pipefail
cluster=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$cluster/../.." && pwd)
# shellcheck source=e2e/common.sh
. "$top/e2e/common.sh"
# shellcheck source=e2e/cluster/node.sh
. "$cluster/node.sh"

# For kubectl, as long as until_true() waits
patience=${PODPROF_E2E_PATIENCE:-300}s

# ---------------------------------------------------------------- podprof in the cluster

# Needed by each installation here: an image already on the node, destinations, and windows shorter than a minute.
install_flags=(--namespace podprof --set image.repository=localhost/podprof --set image.tag=e2e --set image.pullPolicy=Never
	--set "destinations={pyroscope=http://$node_address:4040}" --set config.window=10s)

# podprof_install FLAGS...: like a user; a second call upgrades. helm's --wait ignores DaemonSets whose pods never
# start.
podprof_install() {
	helm upgrade --install podprof "$top/charts/podprof" --create-namespace "${install_flags[@]}" "$@" >/dev/null ||
		fail "helm"
	podprof_rollout
}

# By the stored state: "kubectl rollout status" begins with kube-apiserver's cache. On a busy machine the cache may hold
# the DaemonSet from before an upgrade, with its rollout done.
is_rolled_out() {
	kubectl -n podprof get ds podprof -o json | jq -e '.metadata.generation as $now | .status |
		.observedGeneration == $now and .desiredNumberScheduled == 1 and .updatedNumberScheduled == 1 and
		.numberAvailable == 1'
}

podprof_rollout() {
	until_true is_rolled_out || {
		kubectl -n podprof describe pods -l app.kubernetes.io/name=podprof | tail -n 20
		podprof_log | tail -n 20
		fail "podprof does not start"
	}
}

# Also until the pod is gone, which helm does not wait for. After a restart of the API server the garbage collector needs up
# to minutes to follow it again. If it then finds a new DaemonSet of the same name, it leaves the old one's pod running.
podprof_uninstall() {
	helm uninstall podprof --namespace podprof --wait >/dev/null || return
	until_true has_no_pod || fail "a pod stays after the uninstall"
}
has_no_pod() { kubectl -n podprof get pods -l app.kubernetes.io/name=podprof -o json | jq -e '.items == []'; }
# Not the pod just ended by an upgrade
podprof_pod() {
	kubectl -n podprof get pods -l app.kubernetes.io/name=podprof -o json |
		jq -r '.items | map(select(.metadata.deletionTimestamp == null)) | .[0].metadata.name'
}
podprof_log() { kubectl -n podprof logs ds/podprof; }
# By the API server's proxy, because only the cluster's own network leads there
podprof_get() { kubectl get --raw "/api/v1/namespaces/podprof/pods/$(podprof_pod):7070/proxy$1"; }

metrics_page() { podprof_get /metrics; }

# restarts: of podprof's container; no test here may end the container
restarts() { kubectl -n podprof get pod "$(podprof_pod)" -o jsonpath='{.status.containerStatuses[*].restartCount}'; }

# ---------------------------------------------------------------- workloads

# No error for existing objects
workloads_up() {
	kubectl apply -f "$cluster/workloads/pods.yaml" >/dev/null
	cp "$cluster/workloads/static.yaml" "$node/manifests/"
	kubectl -n shop wait --for=condition=Ready pod/mixed --timeout="$patience" >/dev/null || fail "the pods do not start"
	[ -z "$(kubectl -n shop get pod mixed -o jsonpath='{.spec.ephemeralContainers[*].name}')" ] || return 0
	kubectl -n shop debug mixed --image=localhost/workloads:e2e --image-pull-policy=Never --container=debugger \
		--profile=general -- /work ephemeral >/dev/null || fail "kubectl debug"
}

workloads_down() {
	rm -f "$node/manifests/static.yaml"
	kubectl delete -f "$cluster/workloads/pods.yaml" >/dev/null
}

judge() { "$cluster/series.py" "$node/sink" "$node/seen" "$@"; }
