#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Containers with the cgroup paths of both drivers. Their programs burn in functions that exist in one container only.
# In the sent profiles no function may be under another container's name, or under none.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

declare -A id_of
names="alpha beta gamma delta"
run=$$ # functions of this run: another one on this machine has containers, too
for name in $names; do
	gcc -O2 -Wall -Wextra -Werror -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -static \
		-DPLACE="place_${name}_$run" -o "$work/places_$name" "$top/e2e/workloads/places.c"
done
check() { "$fixtures/checkprofile" "$@" >>"$work/check.log" 2>&1; }
# lacks FUNCTION ARGUMENTS...: none of the profiles has the function. An error of checkprofile is no such answer.
lacks() {
	! "$fixtures/checkprofile" -type cpu -cum -function "$1" "${@:2}" >"$work/lacks.log" 2>&1 || return 1
	grep -q '^checkprofile: no function ' "$work/lacks.log" || fail "$(tail -n 1 "$work/lacks.log")"
}

mkdir "$work/sink"
"$fixtures/pyrosink" -dir "$work/sink" -address-file "$work/sink.address" >"$work/sink.log" 2>&1 &
background+=($!)
until_true test -s "$work/sink.address" || fail "no sink"
agent_start --window 5s --destination "pyroscope=http://$(cat "$work/sink.address")" --host-processes
containerd_start

container_run "$work/places_alpha"
id_of[alpha]=$container
driver=systemd container_run "$work/places_beta"
id_of[beta]=$container
container_run "$work/places_gamma" short
id_of[gamma]=$container
driver=systemd container_run_flags=--privileged container_run "$work/places_delta" nested
id_of[delta]=$container

profiled() { check -label "container=${id_of[$1]}" -type cpu -function "place_$1_$run" -cum "$work/sink"; }
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
# Of the other programs of this machine, at least of this test's own
[ -n "$others" ] || fail "no profiles of others"
# shellcheck disable=SC2086
lacks "place_.*_$run" $others || {
	for file in $others; do
		! check -type cpu -cum -function "place_.*_$run" "$file" ||
			note "$(jq -c .labels "${file%.pb.gz}.json"): $(tail -n 1 "$work/check.log")"
	done
	fail "samples of containers are under other names"
}
for name in $names; do
	for other in $names; do
		[ "$name" = "$other" ] ||
			lacks "place_${other}_$run" -label "container=${id_of[$name]}" "$work/sink" ||
			fail "samples of $other are under $name"
	done
done
note "$(files) profiles, none with another's samples; lookups: $(metric podprof_entity_lookups_total 'outcome="table"') by" \
	"the table, $(metric podprof_entity_lookups_total 'outcome="unknown') unknown"
agent_stop
