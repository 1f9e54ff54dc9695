#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run test programs and keep count.
#
#   run.sh unit|bpf PROGRAM...      cmocka programs; output only of those that fail
#   run.sh fuzz PROGRAM...          each fuzzer on its corpus (test/fuzz/MODULE/corpus/NAME)
#   run.sh search SECONDS PROGRAM.. libFuzzer; new findings go to build/fuzz/
#   run.sh bench PROGRAM...         measurements, printed
#   run.sh summary                  one closing line over what ran since the last summary
#
# A program has TEST_SECONDS (900): some build Go programs, once.
set -u
kind=$1
shift
results=build/test/results
mkdir -p "$results"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1

# one PROGRAM ARGS...: run it, print its output if it fails, note the outcome
one() {
	local log
	log=$(mktemp)
	if timeout "${TEST_SECONDS:-900}" "$@" >"$log" 2>&1; then
		echo passed >>"$results/$kind"
		rm -f "$log"
		printf '  %-8s %s\n' PASS "${1#build/test/}"
	else
		echo failed >>"$results/$kind"
		printf '  %-8s %s\n' FAIL "${1#build/test/}"
		cat "$log"
		rm -f "$log"
		return 1
	fi
}

case $kind in
unit | bpf)
	: >"$results/$kind"
	failed=0
	for program in "$@"; do one "$program" || failed=1; done
	exit $failed
	;;
fuzz)
	: >"$results/$kind"
	failed=0
	for program in "$@"; do
		module=$(basename "$(dirname "$program")")
		corpus=test/fuzz/$module/corpus/$(basename "$program" | sed 's/^fuzz_//')
		if [ -z "$(ls -A "$corpus" 2>/dev/null)" ]; then
			echo "  FAIL     $program: no corpus in $corpus"
			echo failed >>"$results/$kind"
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
bench)
	for program in "$@"; do "$program" || exit 1; done
	;;
summary)
	passed=$(cat "$results"/* 2>/dev/null | grep -c passed)
	failed=$(cat "$results"/* 2>/dev/null | grep -c failed)
	rm -f "$results"/*
	echo "$passed passed, $failed failed"
	[ "$failed" = 0 ] && [ "$passed" != 0 ]
	;;
*)
	echo "run.sh: unknown kind '$kind'" >&2
	exit 2
	;;
esac
