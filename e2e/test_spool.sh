#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The backend is away, and the agent is killed (SIGKILL) twice: every profile on disk arrives in the end, and once.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir "$work/sink"
port=$(free_port)
start() { agent_start --window 2s --spool-dir "$work/spool" --destination "pyroscope=http://127.0.0.1:$port"; }
stored() { metric podprof_spool_profiles_total 'outcome="stored"'; }
pending() { metric podprof_spool_pending_profiles; }
# The parent and the working process.
kill_agent() {
	local child
	child=$(pgrep -P "$agent_pid")
	kill -KILL "$agent_pid" "$child"
	wait "$agent_pid" 2>/dev/null || true
	until_true not_running "$child" || fail "the agent is still there"
}
not_running() { ! kill -0 "$1" 2>/dev/null; }
# Also of the container, by this run: its segments are the last.
some_stored() {
	[ "$(stored)" -ge 10 ] && grep -q "$burn" "$(find "$work/spool" -name '*.segment' | sort | tail -n 1)"
}
recovered() { [ "$(metric podprof_spool_recovered_total)" -ge "$1" ]; }

containerd_start
container_run "$fixtures/burn"
burn=$container

total=0
for run in 1 2; do
	start
	[ $run = 1 ] || until_true recovered "$total" || fail "run $run recovered fewer than $total profiles"
	until_true some_stored || fail "run $run: no profiles in the spool"
	total=$((total + $(stored)))
	kill_agent
	note "run $run: at least $total profiles on disk, $(du -sk "$work/spool" | cut -f1) KiB"
done

start
until_true recovered "$total" || fail "recovered fewer than $total profiles"
[ "$(metric podprof_export_profiles_total 'outcome="sent"')" = 0 ] || fail "sent to nobody"
"$fixtures/pyrosink" -listen "127.0.0.1:$port" -dir "$work/sink" -address-file "$work/sink.address" >"$work/sink.log" 2>&1 &
background+=($!)
before=$(metric podprof_spool_recovered_total)
all_sent() { [ "$(metric podprof_export_profiles_total 'outcome="sent"')" -ge "$before" ]; }
until_true all_sent || fail "sent $(metric podprof_export_profiles_total 'outcome="sent"') of $before profiles"
[ "$(metric podprof_export_profiles_total 'outcome="dropped_')" = 0 ] || fail "dropped profiles"
agent_stop # sends the last window

arrived=$(find "$work/sink" -name '*.json' | wc -l)
[ "$arrived" -ge "$before" ] || fail "$arrived of $before profiles arrived"
twice=$(cat "$work"/sink/*.json | jq -c '.id' | sort | uniq -d | wc -l)
[ "$twice" = 0 ] || fail "$twice profiles arrived twice"
[ "$(cat "$work"/sink/*.json | jq -c --arg id "$burn" 'select(.labels.container == $id)' | wc -l)" -ge 3 ] ||
	fail "no profiles of the container in each run"
[ -n "$(profile_of "$work/sink" "$burn")" ] || fail "no profile of the container"
"$fixtures/checkprofile" -label "container=$burn" -type cpu "$work/sink" >"$work/check.log" || fail "unreadable profiles"
note "$arrived profiles arrived, $before from the killed runs; none twice"

# Nothing is left: the next run recovers nothing.
start
until_true some_stored || fail "the spool does not work"
[ "$(metric podprof_spool_recovered_total)" = 0 ] || fail "profiles were left in the spool"
agent_stop
