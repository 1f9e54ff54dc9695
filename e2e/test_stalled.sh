#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Programs on file systems that stop answering, each at another operation: the agent answers, samples
# and names everything else, and ends when it is told to.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# stall OPERATION: a program runs on a file system of its own, whose server then goes silent
stall() {
	local dir=$work/$1
	mkdir "$dir"
	mkfifo "$work/$1.in"
	"$fixtures/stallfs" "$dir" "$fixtures/burn" "$1" <"$work/$1.in" >"$work/$1.out" &
	background+=($!)
	eval "exec $2>$work/$1.in"
	until_true grep -q mounted "$work/$1.out" || fail "the file system for $1 is not mounted"
	"$dir/program" 600 >"$work/$1.program" 2>&1 &
	background+=($!)
	# in its loop: all that it needs is in memory
	burns() { [ "$(awk '{ print $14 }' "/proc/$1/stat")" -gt 20 ]; }
	until_true burns $! || fail "the program for $1 does not run"
	mapfile -t -O ${#background[@]} background < <(pgrep -P $!)
	echo stall >&"$2"
}
stall open 10
stall getattr 11
stall read 12
stall flush 13

mkdir "$work/store"
agent_start --window 3s --store-dir "$work/store"
containerd_start
container_run "$fixtures/places_alpha"

# A container has its names, and the agent answers all the time
named() { gzip -dc "$work"/store/*/*_cpu.pb.gz 2>/dev/null | grep -ac place_alpha >/dev/null; }
slowest=0
for _ in $(seq 40); do
	answered=$(curl -sf --max-time 60 -o /dev/null -w '%{time_total}' "http://$agent/-/healthy") || fail "no answer"
	in_time "${answered%.*}" 1 "an answer"
	slowest=$(printf '%s\n%s\n' "$slowest" "$answered" | sort -g | tail -n 1)
	sleep 0.5
done
named || fail "the program of a container has no names"
note "slowest answer $slowest s, $(metric podprof_symbol_reads_abandoned_total) reads of names abandoned"

# It ends when it is told to: its samples are taken no more, its last window is stored. What remains
# is a thread that no signal reaches, until its file system answers.
ended() { grep -q 'msg=ended' "$work/agent.log"; }
SECONDS=0
kill -TERM "$agent_pid"
until_true ended || fail "the agent does not end"
in_time $SECONDS 10 "the end of the agent"
for fd in 10 11 12 13; do echo answer >&$fd; done
wait "$agent_pid" || fail "the agent ended with $?"
