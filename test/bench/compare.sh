#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compare the counts of two versions, measured by turns (test/bench/counts.py). Root, minutes.
#
#   compare.sh REF     REF is built in a work tree under build/base; fails if a count grew by 5 %
#
# COMPARE_ROUNDS (2): runs of each version; the lowest of each count is used. JOBS: of make, for REF.
set -eu
cd "$(dirname "$0")/../.."
ref=${1:-}
[ -n "$ref" ] || { echo "usage: compare.sh REF (make bench-compare BASE=REF)" >&2; exit 2; }
commit=$(git rev-parse --verify --quiet "$ref^{commit}") || { echo "compare.sh: no commit '$ref'" >&2; exit 2; }
base=$PWD/build/base/$commit out=$PWD/build/bench
mkdir -p "$out" build/base
if [ ! -e "$base/Makefile" ]; then
	git worktree prune
	git worktree add --detach --quiet "$base" "$commit"
fi
make -C "$base" --no-print-directory ${JOBS:+"$JOBS"} all build/test/bench/bench_lines >"$out/base.log" 2>&1 || {
	tail -20 "$out/base.log" >&2
	echo "compare.sh: $ref does not build" >&2
	exit 1
}
bases='' news=''
for ((i = 1; i <= ${COMPARE_ROUNDS:-2}; i++)); do
	test/bench/counts.py run --quiet --build "$base/build" --json "$out/base-$i.json"
	test/bench/counts.py run --quiet --json "$out/new-$i.json"
	bases=$bases,$out/base-$i.json news=$news,$out/new-$i.json
done
echo "before: $ref ($commit)"
test/bench/counts.py compare "${bases#,}" "${news#,}"
