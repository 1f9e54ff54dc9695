# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# A node of Kubernetes, with its control plane, from the programs of test/tool.sh and Debian's containerd.
# e2e/cluster/run.sh starts the node for its tests.
#
# The node lives in a separate mount and network namespace, held by one process, and below a separate cgroup, because a
# kubelet kills unknown processes in "/kubepods". Removing these three removes the whole node. The node has no DNS and
# cannot fetch images. Run one node at a time: the agent on a node that is this machine also sees the containers of
# other nodes, as ids.
#
# The node has one of two shapes. As a machine: pods with hostPID see this machine's processes, and through its first
# process no state of the node's containerd. As a container, like kind's nodes: with its own PIDs and cgroups, below the
# cgroup of a Docker container on the machine.

node=${PODPROF_E2E_NODE:-/tmp/podprof-e2e-node} # the node's files
node_shape=${PODPROF_E2E_SHAPE:-machine}          # or container
node_name=e2e-node
node_address=10.77.0.1
node_containerd=$node/containerd.sock
apiserver=https://$node_address:6443
node_cgroup=${node##*/}    # below the root of each hierarchy
node_outer=$node_cgroup # the node's processes, below the same cgroup
kubelet_cgroup=/$node_cgroup
containerd_state=$node/containerd-state
node_namespaces=(--net --mount)
if [ "$node_shape" = container ]; then
	node_outer=$node_cgroup/docker/$(printf '%s' "$node" | sha256sum | cut -c1-64)
	kubelet_cgroup=/kubelet
	containerd_state=/run/containerd
	node_namespaces+=(--pid --cgroup)
fi

inside() { nsenter "${node_namespaces[@]}" --target "$(cat "$node/pids/holder")" -- "$@"; }
kubectl() { nsenter --net --target "$(cat "$node/pids/holder")" -- "$kubernetes/kubectl" --kubeconfig "$node/admin.conf" "$@"; }
helm() { nsenter --net --target "$(cat "$node/pids/holder")" -- "$helm" --kubeconfig "$node/admin.conf" "$@"; }
node_ctr() { inside ctr -a "$node_containerd" -n k8s.io "$@"; }

# not_up WHAT LOG: show the end of the log, because the log is removed with the node
not_up() {
	tail -n 5 "$node/logs/$2.log" | cut -c1-600
	fail "$1"
}

# join_cgroups COMMAND...: run in the node's cgroups. For a subshell: does not return.
join_cgroups() {
	local top
	[ "$node_shape" = machine ] || for top in "${hierarchies[@]}"; do
		echo "$BASHPID" >"$top/$node_outer/cgroup.procs"
	done
	exec "$@"
}

# child_of PID: wait for the only child and print its id
child_of() {
	local children=/proc/$1/task/$1/children
	until_true grep -q . "$children" || return
	tr -d ' ' <"$children"
}

# start NAME COMMAND...: in the node's namespaces, with output in logs/NAME.log
start() {
	local name=$1 holder
	shift
	holder=$(cat "$node/pids/holder") # nsenter's child has to be the only one
	join_cgroups nsenter "${node_namespaces[@]}" --target "$holder" -- "$@" >>"$node/logs/$name.log" 2>&1 </dev/null &
	echo $! >"$node/pids/$name"
	disown # stopped by id later, without a message of bash
	# nsenter stays outside, and waits
	[ "$node_shape" = machine ] || child_of $! >"$node/pids/$name"
}

running() { kill -0 "$(cat "$node/pids/$1" 2>/dev/null)" 2>/dev/null; }
stopped() { ! running "$1"; }

# stop NAME [SIGNAL]: and wait for the end; by force if necessary
stop() {
	[ -s "$node/pids/$1" ] || return 0
	kill "-${2:-TERM}" "$(cat "$node/pids/$1")" 2>/dev/null
	within 10 stopped "$1" || kill -KILL "$(cat "$node/pids/$1")" 2>/dev/null
	rm -f "$node/pids/$1"
}

# ---------------------------------------------------------------- certificates

# certificate NAME SUBJECT [NAMES]: signed by the cluster's CA
certificate() {
	openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$node/pki/$1.key" \
		-out "$node/pki/$1.csr" -subj "$2"
	openssl x509 -req -in "$node/pki/$1.csr" -CA "$node/pki/ca.crt" -CAkey "$node/pki/ca.key" \
		-CAcreateserial -days 2 -out "$node/pki/$1.crt" ${3:+-extfile <(echo "subjectAltName=$3")}
}

# kubeconfig NAME: for the holder of the certificate
kubeconfig() {
	cat >"$node/$1.conf" <<-EOF
		apiVersion: v1
		kind: Config
		clusters: [{name: e2e, cluster: {server: "$apiserver", certificate-authority: $node/pki/ca.crt}}]
		users: [{name: $1, user: {client-certificate: $node/pki/$1.crt, client-key: $node/pki/$1.key}}]
		contexts: [{name: e2e, context: {cluster: e2e, user: $1}}]
		current-context: e2e
	EOF
}

pki() {
	mkdir "$node/pki"
	openssl genrsa -out "$node/pki/accounts.key" 2048
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$node/pki/ca.key" \
		-out "$node/pki/ca.crt" -days 2 -subj /CN=e2e-ca
	certificate admin /O=system:masters/CN=admin
	certificate kubelet "/O=system:nodes/CN=system:node:$node_name"
	certificate kubelet-client /O=system:masters/CN=kube-apiserver
	certificate kubelet-server "/O=system:nodes/CN=system:node:$node_name" "IP:$node_address,DNS:$node_name"
	certificate apiserver /CN=kube-apiserver "IP:$node_address,IP:10.96.0.1,DNS:kubernetes.default.svc"
	kubeconfig admin
	kubeconfig kubelet
}

# ---------------------------------------------------------------- the programs

network() {
	inside ip link set lo up
	inside ip link add node0 type bridge
	inside ip addr add "$node_address/24" dev node0
	inside ip link set node0 up
	inside ip route add default via 10.77.0.254 dev node0 # packets to services also need a route
	mkdir "$node/cni"
	cat >"$node/cni/10-e2e.conflist" <<-EOF
		{"cniVersion": "1.0.0", "name": "e2e", "plugins": [
		  {"type": "bridge", "bridge": "pods0", "isGateway": true,
		   "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.78.0.0/16"}]],
		            "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "$node/ipam"}},
		  {"type": "portmap", "capabilities": {"portMappings": true}}]}
	EOF
}

# restrict_oom_score_adj: a machine may lack CAP_SYS_RESOURCE, and then no score can be lowered
start_containerd() {
	cat >"$node/containerd.toml" <<-EOF
		version = 2
		root = "$node/containerd"
		state = "$containerd_state"
		[grpc]
		  address = "$node_containerd"
		[plugins."io.containerd.grpc.v1.cri"]
		  sandbox_image = "localhost/workloads:e2e"
		  disable_apparmor = true
		  restrict_oom_score_adj = true
		  [plugins."io.containerd.grpc.v1.cri".cni]
		    bin_dir = "/usr/lib/cni"
		    conf_dir = "$node/cni"
	EOF
	start containerd containerd --config "$node/containerd.toml"
	until_true node_ctr version || not_up "containerd does not start" containerd
}

# Of all requests only podprof's are written down.
audit_policy() {
	cat <<-EOF
		apiVersion: audit.k8s.io/v1
		kind: Policy
		omitStages: []
		rules:
		- {level: Metadata, users: ["system:serviceaccount:podprof:podprof"]}
		- {level: None}
	EOF
}

start_apiserver() {
	audit_policy >"$node/audit-policy.yaml"
	start kube-apiserver "$kubernetes/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
		--bind-address="$node_address" --secure-port=6443 --authorization-mode=Node,RBAC \
		--tls-cert-file="$node/pki/apiserver.crt" --tls-private-key-file="$node/pki/apiserver.key" \
		--client-ca-file="$node/pki/ca.crt" --service-cluster-ip-range=10.96.0.0/16 \
		--service-account-issuer=https://kubernetes.default.svc \
		--service-account-key-file="$node/pki/accounts.key" \
		--service-account-signing-key-file="$node/pki/accounts.key" \
		--kubelet-client-certificate="$node/pki/kubelet-client.crt" \
		--kubelet-client-key="$node/pki/kubelet-client.key" \
		--kubelet-preferred-address-types=InternalIP --allow-privileged=true \
		--audit-policy-file="$node/audit-policy.yaml" --audit-log-path="$node/audit.log"
	until_true kubectl get --raw /readyz || not_up "kube-apiserver is not ready" kube-apiserver
}

# start_kubelet [MORE]: MORE is added to the configuration. Without a certificate the kubelet signs its own. Permissions
# are cached for seconds, not for minutes.
# shellcheck disable=SC2120 # tests give it
start_kubelet() {
	cat >"$node/kubelet.yaml" <<-EOF
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		address: $node_address
		containerRuntimeEndpoint: unix://$node_containerd
		cgroupDriver: cgroupfs
		cgroupRoot: $kubelet_cgroup
		failCgroupV1: false
		failSwapOn: false
		enforceNodeAllocatable: []
		localStorageCapacityIsolation: false
		evictionHard: {memory.available: 10Mi}
		maxPods: 200
		resolvConf: ""
		syncFrequency: 10s
		staticPodPath: $node/manifests
		podLogsDir: $node/pod-logs
		authentication:
		  anonymous: {enabled: false}
		  webhook: {enabled: true, cacheTTL: 2s}
		  x509: {clientCAFile: $node/pki/ca.crt}
		authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 2s, cacheUnauthorizedTTL: 2s}}
		${1:-}
	EOF
	start kubelet "$kubernetes/kubelet" --config="$node/kubelet.yaml" --kubeconfig="$node/kubelet.conf" \
		--root-dir="$node/kubelet" --cert-dir="$node/kubelet-pki" --hostname-override="$node_name" \
		--node-ip="$node_address"
}
kubelet_certificate="tlsCertFile: $node/pki/kubelet-server.crt
tlsPrivateKeyFile: $node/pki/kubelet-server.key"

start_controllers() {
	start kube-controller-manager "$kubernetes/kube-controller-manager" --kubeconfig="$node/admin.conf" \
		--service-account-private-key-file="$node/pki/accounts.key" --root-ca-file="$node/pki/ca.crt" \
		--use-service-account-credentials --leader-elect=false --bind-address=127.0.0.1 \
		--cert-dir="$node/controller-pki"
	start kube-scheduler "$kubernetes/kube-scheduler" --kubeconfig="$node/admin.conf" \
		--authentication-kubeconfig="$node/admin.conf" --authorization-kubeconfig="$node/admin.conf" \
		--leader-elect=false --bind-address=127.0.0.1 --cert-dir="$node/scheduler-pki"
	start kube-proxy "$kubernetes/kube-proxy" --kubeconfig="$node/admin.conf" \
		--hostname-override="$node_name" --proxy-mode=iptables --cluster-cidr=10.78.0.0/16 \
		--conntrack-max-per-core=0 --metrics-bind-address=127.0.0.1:10249 \
		--healthz-bind-address=127.0.0.1:10256
}

# ---------------------------------------------------------------- the whole node

# The roots of all hierarchies of this machine
hierarchies=()
for hierarchy in /sys/fs/cgroup /sys/fs/cgroup/*; do
	[ ! -f "$hierarchy/cgroup.procs" ] || hierarchies+=("$hierarchy")
done

# A v1 cpuset takes no process before it has CPUs; directories below inherit the CPUs.
cgroup_up() {
	local top
	for top in "${hierarchies[@]}"; do
		mkdir -p "$top/$node_cgroup"
		[ ! -f "$top/cgroup.clone_children" ] || echo 1 >"$top/$node_cgroup/cgroup.clone_children"
		[ ! -f "$top/cpuset.cpus" ] || cat "$top/cpuset.cpus" >"$top/$node_cgroup/cpuset.cpus"
		[ ! -f "$top/cpuset.mems" ] || cat "$top/cpuset.mems" >"$top/$node_cgroup/cpuset.mems"
		mkdir -p "$top/$node_outer"
		[ "$node_shape" = machine ] || mkdir -p "$top/$node_outer$kubelet_cgroup"
	done
}

# The process that holds the namespaces. A PID namespace's first process inherits orphans.
holder_up() {
	local forever='while :; do sleep 1000 & wait; done' new=("${node_namespaces[@]}")
	[ "$node_shape" = machine ] || new+=(--fork --kill-child)
	join_cgroups unshare "${new[@]}" --propagation private bash -c "$forever" </dev/null >/dev/null 2>&1 &
	echo $! >"$node/pids/holder"
	disown
	[ "$node_shape" = machine ] || child_of $! >"$node/pids/holder"
	until_true test "$(readlink /proc/self/ns/net)" != "$(readlink "/proc/$(cat "$node/pids/holder")/ns/net")"
}

# The node's replacements of the machine's directories. Pods' networks are removed with them; kubelets put links into
# /var/log/containers.
mounts_up() {
	local top
	inside mount --make-rshared / # required by kubelets
	mkdir -p /run/netns /var/log/containers "$containerd_state"
	inside mount -t tmpfs node-netns /run/netns
	inside mount -t tmpfs node-logs /var/log/containers
	[ "$node_shape" = container ] || return 0
	inside mount -t proc node-proc /proc
	inside mount -t tmpfs node-containerd "$containerd_state"
	[ "${hierarchies[0]}" = /sys/fs/cgroup ] || inside mount -t tmpfs node-cgroup /sys/fs/cgroup
	for top in "${hierarchies[@]}"; do
		inside mkdir -p "$top"
		if [ "$(stat -f -c %T "$top")" = cgroup2fs ]; then
			inside mount -t cgroup2 node-cgroup "$top"
		else
			inside mount -t cgroup -o "$(awk -v top="$top" '$2 == top { print $4 }' /proc/self/mounts |
				sed 's/^rw,//; s/\(relatime\|nosuid\|nodev\|noexec\),//g')" node-cgroup "$top"
		fi
	done
}

# All answers of the API server about pods and their owners, to compare with podprof's names
watch_all() {
	local kind
	mkdir "$node/seen"
	for kind in pods replicasets jobs; do
		start "watch-$kind" sh -c 'while :; do "$@"; sleep 0.3; done >"$0"' "$node/seen/$kind.json" \
			"$kubernetes/kubectl" --kubeconfig "$node/admin.conf" get "$kind" -A --watch --output-watch-events -o json
	done
}

# Processes left inside: twice, for newly started ones
cgroup_down() {
	local tries
	for tries in 1 2 3 4 5; do
		find /sys/fs/cgroup{,/*}/"$node_cgroup" -name cgroup.procs -exec cat {} + 2>/dev/null |
			sort -u | xargs -r kill -KILL 2>/dev/null
		sleep "0.$tries"
		find /sys/fs/cgroup{,/*}/"$node_cgroup" -depth -type d -exec rmdir {} \; 2>/dev/null
	done
	! ls -d /sys/fs/cgroup{,/*}/"$node_cgroup" 2>/dev/null
}

# node_up IMAGE.tar...: until the node is ready and has the images
node_up() {
	local image
	mkdir -p "$node"/{pids,logs,manifests}
	cgroup_up
	holder_up
	mounts_up
	network
	pki >"$node/logs/pki.log" 2>&1 || fail "openssl"
	start etcd "$etcd" --data-dir "$node/etcd" --unsafe-no-fsync --log-level error
	start_apiserver
	start_controllers
	start_containerd
	for image; do node_ctr images import "$image" >/dev/null || fail "image $image"; done
	start_kubelet
	# the API server refuses pods before their account exists
	until_true kubectl get node/"$node_name" sa/default || not_up "the node does not register" kubelet
	kubectl wait --for=condition=Ready "node/$node_name" --timeout="$patience" >/dev/null || not_up "the node is not ready" kubelet
}

# Processes with the node's mounts: shims and others started inside, but not the holder itself
inmates() {
	local holder ns
	holder=$(cat "$node/pids/holder")
	ns=$(readlink "/proc/$holder/ns/mnt")
	find /proc/[0-9]*/ns/mnt -maxdepth 0 -lname "${ns//[\[\]]/?}" | cut -d/ -f3 | grep -vx "$holder"
}

# In every case and from every state
node_down() {
	local name
	set +e
	[ -d "$node" ] || return 0
	stop kubelet
	cgroup_down
	for name in kube-proxy kube-scheduler kube-controller-manager; do stop "$name" KILL; done
	stop kube-apiserver KILL
	stop etcd KILL
	stop containerd KILL
	inmates 2>/dev/null | xargs -r kill -KILL 2>/dev/null
	cgroup_down
	stop holder KILL
	rm -rf "$node"
}
