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
pyroscope=$(realpath "$1") seconds=${2:-70}
cd "$(dirname "$0")/../.."
# shellcheck source=e2e/backends/whole.sh
. e2e/backends/whole.sh
burn_build burn

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
	rules='[]'
	sink_start "$work/$name"
	containers_start
	sending_start "$work/$name" "$rules" --destination "pyroscope=$server,tenant=$name-pyroscope" \
		--destination "otlp=$server,tenant=$name-otlp"
	sleep "$seconds"
	everything_sent
	note "$name: $(outcomes export_profiles)"
	refused=$(metric podprof_export_profiles_total 'outcome="dropped')
	repeated=$(metric podprof_export_profiles_total 'outcome="retried"')
	agent_stop
	sent_read "$work/$name"
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
# check FLAG...: both tenants, with the profiles of $name. A stored profile is visible after a second.
check() {
	local way
	for way in pyroscope otlp; do
		sums_check "$work/$name" $way -server "$server" -tenant "$name-$way" "$@" "$work/$name/truth"
	done
}

pyroscope_start
containerd_start

containers_start() { programs_start burn; }
live all "$seconds"
[ "$refused" = 0 ] || fail "$refused profiles are dropped"
check

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
check -without "$refused_container"
