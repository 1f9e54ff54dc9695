#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A selection by names that podprof may not read: one warning says why nothing is profiled, and the log says that
# profiles are there only when one is.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$hierarchy" ] || fail "no cgroup2"
parent=$hierarchy/podprof-select-$$
dir=$parent/docker/$(head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n')
mkdir -p "$dir" "$work/store"
(echo "$BASHPID" >"$dir/cgroup.procs" && exec sh -c 'while :; do :; done') &
burner=$!
leave() {
	local status=$?
	set +e
	kill "$burner" 2>/dev/null
	wait "$burner" 2>/dev/null
	until rmdir "$dir" 2>/dev/null || [ ! -d "$dir" ]; do sleep 0.1; done
	rmdir "$parent/docker" "$parent"
	(exit $status)
	cleanup
}
trap leave EXIT

refused=-sys_ptrace,-dac_override,-dac_read_search
run() {
	agent=127.0.0.1:$(free_port)
	"$@" agent --listen "$agent" --window 2s --store-dir "$work/store" "${flags[@]}" 2>"$work/agent.log" &
	agent_pid=$!
	background+=("$agent_pid")
}
says() { grep -q "$1" "$work/agent.log"; }
stored() { [ -n "$(find "$work/store" -name '*.pb.gz')" ]; }
times() { grep -c "$1" "$work/agent.log" || true; }

flags=(--select '^no-such-namespace/')
run setpriv --bounding-set $refused --inh-caps $refused "$podprof"
until_true says "nothing is profiled" || fail "no warning"
sleep 5 # more windows
kill "$agent_pid"
wait "$agent_pid" || true
[ "$(times "nothing is profiled")" = 1 ] || fail "more than one warning"
says 'level=warn.*without_names=.*no --select matches.*denied' || fail "the warning has no reason"
[ "$(times "the first profiles are there")" = 0 ] || fail "profiles are announced, and there are none"

flags=()
run "$podprof"
until_true says "the first profiles are there" || fail "no profile is announced"
until_true stored || fail "no profile is there" # the store's thread writes it behind the message
kill "$agent_pid"
wait "$agent_pid" || true
[ "$(times "the first profiles are there")" = 1 ] || fail "profiles are announced more than once"
