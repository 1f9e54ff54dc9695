# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Output and waiting in end-to-end tests.

note() { printf '           %s\n' "$*"; }
fail() {
	printf '           FAILED: %s\n' "$*"
	exit 1
}

# within SECONDS COMMAND...: poll until COMMAND succeeds, without its output. Returns 1 after the time.
within() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.2
	done
}

# until_true COMMAND...: the same for an expected event. The limit only ends a failure: a busy machine may take minutes.
until_true() { within "${PODPROF_E2E_PATIENCE:-300}" "$@"; }

# is_busy: the machine gives a waiting task less than half a CPU, so measured seconds mean nothing
is_busy() {
	local TIMEFORMAT='%R %U' real user
	read -r real user < <({ time for ((i = 0; i < 100000; i++)); do :; done; } 2>&1)
	awk -v real="$real" -v user="$user" 'BEGIN { exit !(real > 2 * user + 0.05) }'
}

# in_time SECONDS MOST WHAT: a claim about time, skipped on a busy machine
in_time() {
	[ "$1" -le "$2" ] || is_busy || fail "$3: $1 s, more than $2"
	[ "$1" -le "$2" ] || note "$3: $1 s, more than $2, on a busy machine"
}

# metric NAME [PART...]: the sum of the samples with all these label parts, on the present metrics_page. Nothing, and
# status 1, without a page even after a retry: this differs from 0.
metric() {
	local name=$1 part lines page=
	shift
	for _ in 1 2 3 4 5; do
		if page=$(metrics_page 2>/dev/null); then break; fi
		sleep 1
	done
	[ -n "$page" ] || return 1
	lines=$(grep "^${name}[{ ]" <<<"$page" || true)
	for part; do lines=$(grep -F "$part" <<<"$lines" || true); done
	awk '{ sum += $NF } END { printf "%.0f\n", sum }' <<<"$lines"
}
