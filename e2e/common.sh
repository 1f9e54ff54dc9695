# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How end-to-end tests tell what they see, and wait.

note() { printf '           %s\n' "$*"; }
fail() {
	printf '           FAILED: %s\n' "$*"
	exit 1
}

# within SECONDS COMMAND...: poll until it succeeds; its output is not shown. 1 if it has not when they are over.
within() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.2
	done
}

# until_true COMMAND...: the same for what has to come. The limit ends a failure and is no claim: a busy machine may
# take minutes.
until_true() { within "${PODPROF_E2E_PATIENCE:-300}" "$@"; }

# is_busy: what asks for a CPU gets less than half of one, so that seconds say nothing of podprof
is_busy() {
	local TIMEFORMAT='%R %U' real user
	read -r real user < <({ time for ((i = 0; i < 100000; i++)); do :; done; } 2>&1)
	awk -v real="$real" -v user="$user" 'BEGIN { exit !(real > 2 * user + 0.05) }'
}

# in_time SECONDS MOST WHAT: a claim about time, which a busy machine cannot hold it to
in_time() {
	[ "$1" -le "$2" ] || is_busy || fail "$3: $1 s, more than $2"
	[ "$1" -le "$2" ] || note "$3: $1 s, more than $2, on a busy machine"
}

# metric NAME [PART...]: the sum of the samples with all these label parts, on the metrics_page of whom it is about.
# Nothing, and 1, if there is no page, even when asked again: that is not the same as 0.
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
