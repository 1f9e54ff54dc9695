#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All kinds of destinations at once, one of them down and the others refusing at first: each gets every profile once,
# and the totals of all are equal, to the nanosecond and byte.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir "$work/sink"
"$fixtures/pyrosink" -dir "$work/sink" -address-file "$work/sink.address" >"$work/sink.log" 2>&1 &
background+=($!)
"$fixtures/backends" -out "$work/entries" -address-file "$work/backends.address" -fail-first 2 >"$work/check.log" 2>&1 &
background+=($!)
until_true test -s "$work/sink.address" -a -s "$work/backends.address" || fail "no sinks"
backends=http://$(cat "$work/backends.address")

# Without the other programs of this machine: on a busy one their profiles leave no time for the last window's at the end.
burn=$(new_container_id)
goalloc=$(new_container_id)
containers=("$burn" "$goalloc")
only_own_containers "$work/rules.json"
agent_start --config "$work/rules.json" --window 5s --destination "pyroscope=http://$(cat "$work/sink.address")" \
	--destination "pyroscope=http://127.0.0.1:1" --destination "file=$work/out,bytes=64MiB" \
	--destination "parca=$backends" --destination "coroot=$backends" --destination "otlp=$backends"
containerd_start
container_id=$burn container_run "$fixtures/burn"
container_id=$goalloc container_run "$fixtures/goalloc" # its allocations count from its start

# entries FILTER: lines of the three backends
entries() { jq -c "select($1)" "$work/entries"; }
windows() { [ "$(entries ".entity == \"$1\" and .type == \"$2\" and .backend == \"$3\"" | wc -l)" -ge 2 ]; }
for backend in parca coroot otlp; do
	until_true windows "$burn" cpu $backend || fail "no CPU profiles in $backend"
	until_true windows "$goalloc" inuse_space $backend || fail "no heap profiles in $backend"
done
sent() { metric podprof_export_profiles_total "destination=\"$1\"" 'outcome="sent"'; }
[ "$(sent pyroscope:127.0.0.1:1)" = 0 ] || fail "something was sent to a server that is down"
for name in parca coroot otlp; do
	[ "$(metric podprof_export_profiles_total "destination=\"$name\"" 'outcome="retried"')" -gt 0 ] || fail "$name refused nothing"
	[ "$(metric podprof_export_profiles_total "destination=\"$name\"" 'outcome="dropped')" = 0 ] || fail "$name: dropped profiles"
done
note "sent: $(for name in parca coroot otlp file; do printf '%s %s, ' $name "$(sent $name)"; done)"
agent_stop # sends the last window

# sums ENTITY TYPE: a line for each backend with its total
sums() {
	entries ".entity == \"$1\" and .type == \"$2\"" |
		jq -s -r 'group_by(.backend)[] | "\(.[0].backend) \(map(.total) | add)"'
}
# equal ENTITY TYPE: in all three
equal() {
	[ "$(sums "$1" "$2" | awk '{ print $2 }' | sort -u | wc -l)" = 1 ] || fail "totals of $2: $(sums "$1" "$2" | paste -sd' ')"
	[ "$(sums "$1" "$2" | wc -l)" = 3 ] || fail "$2 is not in all backends: $(sums "$1" "$2" | paste -sd' ')"
}
equal "$burn" cpu
for type in alloc_objects alloc_space inuse_objects inuse_space; do equal "$goalloc" $type; done

# The same as in the folder, which pprof's own reader reads
total=$(sums "$burn" cpu | awk '{ print $2; exit }')
find "$work/out" -name '*_cpu.pb.gz' -path "*${burn:0:40}*" >"$work/files"
[ -s "$work/files" ] || fail "no files in the folder"
mapfile -t files <"$work/files"
in_files=$("$fixtures/checkprofile" -type cpu "${files[@]}" | sed -n 's|.*cpu/nanoseconds total \([0-9]*\).*|\1|p')
[ "$in_files" = "$total" ] || fail "the folder has $in_files ns of CPU time, the backends have $total"
in_pyroscope=$("$fixtures/checkprofile" -label "container=$burn" -type cpu "$work/sink" | sed -n 's|.*cpu/nanoseconds total \([0-9]*\).*|\1|p')
[ "$in_pyroscope" = "$total" ] || fail "Pyroscope has $in_pyroscope ns of CPU time, the backends have $total"
note "CPU time of the burning container in five destinations: $total ns"

# Go's encoder would need more bytes
"$fixtures/checkprofile" -wire -type cpu "$work/sink" >"$work/wire" || fail "$(tail -n 5 "$work/wire")"
note "$(grep "by Go's encoder" "$work/wire")"

# The functions are under the same names, and no profile came twice
for backend in parca coroot otlp; do
	entries ".backend == \"$backend\" and .entity == \"$burn\"" | jq -e -s 'map(.functions.burn_seventy // 0) | add > 0' \
		>/dev/null || fail "$backend: no function burn_seventy"
	[ "$(entries ".backend == \"$backend\" and (.entity | IN(\"$burn\", \"$goalloc\"))" | jq -c '[.entity, .type, .time_nanos, .total]' | sort | uniq -d | wc -l)" = 0 ] ||
		fail "$backend: a profile came twice"
done
