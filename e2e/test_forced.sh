#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A typical Go server: without symbols, and without a reader of heap profiles. With force, its top allocators are on the
# page and in the backend one window after the window of discovery.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

check() { "$fixtures/checkprofile" "$@" >>"$work/check.log" 2>&1 || fail "checkprofile $*"; }

mkdir "$work/sink" "$work/store"
"$fixtures/pyrosink" -dir "$work/sink" -address-file "$work/sink.address" >"$work/sink.log" 2>&1 &
background+=($!)
until_true test -s "$work/sink.address" || fail "no sink"
containerd_start
container_run "$fixtures/goserve"
server=$container
# Only this container: others of the machine may have Go programs, too
agent_start --window 6s --cpu-rate 0 --host-processes=false --select "$server" --go-heap-profiler force --store-dir "$work/store" \
	--destination "pyroscope=http://$(cat "$work/sink.address")"

info() { [ "$(metric container_go_heap_profile_info "container=\"$server\"" "$@")" = 1 ]; }

# The first window's end finds the server
until_true info 'state="forced"' || fail "the server is not forced"
[ "$(metric podprof_go_forced_total 'outcome="ok"')" = 1 ] || fail "nothing was written"
forced_at=$SECONDS
# The next window has the server's allocations
sink_has() {
	"$fixtures/checkprofile" -label "container=$server" -type alloc_space -function '^main.buildAnswer$' "$work/sink"
}
until_true sink_has || fail "the server's allocations did not arrive"
note "in the backend $((SECONDS - forced_at)) s after it was forced, with windows of 6 s"
check -label "container=$server" -type alloc_space -function '^main.buildAnswer$' -cum -share 60 -tolerance 20 "$work/sink"
check -label "container=$server" -type alloc_space -function '^main.parseItems$' -cum -share 20 -tolerance 12 "$work/sink"

# The page
curl -sf "http://$agent/" >"$work/page.html"
entity=$(sed -n 's|.*href="\(/entity/[^"]*'"${server:0:12}"'[^"]*\)".*|\1|p' "$work/page.html" | head -n 1)
on_page() {
	curl -sf "http://$agent$entity/flame.json?kind=go_heap&type=alloc_space" |
		jq -e '.names | index("main.buildAnswer") and index("main.parseItems")'
}
until_true on_page || fail "the page at $entity does not show the allocators"

# The counters, from the first look on and to the byte; all from outside
[ "$(metric podprof_go_processes 'state="forced"')" = 1 ] || fail "podprof_go_processes"
for gauge in goroutines next_gc_bytes heap_alloc_bytes heap_inuse_bytes heap_sys_bytes gc_heap_live_bytes; do
	[ "$(metric "container_go_$gauge" "container=\"$server\"")" -gt 0 ] || fail "container_go_$gauge"
done
info 'source="runtime"' || fail "the counters are not the runtime's"
curl -sf "http://$agent/metrics" >"$work/metrics.txt"
"$fixtures/promtool" check metrics <"$work/metrics.txt" >"$work/promtool.log" 2>&1 || fail "promtool check metrics"
note "$(metric container_go_goroutines "container=\"$server\"") goroutines, $(metric container_go_alloc_bytes_total "container=\"$server\"") bytes allocated"

# A restarted agent does not write again, and knows the earlier write
agent_stop
agent_start --window 3s --cpu-rate 0 --host-processes=false --select "$server" --go-heap-profiler force --store-dir "$work/store"
until_true info 'state="forced"' || fail "the new agent does not know that the server was forced"
[ "$(metric podprof_go_forced_total)" = 0 ] || fail "the new agent tried to write"
