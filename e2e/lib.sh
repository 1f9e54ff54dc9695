# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The common part of the end-to-end tests. Each test is a script that sources this file, gets its own folder in $work
# and its own containerd, and leaves nothing behind.

set -eu -o pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=e2e/common.sh
. "$top/e2e/common.sh"
podprof=${PODPROF:-$top/build/podprof} # the podprof to test
fixtures=$top/build/e2e
work=$(mktemp -d /tmp/podprof-e2e-XXXXXX)
containers=()
background=()

# Always remove containers first: their processes are not our children.
cleanup() {
	local status=$?
	set +e
	for id in "${containers[@]}"; do container_remove "$id"; done
	for pid in "${background[@]}"; do kill "$pid" 2>/dev/null; done
	for pid in "${background[@]}"; do wait "$pid" 2>/dev/null; done
	if [ $status != 0 ]; then
		for log in "$work"/{agent,ctr,check,promtool}.log; do
			[ -s "$log" ] || continue
			echo "--- ${log##*/}"
			tail -n 20 "$log" | cut -c1-300
		done
	fi
	umount "$work"/* 2>/dev/null
	rm -rf "$work"
	exit $status
}
trap cleanup EXIT

# A port nobody listens on now.
free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

containerd_start() {
	cat >"$work/containerd.toml" <<-EOF
		version = 2
		root = "$work/root"
		state = "$work/state"
		disabled_plugins = ["io.containerd.grpc.v1.cri"]
		[grpc]
		  address = "$work/containerd.sock"
	EOF
	containerd --config "$work/containerd.toml" >"$work/containerd.log" 2>&1 &
	background+=($!)
	until_true ctr -a "$work/containerd.sock" version || fail "containerd does not start"
}

new_container_id() { head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n'; }

# container_run PROGRAM ARGS...: a container with one static program and the cgroup path of a best-effort pod, by the
# cgroupfs driver or with driver=systemd by the other. Sets $container (its id: $container_id, or a new one) and $pod_uid.
# $container_run_flags are ctr's.
container_run() {
	local root path slice
	container=${container_id:-$(new_container_id)}
	pod_uid=$(cat /proc/sys/kernel/random/uuid)
	root=$work/rootfs-${container:0:12}
	mkdir -p "$root/out"
	cp "$1" "$root/program"
	shift
	path=/kubepods/besteffort/pod$pod_uid/$container
	if [ "${driver:-}" = systemd ]; then
		slice=kubepods-besteffort-pod${pod_uid//-/_}.slice
		path=/kubepods.slice/kubepods-besteffort.slice/$slice/cri-containerd-$container.scope
	fi
	# shellcheck disable=SC2086
	ctr -a "$work/containerd.sock" run -d --rootfs ${container_run_flags:-} --cgroup "$path" \
		"$root" "$container" /program "$@" >"$work/ctr.log" 2>&1 || fail "ctr run"
	containers+=("$container")
	container_root=$root
	container_pid=$(ctr -a "$work/containerd.sock" task ls | awk -v id="$container" '$1 == id { print $2 }')
}

# only_own_containers FILE [RULES]: a configuration in which the agent profiles the present $containers and nothing of the
# other tests on this machine. RULES: a JSON array of further relabelling rules.
only_own_containers() {
	jq -n --arg ids "$(IFS='|' && echo "${containers[*]}")" --argjson rules "${2:-[]}" '{relabel_configs: ([
		{source_labels: ["__meta_container_id"], regex: $ids, action: "keep"}] + $rules)}' >"$1"
}

# container_remove ID: no error for a removed container
container_remove() {
	ctr -a "$work/containerd.sock" container info "$1" >/dev/null 2>&1 || return 0
	ctr -a "$work/containerd.sock" task kill -s KILL "$1" >/dev/null 2>&1 || true
	within 60 ctr -a "$work/containerd.sock" container rm "$1" || true
	# the pod's empty folders are removed; others' are not empty and stay
	rmdir /sys/fs/cgroup/{,*/}kubepods/{{besteffort,burstable}/{pod*/,},} 2>/dev/null || true
	rmdir /sys/fs/cgroup/{,*/}kubepods.slice/{kubepods-besteffort.slice/{*.slice/,},} 2>/dev/null || true
}

# agent_start FLAGS...: sets $agent_pid and $agent (the address)
agent_start() {
	agent=127.0.0.1:$(free_port)
	"$podprof" agent --listen "$agent" --node-name e2e-node "$@" >"$work/agent.log" 2>&1 &
	agent_pid=$!
	background+=("$agent_pid")
	until_true agent_answers || fail "the agent is not ready"
	kill -0 "$agent_pid" 2>/dev/null || fail "the agent has ended"
}
agent_answers() { curl -sf "http://$agent/-/ready" || ! kill -0 "$agent_pid" 2>/dev/null; }

# agent_stop: by SIGTERM, like a kubelet; the exit status must be 0
agent_stop() {
	kill -TERM "$agent_pid"
	wait "$agent_pid" || fail "the agent ended with $?"
}

metrics_page() { curl -sf "http://$agent/metrics"; }

# profile_of DIR CONTAINER: the container's first profile in pyrosink's directory
profile_of() {
	local description
	for description in "$1"/*.json; do
		if jq -e --arg id "$2" '.labels.container == $id' "$description" >/dev/null; then
			echo "${description%.json}.pb.gz"
			return
		fi
	done
}
