#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tokens of ten minutes, the shortest life in Kubernetes: the kubelet replaces the file's text after four fifths of the
# time, and the test waits until the first tokens are invalid. One agent asks the kubelet, one the API server; neither
# may ever be refused. Eleven minutes: "make e2e-long".
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

# The mount by the service account's admission, except for the token's life
cat >"$node/tokens.yaml" <<-'EOF'
	extraVolumes:
	  - name: token
	    projected:
	      sources:
	        - serviceAccountToken: { path: token, expirationSeconds: 600 }
	        - configMap: { name: kube-root-ca.crt, items: [{ key: ca.crt, path: ca.crt }] }
	extraVolumeMounts:
	  - { name: token, mountPath: /var/run/secrets/kubernetes.io/serviceaccount, readOnly: true }
EOF

# Two agents: podprof itself, and another one beside it with the other source
beside() { helm upgrade --install beside "$top/charts/podprof" --create-namespace "${install_flags[@]}" --namespace beside "$@" >/dev/null; }
page() { kubectl get --raw "/api/v1/namespaces/$1/pods/$(pod_of "$1"):7070/proxy$2"; }
pod_of() { kubectl -n "$1" get pods -l app.kubernetes.io/name=podprof -o jsonpath='{.items[0].metadata.name}'; }
token_of() { inside cat "$node/kubelet/pods/$(kubectl -n "$1" get pod "$(pod_of "$1")" -o jsonpath='{.metadata.uid}')/volumes/kubernetes.io~projected/token/token"; }
# Nothing, and status 1, without a page: awk alone would print 0
refused() {
	local text
	text=$(page "$1" /metrics) && awk '/^podprof_metadata_requests_total.*outcome="denied"/ { sum += $NF } END { printf "%d", sum }' <<<"$text"
}
answered() { page "$1" /metrics | awk -v s="source=\"$2\"" '/^podprof_metadata_requests_total.*outcome="ok"/ && index($0, s) { sum += $NF } END { printf "%d", sum }'; }
# is_good TOKEN: for the API server
is_good() { nsenter --net --target "$(cat "$node/pids/holder")" -- curl -sf --cacert "$node/pki/ca.crt" -H "Authorization: Bearer $1" "$apiserver/api" >/dev/null; }
watching() { [ "$(answered podprof apiserver)" -gt "$1" ]; }

podprof_install -f "$node/tokens.yaml" --set metadata.source=apiserver
beside -f "$node/tokens.yaml" --set metadata.source=kubelet --set metadata.kubeletVerify=none
trap 'helm uninstall beside --namespace beside --wait >/dev/null' EXIT
kubectl -n beside rollout status ds/beside-podprof --timeout="$patience" >/dev/null || fail "the second agent does not start"
kubectl create namespace shop >/dev/null 2>&1 || true
kubectl -n shop create deployment web --image=localhost/workloads:e2e --dry-run=client -o json |
	jq '.spec.template.spec.containers[0] += {imagePullPolicy: "Never", command: ["/work", "deployment"]}' |
	kubectl apply -f - >/dev/null
kubectl -n shop rollout status deployment/web --timeout="$patience" >/dev/null || fail "the pod does not start"
first=$(token_of podprof) first_beside=$(token_of beside)
is_good "$first" || fail "a new token is good for nothing"
note "tokens for $(cut -d . -f 2 <<<"$first" | tr '_-' '/+' | base64 -d 2>/dev/null | jq '.exp - .iat') s"

SECONDS=0
expired() { ! is_good "$first" && ! is_good "$first_beside"; }
replaced=
while ! expired; do
	[ $SECONDS -lt 780 ] || fail "the first tokens are good for ever"
	[ -n "$replaced" ] || [ "$(token_of podprof)" = "$first" ] || replaced=$SECONDS
	sleep 10
done
note "replaced after ${replaced:-no} s, expired after $SECONDS s"
[ -n "$replaced" ] || fail "the kubelet has not replaced the token"

# new_pod: and its names, by a request to the kubelet
new_pod() {
	local began
	began=$(date +%s)
	kubectl -n shop delete pod -l app=web --wait=false >/dev/null
	kubectl -n shop rollout status deployment/web --timeout="$patience" >/dev/null || fail "no new pods"
	until_true judge --since "$began" --expect deployment=5 --nameless 5 || {
		judge --since "$began" --expect deployment=5 --nameless 5
		fail "new pods have no names"
	}
}

# A request with the first token is refused now.
asked=$(answered beside kubelet)
new_pod
[ "$(answered beside kubelet)" -gt "$asked" ] || fail "the kubelet was not asked again"
# Without an API server kubelets refuse every token, so this test comes first
[ "$(refused beside)" = 0 ] || fail "the kubelet has refused $(refused beside) times"
watches=$(answered podprof apiserver)
stop kube-apiserver
start_apiserver
until_true watching "$watches" || fail "no new watch: $(page podprof /-/ready)"
[ "$(refused podprof)" = 0 ] || fail "the API server has refused $(refused podprof) times"
new_pod
[ "$(restarts)" = 0 ] || fail "it has ended $(restarts) times"
note "after that: $(answered podprof apiserver) answers of the API server, $(answered beside kubelet) of the kubelet"
