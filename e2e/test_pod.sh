#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The agent under the chart's conditions: in a container with a read-only root file system, the runtime's seccomp
# profile, only the capabilities of deploy/podprof.yaml, the host's PIDs, and the host's cgroups mounted read-only. A
# missing capability would show as missing output.
#
# PODPROF_TEST_IMAGE=FILE takes the agent from an image of 'make image', saved as an archive; otherwise the test uses
# build/podprof with its linked libraries.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

ctr() { command ctr -a "$work/containerd.sock" "$@"; }
manifest=$top/deploy/podprof.yaml

# The manifest's list below capabilities/add, in ctr's form
capabilities() {
	sed -n '/^ *add:$/,/^ *[a-zA-Z]*:/s/^ *- \([A-Z_]*\)$/CAP_\1/p' "$manifest"
}

# has_own_cgroups PID: the process has left this shell's cgroup namespace
has_own_cgroups() { [ "$(readlink "/proc/$1/ns/cgroup")" != "$(readlink "/proc/$$/ns/cgroup")" ]; }

# Where the agent's root file system is to come from; sets $root_arguments
agent_root() {
	local file
	if [ -n "${PODPROF_TEST_IMAGE:-}" ]; then
		ctr images import "$PODPROF_TEST_IMAGE" >"$work/ctr.log" 2>&1 || fail "the image does not load"
		root_arguments=("$(ctr images ls -q | head -n 1)")
		return
	fi
	mkdir -p "$work/agent-root"/{proc,sys,dev,tmp,run,host/sys/fs/cgroup,etc/podprof,var/lib/podprof}
	for file in "$podprof" $(ldd "$podprof" | grep -o '/[^ ]*'); do
		install -D "$file" "$work/agent-root/$file"
	done
	install -D "$podprof" "$work/agent-root/usr/bin/podprof"
	root_arguments=(--rootfs "$work/agent-root")
}

# The rendered configuration, but on a loopback port of ours and with short windows
agent_config() {
	mkdir "$work/config" "$work/data"
	agent=127.0.0.1:$(free_port)
	sed -n '/config.json: |/,/^---/p' "$manifest" | sed '1d; /^---/d' |
		jq --arg listen "$agent" '. + {listen: $listen, window: "8s", "go-heap-profiler": "force", "off-cpu": 0.2}' >"$work/config/config.json"
}

agent_run() {
	local arguments=() name
	# Drop ctr's default capabilities, like "drop: [ALL]"
	for name in CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP \
		NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE; do
		arguments+=(--cap-drop "CAP_$name")
	done
	for name in $(capabilities); do arguments+=(--cap-add "$name"); done
	# This shell's PID namespace is the host's; process 1's may be inaccessible to runc. A pod has its own cgroup
	# namespace with cgroups of version 2
	unshare --cgroup sleep 600 &
	background+=($!)
	until_true has_own_cgroups "$!" || fail "no cgroup namespace"
	ctr run -d --net-host --read-only --seccomp --memory-limit $((256 << 20)) --env NODE_NAME=e2e-node --env KUBERNETES_SERVICE_HOST=10.96.0.1 \
		--with-ns "pid:/proc/$$/ns/pid" --with-ns "cgroup:/proc/${background[-1]}/ns/cgroup" \
		--cgroup "/kubepods/burstable/pod$(cat /proc/sys/kernel/random/uuid)/podprof-agent" \
		--mount "type=bind,src=/sys/fs/cgroup,dst=/host/sys/fs/cgroup,options=rbind:ro" \
		--mount "type=bind,src=$work/config,dst=/etc/podprof,options=rbind:ro" \
		--mount "type=bind,src=$work/data,dst=/var/lib/podprof,options=rbind:rw" \
		"${arguments[@]}" "${root_arguments[@]}" podprof-agent \
		/usr/bin/podprof agent --config /etc/podprof/config.json >"$work/ctr.log" 2>&1 || fail "ctr run"
	containers+=(podprof-agent)
	agent_pid=$(ctr task ls | awk '$1 == "podprof-agent" { print $2 }')
	until_true curl -sf "http://$agent/-/ready" || fail "the agent is not ready"
}

# stored CONTAINER KIND: the newest profile of this kind in the store
stored() { find "$work/data/store" -name "*_$2.pb.gz" -path "*${1:0:12}*" | sort | tail -n 1; }
has_stored() { [ -n "$(stored "$@")" ]; }
# shows CONTAINER KIND ARGUMENTS...: the newest profile passes checkprofile with these arguments
shows() {
	local container=$1 kind=$2
	shift 2
	"$fixtures/checkprofile" "$@" "$(stored "$container" "$kind")" >>"$work/check.log" 2>&1
}
# The first window may have been short, with too few samples for shares
check() { until_true shows "$@" || fail "checkprofile $*"; }

containerd_start
agent_root
agent_config
agent_run
effective=$(sed -n 's/^CapEff:\t//p' "/proc/$agent_pid/status")
[ "$effective" = 000001c400080004 ] || fail "the agent's capabilities are $effective"
note "ready, CapEff $effective"

container_run "$fixtures/burn"
burn=$container
# The file is deleted: /proc/PID/exe still leads to the program
rm "$container_root/program"
container_run "$fixtures/mapped"
mapped=$container
container_run "$fixtures/syscalls"
syscalls=$container
container_run "$fixtures/goalloc"
goalloc=$container
container_run "$fixtures/gounsampled"
unsampled=$container

for id in "$burn" "$mapped" "$syscalls"; do
	until_true has_stored "$id" cpu || fail "no CPU profile of ${id:0:12}"
done
until_true has_stored "$goalloc" go_heap || fail "no heap profile of the Go program"

check "$burn" cpu -type cpu -function '^burn_seventy$' -cum -share 70 -tolerance 10
note "the names of a deleted program"
check "$mapped" cpu -type cpu -function '^burn_mapped$' -cum -share 85 -tolerance 15
note "the names of a deleted file that another user had mapped"
check "$syscalls" cpu -type cpu -function '^vfs_read$' -cum -share 85 -tolerance 15
note "the kernel's names"
check "$goalloc" go_heap -type alloc_space -function '^main.allocateLost$' -cum -value 134217728 -tolerance 4
bytes=$(metric container_go_alloc_bytes_total "container=\"$goalloc\"")
[ "$bytes" -gt $((160 << 20)) ] || fail "container_go_alloc_bytes_total is $bytes"
note "the Go heap: $bytes bytes"
# The agent has written one word of the process's memory, through the pod's own /proc
until_true has_stored "$unsampled" go_heap || fail "no heap profile of the program without sampling"
[ "$(metric container_go_heap_profile_info "container=\"$unsampled\"" 'state="forced"')" = 1 ] ||
	fail "the program without sampling is not shown as forced"
check "$unsampled" go_heap -type alloc_space -function '^main.allocateUnasked$' -share 99 -tolerance 1
note "a heap profile that was forced"
# The program sleeps between allocations
until_true has_stored "$unsampled" offcpu || fail "no off-CPU profile of a program that sleeps"
check "$unsampled" offcpu -type delay -function '^schedule$' -cum -share 98 -tolerance 2
note "where a sleeping program waits"

# From the running agent and, if not found, by a trial with the same rights
doctor() {
	ctr task exec --exec-id "doctor$RANDOM" podprof-agent /usr/bin/podprof doctor \
		--config /etc/podprof/config.json --metadata none "$@" >"$work/doctor.log" 2>&1
}
doctor || fail "doctor finds something missing: $(cat "$work/doctor.log")"
grep -q "^ok *agent .* and ready; cpu profiling works" "$work/doctor.log" || fail "doctor sees no agent: $(cat "$work/doctor.log")"
doctor --listen 127.0.0.1:0 || fail "doctor finds something missing: $(cat "$work/doctor.log")"
grep -q "^ok *CPU profiles .*on and off the CPUs" "$work/doctor.log" || fail "doctor takes no samples: $(cat "$work/doctor.log")"
note "doctor: $(tail -n 1 "$work/doctor.log")"
