#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build the programs of the end-to-end tests, then run them: run.sh [NAME...] for some of test_NAME.sh.
set -u
cd "$(dirname "$0")/.."
fixtures=build/e2e
mkdir -p $fixtures build/test/results
: >build/test/results/e2e

set -e
# Frame pointers everywhere, also in leaf functions, and no library: for containers.
for name in burn faults jit mapped syscalls; do
	gcc -O2 -Wall -Wextra -Werror -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -static \
		-o "$fixtures/$name" "e2e/workloads/$name.c"
done
for name in goalloc gopgo gounsampled; do
	(cd e2e/workloads/$name && CGO_ENABLED=0 ../../../test/go.sh build -o ../../../$fixtures/$name .)
done
(cd e2e/workloads/goserve && CGO_ENABLED=0 ../../../test/go.sh build -ldflags '-s -w' -o ../../../$fixtures/goserve .)
ln -sf "$(test/tool.sh pyrosink)" $fixtures/pyrosink
ln -sf "$(test/tool.sh checkprofile)" $fixtures/checkprofile
ln -sf "$(test/tool.sh backends)" $fixtures/backends
ln -sf "$(test/tool.sh promtool)" $fixtures/promtool
set +e

tests=("$@")
[ $# -gt 0 ] || for path in e2e/test_*.sh; do
	name=${path#e2e/test_}
	tests+=("${name%.sh}")
done
# one NAME: runs a test and notes the outcome
one() {
	local name=$1 start=$SECONDS outcome=failed say=FAIL
	printf '  %-8s %s\n' E2E "$name"
	if timeout 1800 "e2e/test_$name.sh"; then
		outcome=passed
		say=PASS
	fi
	echo "$outcome e2e/$name" >>build/test/results/e2e
	printf '  %-8s e2e/%s %s s\n' $say "$name" $((SECONDS - start))
	[ $outcome = passed ]
}

# The recordings take a third of the time and wait most of it: they run beside the others.
beside=
for name in "${tests[@]}"; do
	if [ "$name" = record ] && [ ${#tests[@]} -gt 1 ]; then
		output=$(mktemp)
		one record >"$output" 2>&1 &
		beside=$!
	fi
done
failed=0
for name in "${tests[@]}"; do
	if [ "$name" != record ] || [ -z "$beside" ]; then
		one "$name" || failed=1
	fi
done
if [ -n "$beside" ]; then
	wait "$beside" || failed=1
	cat "$output"
	rm "$output"
fi
exit $failed
