#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# podprof record, following its help: a process, its children, a container, the node, a command; the ends of a
# recording; files and messages.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

check() { "$fixtures/checkprofile" "$@" >>"$work/check.log" 2>&1 || fail "checkprofile $*"; }

# record ARGS...: sets $profile and $status; messages are in record.log
n=0
record() {
	n=$((n + 1))
	profile=$work/$n.pb.gz
	status=0
	"$podprof" record --output "$profile" "$@" >"$work/record.out" 2>"$work/record.log" || status=$?
}
# recorded ARGS...: a recording that must succeed
recorded() {
	record "$@"
	[ $status = 0 ] && [ -s "$profile" ] || {
		cat "$work/record.log"
		fail "record $* ended with $status"
	}
}
says() { grep -q -- "$1" "$work/record.log" || fail "record does not say '$1': $(cat "$work/record.log")"; }
samples() { sed -n 's/^\([0-9]*\) samples of .*/\1/p' "$work/record.log"; }
programs() { sed -n 's/^[0-9]* samples of \([0-9]*\) program.*/\1/p' "$work/record.log"; }
# has NAME [VALUE]: whether samples have this label
has() { "$podprof" inspect profile --json "$profile" | grep "\"$1\"" >/dev/null || fail "no label $1"; }

# Whether the recorder in the background is ready for signals and has its targets: it waits for events.
begun() {
	local working
	working=$(tr -d ' ' <"/proc/$recorder/task/$recorder/children")
	[ -n "$working" ] && grep -q 'ep_poll\|epoll' "/proc/$working/wchan"
}

# shares: 70 % and 30 % of the CPU time of burn, which does nothing else
shares() {
	check -type cpu -function '^burn_seventy$' -cum -share 70 -tolerance 6 "$profile"
	check -type cpu -function '^burn_thirty$' -cum -share 30 -tolerance 6 "$profile"
}

# recorded_enough ARGS...: long enough for 1,000 samples on a busy machine: their shares have a standard deviation of
# 1.5 points
recorded_enough() {
	local seconds
	for seconds in 2 6 20 60 200; do
		recorded --rate 499 --duration "${seconds}s" "$@"
		[ "$(samples)" -lt 1000 ] || return 0
	done
	fail "only $(samples) samples"
}

# By PID, with an existing child
"$fixtures/burn" &
burn=$!
background+=("$burn")
# By /proc/PID/stat, with names without blanks here: a bare Debian has no pgrep.
children() { (cat /proc/[0-9]*/stat 2>/dev/null || true) | awk -v parent="$burn" '$4 == parent { print $1 }'; }
burning() { [ "$(children | wc -l)" = 1 ]; }
until_true burning || fail "no child of $burn"
recorded_enough --pid "$burn"
shares
[ "$(programs)" = 2 ] || fail "not parent and child: $(cat "$work/record.log")"
says 'by the clock at 499 Hz'
says "wrote $profile"
has comm
note "by pid: $(head -1 "$work/record.log")"

# Without a duration Ctrl-C ends the recording, and podprof still writes the profile
"$podprof" record --pid "$burn" --output "$work/interrupted.pb.gz" 2>"$work/record.log" &
recorder=$!
background+=("$recorder")
until_true begun || fail "it does not begin"
kill -INT "$recorder"
wait "$recorder" || fail "Ctrl-C: ended with $?"
says 'wrote .*interrupted'
gunzip -t <"$work/interrupted.pb.gz" || fail "Ctrl-C: no profile"

# To standard output
"$podprof" record --pid "$burn" --duration 500ms --output - >"$work/stdout.pb.gz" 2>"$work/record.log"
[ "$("$fixtures/checkprofile" -type cpu "$work/stdout.pb.gz" | wc -l)" -gt 0 ] || fail "nothing on standard output"

# All of the node, with the kernel
recorded --all --duration 1s
[ "$(programs)" -ge 2 ] || fail "node-wide: $(cat "$work/record.log")"
note "node-wide: $(head -1 "$work/record.log")"

# The recording ends with the processes
children | xargs kill "$burn"
wait "$burn" || true
sleep 300 &
sleeper=$!
background+=("$sleeper")
sleeps() { grep -q nanosleep "/proc/$sleeper/wchan"; }
until_true sleeps || fail "it does not sleep"
"$podprof" record --pid "$sleeper" --output "$work/sleep.pb.gz" 2>"$work/record.log" &
recorder=$!
background+=("$recorder")
until_true begun || fail "it does not begin"
sleep 1
kill "$sleeper"
wait "$recorder" || fail "a process that ends: ended with $?"
says 'waiting threads are not sampled'

# A command, from its first instruction to its end, with its children
recorded --rate 499 -- "$fixtures/burn" 2
shares
says "burn ended with status 0"
[ "$(programs)" = 2 ] || fail "not command and child: $(cat "$work/record.log")"

# A command with a life of 300 ms has names
recorded --rate 999 -- "$fixtures/burn" 0.3
[ "$(samples)" -ge 300 ] || fail "short command: $(cat "$work/record.log")"
shares
note "300 ms: $(head -1 "$work/record.log")"

# A command with a life of 30 ms has names, in each recording: also without stack dumps, which have times of their own
for unwind in auto fp; do
	for _ in 1 2 3 4 5; do
		recorded --rate 999 --unwind "$unwind" -- "$fixtures/burn" 0.03
		[ "$(samples)" -ge 10 ] || fail "30 ms: $(cat "$work/record.log")"
		check -type cpu -function '^burn_(seventy|thirty)$' -cum -share 80 -tolerance 20 "$profile"
	done
done

# Code that is made at run time has the names of its perf map, also in a container's namespaces
for how in '' nested; do
	# shellcheck disable=SC2086
	recorded --rate 499 -- "$fixtures/jit" $how
	check -type cpu -function '^jit_seventy$' -cum -share 70 -tolerance 6 "$profile"
	check -type cpu -function '^jit_thirty$' -cum -share 30 -tolerance 6 "$profile"
done
recorded -- node -e 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } fib(44)'
check -type cpu -function '^fib$' -share 80 -tolerance 20 "$profile"

# Go's tools take a CPU profile: the compiler inlines by it, and pprof has its reports
go() { "$top/test/go.sh" "$@" 2>>"$work/check.log"; }
recorded --duration 3s -- "$fixtures/gopgo" 60
check -wire -type cpu -function '^main.sum$' -cum -share 99 -tolerance 5 "$profile"
(cd "$top/e2e/workloads/gopgo" && CGO_ENABLED=0 "$top/test/go.sh" build "-pgo=$profile" -gcflags=-d=pgodebug=1 -o "$work/gopgo" .) \
	>"$work/pgo" 2>&1 || fail "go build -pgo: $(cat "$work/pgo")"
grep -q 'hot-budget check allows inlining for call main.mix' "$work/pgo" || fail "go build -pgo inlines nothing: $(cat "$work/pgo")"
export PPROF_TMPDIR=$work
go tool pprof -symbolize=none -peek '^main.sum$' "$profile" >"$work/report" && grep -q 'main.main' "$work/report" || fail "go tool pprof -peek"
go tool pprof -symbolize=none -list '^main.mix$' "$profile" >"$work/report" && grep -q 'a ^= b >> 7' "$work/report" || fail "go tool pprof -list"
go tool pprof -symbolize=none -proto -output "$work/twice.pb.gz" "$profile" "$profile" >/dev/null || fail "go tool pprof -proto"
total() { "$fixtures/checkprofile" -type cpu "$1" | sed -n 's|.*cpu/nanoseconds total \([0-9]*\).*|\1|p'; }
[ "$(total "$work/twice.pb.gz")" = $((2 * $(total "$profile"))) ] || fail "merged profiles do not add up"
go tool pprof -symbolize=none -top -diff_base "$profile" "$work/twice.pb.gz" >"$work/report" &&
	grep -q 'main.sum' "$work/report" || fail "go tool pprof -diff_base"
note "go build -pgo: $(grep -c 'hot-budget check allows' "$work/pgo") calls inlined by the profile"

# The command's status is printed, and its output stays apart from the profile
recorded -- sh -c 'echo out; exit 3'
says "sh ended with status 3"
[ "$(cat "$work/record.out")" = out ] || fail "the command's output is lost"
"$podprof" record --output - -- sh -c 'echo out; kill -9 $$' >"$work/stdout.pb.gz" 2>"$work/record.log"
"$fixtures/checkprofile" "$work/stdout.pb.gz" >/dev/null 2>&1 || gunzip -t <"$work/stdout.pb.gz" || fail "the command's output is in the profile"
says '^out$'
says "sh was killed by signal 9"

# Ctrl-C in the middle, from the command itself, so that both parts have run; a tag is a label of each sample
# shellcheck disable=SC2016
recorded --tag version=1.2 -- sh -c '"$0" 0.3; kill -INT $PPID; "$0" 0.3; exit 5' "$fixtures/burn"
[ "$(samples)" -gt 0 ] || fail "interrupted command: no samples"
says 'waiting for sh to end'
says 'sh ended with status 5'
has version

# A recording that ends before its command waits for the command
recorded --duration 300ms -- sh -c 'sleep 1; exit 4'
says "sh ended with status 4"

# Where a command waits, to 5 per cent
recorded --off-cpu 1 -- sleep 2
"$fixtures/checkprofile" -type delay -function '^do_nanosleep$' -cum -value 2000000000 -tolerance 5 "$profile" \
	>>"$work/check.log" 2>&1 || fail "the time that sleep 2 waits"
note "sleep 2: $(sed -n 2p "$work/record.log")"

# Each page fault, at its place
recorded --event page-faults -- "$fixtures/faults"
check -type page-faults -function '^touch_pages$' -value 20000 -tolerance 1 "$profile"

# Impossible requests: one line, and no file left behind
fails() { # STATUS SAYS ARGS...
	local want=$1 text=$2
	shift 2
	record "$@"
	[ "$status" = "$want" ] || fail "record $* ended with $status, not $want"
	says "$text"
	[ "$(wc -l <"$work/record.log")" = 1 ] || fail "record $* says more than a line"
	[ ! -e "$profile" ] || fail "record $* leaves a file"
}
fails 3 'no process' --pid 4194303
fails 3 'no container' --container 0123456789
fails 1 'cannot run /nonexistent' -- /nonexistent
fails 2 'give a target'
if ! perf_event_cycles=$("$podprof" record --event cycles --duration 10ms --all --output - 2>&1 >/dev/null); then
	grep -q 'no hardware counter for cycles.*cpu-clock.*page-faults' <<<"$perf_event_cycles" || fail "cycles: $perf_event_cycles"
	note "cycles: refused, this machine has no counters"
fi

# A container, by the beginning of its id, without anything else
containerd_start
container_run "$fixtures/burn"
recorded_enough --container "${container:0:16}"
shares
has "$container"
[ "$(programs)" = 2 ] || fail "container: $(cat "$work/record.log")"
recorded --container "containerd://$container" --duration 300ms
"$podprof" record --container "$container" --output "$work/ended.pb.gz" 2>"$work/ended.log" &
recorder=$!
background+=("$recorder")
until_true begun || fail "it does not begin"
burning=$(ctr -a "$work/containerd.sock" task ls | awk -v id="$container" '$1 == id {print $2}')
ticks() { sed 's/.*) //' "/proc/$burning/stat" | awk '{print $12 + $13}'; } # of 10 ms
enough=$(($(ticks) + 200))
burned() { [ "$(ticks)" -ge "$enough" ]; }
until_true burned || fail "it does not burn"
ctr -a "$work/containerd.sock" task kill -s KILL "$container" || fail "ctr task kill"
ended() { ! kill -0 "$recorder" 2>/dev/null; }
until_true ended || fail "it does not end with its container"
wait "$recorder" || fail "a container that ends: ended with $?: $(cat "$work/ended.log")"
"$fixtures/checkprofile" -type cpu -function '^burn_seventy$' -cum -share 70 -tolerance 20 "$work/ended.pb.gz" \
	>>"$work/check.log" 2>&1 || fail "a container that ends: the profile"
note "container: $(head -1 "$work/record.log")"
note "$(sed -n 2p "$work/record.log")"
