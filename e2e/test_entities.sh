#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Containers with the cgroup paths of both drivers. Their programs burn in functions that exist in one container only.
# In the sent profiles no function may be under another container's name, or under none.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

declare -A id_of
names="alpha beta gamma delta"
check() { "$fixtures/checkprofile" "$@" >>"$work/check.log" 2>&1; }

mkdir "$work/sink"
"$fixtures/pyrosink" -dir "$work/sink" -address-file "$work/sink.address" >"$work/sink.log" 2>&1 &
background+=($!)
until_true test -s "$work/sink.address" || fail "no sink"
agent_start --window 5s --destination "pyroscope=http://$(cat "$work/sink.address")" --host-processes
containerd_start

container_run "$fixtures/places_alpha"
id_of[alpha]=$container
driver=systemd container_run "$fixtures/places_beta"
id_of[beta]=$container
container_run "$fixtures/places_gamma" short
id_of[gamma]=$container
driver=systemd container_run_flags=--privileged container_run "$fixtures/places_delta" nested
id_of[delta]=$container

profiled() { check -label "container=${id_of[$1]}" -type cpu -function "^place_$1\$" -cum "$work/sink"; }
for name in $names; do
	until_true profiled "$name" || fail "no profile of $name"
done

# One container goes away; its last samples still have its name.
container_remove "${id_of[alpha]}"
files() { find "$work/sink" -name '*.json' | wc -l; }
before=$(files)
more() { [ "$(files)" -ge $((before + 8)) ]; }
until_true more || fail "no more profiles"

others=$(jq -r --arg ids "${id_of[*]}" 'select(.labels.container as $c | ($c == null) or
	($ids | split(" ") | index($c) == null)) | input_filename' "$work"/sink/*.json | sed 's/json$/pb.gz/')
if [ -n "$others" ]; then
	# shellcheck disable=SC2086
	! check -type cpu -function '^place_' -cum $others || fail "samples of containers are under other names"
fi
for name in $names; do
	for other in $names; do
		[ "$name" = "$other" ] ||
			! check -label "container=${id_of[$name]}" -type cpu -function "^place_$other\$" -cum "$work/sink" ||
			fail "samples of $other are under $name"
	done
done
note "$(files) profiles, none with another's samples; lookups: $(metric podprof_entity_lookups_total 'outcome="table"') by" \
	"the table, $(metric podprof_entity_lookups_total 'outcome="unknown') unknown"
agent_stop
