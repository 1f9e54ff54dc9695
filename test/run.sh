#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run test programs and keep count.
#
#   run.sh unit|bpf PROGRAM...      cmocka programs; output of failed programs only, and the time of each
#   run.sh tsan PROGRAM...          cmocka programs under ThreadSanitizer
#   run.sh fuzz PROGRAM...          each fuzzer on its corpus (test/fuzz/MODULE/corpus/NAME)
#   run.sh search SECONDS PROGRAM.. libFuzzer; new findings go to build/fuzz/
#   run.sh counts                   the arithmetic of the benchmarks, test/bench
#   run.sh page                     the page's scripts, with Node
#   run.sh hostile                  attacks on a live agent, test/hostile
#   run.sh begin                    forget earlier results
#   run.sh summary                  failures since then with their first reasons, and one closing line
#
# Each program has TEST_SECONDS (3600), to end hanging programs: on a busy machine builds of Go programs take half an
# hour. Unit tests run TEST_JOBS (two for each CPU) at a time, because many of them wait; the others run one by one.
set -u
kind=$1
shift
results=build/test/results
mkdir -p "$results"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=history_size=4:exitcode=66:suppressions=$PWD/test/tsan.supp

# reasons LOG: the first lines of a program's output that tell the failure
reasons() {
	grep -a -m 4 -E '^\[ +(ERROR|LINE) +\]|ERROR: |WARNING: ThreadSanitizer: |runtime error: |^Traceback|Error:' "$1" | cut -c 1-300 | sed 's/^/failed:    /'
}

# one PROGRAM ARGS...: run the program, print its output on failure, note the outcome
one() {
	local log start=${EPOCHREALTIME/[.,]/} status=0 tenths
	log=$(mktemp)
	timeout "${TEST_SECONDS:-3600}" "$@" >"$log" 2>&1 || status=$?
	tenths=$(((${EPOCHREALTIME/[.,]/} - start) / 100000))
	if [ $status = 0 ]; then
		echo "passed ${1#build/test/}" >>"$results/$kind"
		printf '  %-8s %s %d.%d s\n' PASS "${1#build/test/}" $((tenths / 10)) $((tenths % 10))
	else
		{ echo "failed ${1#build/test/}" && reasons "$log"; } >>"$results/$kind"
		printf '  %-8s %s %d.%d s, status %d\n%s\n' FAIL "${1#build/test/}" $((tenths / 10)) $((tenths % 10)) \
			$status "$(cat "$log")"
	fi
	rm -f "$log"
	return $status
}

# several JOBS PROGRAM...: so many at a time
several() {
	local jobs=$1 running=0 failed=0 program
	shift
	: >"$results/$kind"
	for program; do
		if [ "$running" -ge "$jobs" ]; then
			wait -n || failed=1
			running=$((running - 1))
		fi
		one "$program" &
		running=$((running + 1))
	done
	for (( ; running > 0; running--)); do wait -n || failed=1; done
	return $failed
}

case $kind in
unit | tsan) several "${TEST_JOBS:-$((2 * $(nproc)))}" "$@" ;;
bpf) several 1 "$@" ;;
counts) several 1 test/bench/test_*.py ;;
page) several 1 test/unit/server/test_*.js ;;
hostile) several 1 test/hostile/hostile.py ;;
fuzz)
	: >"$results/$kind"
	failed=0
	for program in "$@"; do
		module=$(basename "$(dirname "$program")")
		corpus=test/fuzz/$module/corpus/$(basename "$program" | sed 's/^fuzz_//')
		if [ -z "$(ls -A "$corpus" 2>/dev/null)" ]; then
			echo "  FAIL     $program: no corpus in $corpus"
			echo "failed $program" >>"$results/$kind"
			failed=1
			continue
		fi
		one "$program" "$corpus" || failed=1
	done
	exit $failed
	;;
search)
	seconds=$1
	shift
	failed=0
	for program in "$@"; do
		name=$(basename "$program" | sed 's/^fuzz_//')
		module=$(basename "$(dirname "$program")")
		work=build/fuzz/$module/$name
		mkdir -p "$work"
		printf '  %-8s %s\n' FUZZ "$module/$name"
		"$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=0 \
			-verbosity=0 -artifact_prefix="$work/crash-" "$work" \
			"test/fuzz/$module/corpus/$name" || failed=1
	done
	exit $failed
	;;
begin) rm -f "$results"/* ;;
summary)
	passed=$(cat "$results"/* 2>/dev/null | grep -c '^passed')
	failed=$(cat "$results"/* 2>/dev/null | grep -c '^failed ')
	cat "$results"/* 2>/dev/null | sed -n 's/^failed:/  /p; s/^failed/  FAILED  /p'
	rm -f "$results"/*
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
	;;
*)
	echo "run.sh: unknown kind '$kind'" >&2
	exit 2
	;;
esac
