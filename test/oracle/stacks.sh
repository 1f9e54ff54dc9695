#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The stack oracle over many programs: each program is stopped STOPS times and unwound by libdwfl and by podprof's
# walker, and then sampled for SAMPLED with podprof record. Two tables. Fails on an unreadable program or a missed goal.
# Tools missing on this machine (rustc, a JDK, ...) are named and skipped.
#
#   stacks.sh [PATTERN]   programs with PATTERN in their names
set -u
pattern=${1:-}
stops=${STOPS:-1000} sampled=${SAMPLED:-5s} rate=${RATE:-499}
build=${B:-build}
fixtures=$build/test/fixtures
sources=test/fixtures/stacks
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
absent=
failed=0

record="$build/podprof record --pid \$STACKS_PID --rate $rate --duration $sampled --output $work/p.pb.gz 2>$work/log"

# program NAME GOAL [-OPTION...] COMMAND...: GOAL is per cent of complete stacks when sampled, - for none
program() {
	local name=$1 goal=$2 complete verdict=
	shift 2
	local options=(-n "$stops" -v "${SHOWN:-0}" -c "$record")
	while [ "${1#-}" != "$1" ]; do
		options+=("$1")
		shift
	done
	case $name in *"$pattern"*) ;; *) return ;; esac
	: >"$work/log"
	"$build/test/oracle/stacks" "${options[@]}" "$name" "$@" || failed=1
	complete=$(sed -n 's/.*; \([0-9.]*\) % with complete.*/\1/p' "$work/log")
	[ "$goal" = - ] || [ "$(echo "${complete:-0} >= $goal" | bc)" = 1 ] || {
		verdict=' **missed**'
		failed=1
	}
	printf '| %-26s | %7s | %6s | %4s%s | %s |\n' "$name" \
		"$(sed -n 's/^\([0-9]*\) samples of .*/\1/p' "$work/log")" "$complete" "$goal" "$verdict" \
		"$(sed -n 's/^truncated: //p' "$work/log")" >>"$work/sampled"
}

has() {
	command -v "$1" >/dev/null || {
		absent="$absent $1"
		return 1
	}
}

echo "| program | stacks | frames | deepest | equal frames, % | complete, % | not complete |"
echo "|---|---|---|---|---|---|---|"
for kind in calls registers library strings clock signals deep threads; do
	program "C -O2, $kind" 99.5 "$fixtures/work-O2" $kind
done
program "C -O2, coroutines" - "$fixtures/work-O2" coroutine
program "C -O2, vfork" - -f "$fixtures/work-O2" vfork
for how in O3 static static-pie; do
	for kind in calls library strings clock signals; do
		program "C $how, $kind" 99.5 "$fixtures/work-$how" $kind
	done
done
if has musl-gcc; then
	musl-gcc -O2 -D_GNU_SOURCE -o "$work/musl" $sources/work.c
	for kind in calls library strings signals threads; do
		program "C musl, $kind" 99.5 "$work/musl" $kind
	done
fi
for how in O2 O3 static; do
	program "C++ $how" 99.5 "$fixtures/cxxwork-$how"
done
if has rustc; then
	rustc -O -o "$work/rust" $sources/work.rs
	program "Rust -O" 99.5 "$work/rust"
	rustc -C opt-level=3 -C panic=unwind -C lto=fat -o "$work/rust-lto" $sources/work.rs
	program "Rust, LTO" 99.5 "$work/rust-lto"
fi
go=$build/test/go
program "Go" 99 -g "$(test/support/build-go.sh "$go" test/fixtures/go/stacks go default)"
program "Go, cgo" 99 -g "$(test/support/build-go.sh "$go" test/fixtures/go/stacks go cgo)"
if has openssl; then
	for what in sha256 sha1 md5 aes-256-cbc aes-128-gcm chacha20-poly1305; do
		program "OpenSSL, $what" - openssl speed -seconds 60 -bytes 8192 -evp $what
	done
	program "OpenSSL, RSA and EC" - openssl speed -seconds 60 rsa2048 ecdsap256
fi
has node && program "Node" - -w2000 node $sources/work.js
has java && program "OpenJDK" - -w4000 java $sources/Work.java

echo
echo "| program, sampled | samples | complete, % | goal | not complete |"
echo "|---|---|---|---|---|"
cat "$work/sampled"
[ -z "$absent" ] || echo "not here:$absent"
exit $failed
