#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Go programs of several releases, sampled with podprof record: the share of complete stacks, and the reasons of
# truncated ones. Prints a table; fails below GOAL per cent. test/unit/unwind/test_gostacks checks the frames.
#
#   gostacks.sh VERSION...   in the form of build-go.sh
set -u
goal=${GOAL:-99} sampled=${SAMPLED:-4s} rate=${RATE:-499}
build=${B:-build}
work=$(mktemp -d)
failed=0
pid=
trap '[ -z "$pid" ] || kill "$pid"; rm -rf "$work"' EXIT

# sample NAME PROGRAM: a row of the table
sample() {
	local name=$1 complete verdict=
	mkfifo "$work/in"
	"$2" <"$work/in" >"$work/out" &
	pid=$!
	exec 7>"$work/in"
	rm "$work/in"
	for _ in $(seq 100); do
		grep -q ready "$work/out" && break
		sleep 0.1
	done
	"$build/podprof" record --pid $pid --rate "$rate" --duration "$sampled" --output "$work/p" 2>"$work/log" ||
		cat "$work/log" >&2
	exec 7>&-
	wait $pid
	pid=
	complete=$(sed -n 's/.*; \([0-9.]*\) % with complete.*/\1/p' "$work/log")
	[ "$(echo "${complete:-0} >= $goal" | bc)" = 1 ] || {
		verdict=' **missed**'
		failed=1
	}
	printf '| %-26s | %7s | %6s%s | %s |\n' "$name" \
		"$(sed -n 's/^\([0-9]*\) samples of .*/\1/p' "$work/log")" "$complete" "$verdict" \
		"$(sed -n 's/^truncated: //p' "$work/log")"
}

echo "| program, sampled | samples | complete, % | not complete |"
echo "|---|---|---|---|"
for version in "$@"; do
	for program in "stacks default" "stacks cgo" "stacks cgo-pie" "serve default"; do
		read -r source variant <<<"$program"
		path=$(test/support/build-go.sh "$build/test/go" "test/fixtures/go/$source" "$version" "$variant") || {
			failed=1
			continue
		}
		sample "$version, $source, $variant" "$path"
	done
done
exit $failed
