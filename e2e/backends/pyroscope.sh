#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Profiles of real programs in a whole Pyroscope, over pyroscope= and otlp= at once: the sum of each type and series is that
# of the profiles sent, to the nanosecond. Then the same with a container that Pyroscope refuses in each window: no other
# profile is lost or counts twice.
#
#   pyroscope.sh PROGRAM [SECONDS]
#
# PROGRAM is Pyroscope's server, built without its pages. What was sent is known from Pyroscope's push handler, a third
# destination, and from a folder.
set -eu
# Pyroscope's parts find each other at fixed ports.
[ -n "${PODPROF_OWN_NETWORK:-}" ] || exec unshare --net env PODPROF_OWN_NETWORK=yes "$0" "$@"
ip link set lo up
pyroscope=$(realpath "$1") seconds=${2:-70}
cd "$(dirname "$0")/../.."
mkdir -p build/e2e
for tool in pyrosink backends; do
	ln -sf "$(test/tool.sh $tool)" build/e2e/$tool
done
# shellcheck source=e2e/lib.sh
. e2e/lib.sh
gcc -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -static -o build/e2e/burn e2e/workloads/burn.c
for name in goalloc gocontend goserve; do
	(cd e2e/workloads/$name && CGO_ENABLED=0 ../../../test/go.sh build -o ../../../build/e2e/$name .)
done

server=http://127.0.0.1:4040
most_labels=12 # of a series; the profiles of this test have at most 7
pyroscope_start() {
	local flags=() ring
	for ring in compactor.ring distributor.ring overrides-exporter.ring query-frontend query-scheduler.ring \
		store-gateway.sharding-ring; do
		flags+=("-$ring.instance-addr=127.0.0.1")
	done
	mkdir "$work/pyroscope"
	(
		cd "$work/pyroscope"
		exec "$pyroscope" "${flags[@]}" -segment-writer.lifecycler.addr=127.0.0.1 -memberlist.bind-addr=127.0.0.1 \
			-memberlist.advertise-addr=127.0.0.1 -architecture.storage=v2 -usage-stats.enabled=false \
			-self-profiling.disable-push -auth.multitenancy-enabled -validation.max-label-names-per-series=$most_labels
	) >"$work/pyroscope.log" 2>&1 &
	background+=($!)
	until_true curl -sf "$server/ready" || fail "no Pyroscope: $(tail -n 3 "$work/pyroscope.log")"
}

# run_once NAME SECONDS: an agent for some seconds; the profiles of its containers, and of no others on this machine, go to
# the tenants NAME-pyroscope and NAME-otlp. Calls containers_start, which may add relabelling rules to $rules.
run_once() {
	local name=$1 seconds=$2
	mkdir "$work/$name"
	rules='[]'
	"$fixtures/pyrosink" -dir "$work/$name/sink" -address-file "$work/$name/sink.address" >"$work/$name/sink.log" 2>&1 &
	background+=($!)
	until_true test -s "$work/$name/sink.address" || fail "no sink"
	containers_start
	only_own_containers "$work/$name.json" "$rules"
	agent_start --config "$work/$name.json" --window 5s --host-processes=false --off-cpu 1 --go-heap-profiler force \
		--destination "file=$work/$name/out,bytes=4GiB" --destination "pyroscope=http://$(cat "$work/$name/sink.address")" \
		--destination "pyroscope=$server,tenant=$name-pyroscope" --destination "otlp=$server,tenant=$name-otlp"
	sleep "$seconds"
	for id in "${containers[@]}"; do container_remove "$id"; done
	containers=()
	# The end of the agent is no part of this test: what it has not sent 8 s after its SIGTERM is lost.
	until_true no_series || fail "removed containers have profiles"
	sleep 12 # two windows
	until_true nothing_waits || fail "$(queued) bytes stay in the queues"
	note "$name: $(metrics_page | awk '/^podprof_export_profiles_total.* [1-9]/ { sub(/.*{/, ""); sub(/}/, ""); printf "%s; ", $0 }')"
	refused=$(metric podprof_export_profiles_total 'outcome="dropped')
	repeated=$(metric podprof_export_profiles_total 'outcome="retried"')
	agent_stop
	"$fixtures/backends" read -out "$work/$name/sent" "folder=$work/$name/out" "pyroscope=$work/$name/sink" 2>"$work/check.log" ||
		fail "read: $(tail -n 3 "$work/check.log")"
	"$fixtures/backends" compare "$work/$name/sent" >"$work/$name/compared" 2>"$work/check.log" ||
		fail "the folder and the push handler have different profiles"
	grep '"backend":"pyroscope"' "$work/$name/sent" >"$work/$name/truth"
}
# live NAME SECONDS: run_once under the name $name. Again if an answer took longer than 10 s: podprof repeated the request,
# and Pyroscope counts it twice until its compaction.
live() {
	local attempt
	for attempt in 1 2 3 4 5; do
		name=$1-$attempt
		run_once "$name" "$2"
		[ "$repeated" != 0 ] || return 0
		note "$repeated profiles repeated: the sums are not comparable"
	done
	fail "Pyroscope does not answer in time"
}
no_series() { [ "$(metric podprof_series)" = 0 ]; }
queued() { metric podprof_export_queue_bytes; }
nothing_waits() { [ "$(queued)" = 0 ]; }

# sums_agree WAY FLAGS...
sums_agree() {
	local way=$1
	shift
	"$fixtures/backends" query -server "$server" -tenant "$name-$way" -way "$way" "$@" "$work/$name/truth" \
		>"$work/$name/$way.sums" 2>"$work/$name/$way.log"
}
show() { while read -r line; do note "$line"; done <"$work/$name/$1.sums"; }

pyroscope_start
containerd_start

containers_start() {
	container_run "$fixtures/burn"
	container_run "$fixtures/gocontend"
	for _ in 1 2; do
		container_run "$fixtures/goalloc"
		container_run "$fixtures/goserve"
	done
}
live all "$seconds"
[ "$refused" = 0 ] || fail "$refused profiles are dropped"
for way in pyroscope otlp; do
	# A stored profile is visible after a second.
	until_true sums_agree $way || fail "$way: $(tail -n 3 "$work/$name/$way.log")"
	show $way
done

# The goalloc has more labels than Pyroscope accepts.
containers_start() {
	container_run "$fixtures/burn"
	container_run "$fixtures/goserve"
	container_run "$fixtures/goalloc"
	rules=$(jq -n --arg id "$container" --argjson n "$most_labels" '[range($n) |
		{source_labels: ["__meta_container_id"], regex: $id, target_label: "more\(.)", replacement: "x"}]')
	refused_container=$container
}
live refused 25
[ "$refused" -gt 0 ] || fail "no profile is refused"
# Pyroscope's storage counts each copy that arrives, so neither way sends one.
for way in pyroscope otlp; do
	until_true sums_agree $way -without "$refused_container" || fail "$way: $(tail -n 3 "$work/$name/$way.log")"
	show $way
done
