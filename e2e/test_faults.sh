#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The agent counts faults and continues: a backend that fails and recovers, a full disk under the store, processes that
# end during a read, a container that goes away.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir "$work/sink" "$work/store"
mount -t tmpfs -o size=8m tmpfs "$work/store"
"$fixtures/pyrosink" -dir "$work/sink" -address-file "$work/sink.address" -fail-first 2 >"$work/sink.log" 2>&1 &
background+=($!)
until_true test -s "$work/sink.address" || fail "no sink"
agent_start --window 2s --store-dir "$work/store" --destination "pyroscope=http://$(cat "$work/sink.address")"
containerd_start

# Short-lived Go processes, killed at any point of a read
container_run "$fixtures/goalloc"
victim=$container
for _ in $(seq 40); do
	"$fixtures/goalloc" >/dev/null &
	pid=$!
	sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
	kill -KILL $pid
	wait $pid 2>/dev/null || true
done
kill -0 "$agent_pid" || fail "the agent has ended"

# The backend refused the first pushes and accepted later ones
sent_some() { [ "$(metric podprof_export_profiles_total 'outcome="sent"')" -gt 0 ]; }
until_true sent_some || fail "nothing was sent after the backend recovered"
[ "$(metric podprof_export_profiles_total 'outcome="retried"')" -gt 0 ] || fail "no retry was counted"
note "sent $(metric podprof_export_profiles_total 'outcome="sent"'), retried $(metric podprof_export_profiles_total 'outcome="retried"')"

# The container goes away
container_remove "$victim"

# The disk fills up
dd if=/dev/zero of="$work/store/other" bs=1k count=20000 2>/dev/null || true
disk_full() { [ "$(metric podprof_store_profiles_total 'outcome="disk_full"')" -gt 0 ]; }
until_true disk_full || fail "the full disk was not counted"
[ -z "$(find "$work/store" -name '*.new' -o -name '.*' -type f)" ] || fail "pieces were left in the store"
rm "$work/store/other"
stored=$(metric podprof_store_profiles_total 'outcome="stored"')
stored_again() { [ "$(metric podprof_store_profiles_total 'outcome="stored"')" -gt "$stored" ]; }
until_true stored_again || fail "the store does not work again"

curl -sf "http://$agent/-/healthy" >/dev/null || fail "not healthy"
agent_stop
