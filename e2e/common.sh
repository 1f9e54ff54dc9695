# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# How end-to-end tests tell what they see, and wait.

note() { printf '           %s\n' "$*"; }
fail() {
	printf '           FAILED: %s\n' "$*"
	exit 1
}

# until_true SECONDS COMMAND...: poll; the command's output is not shown
until_true() {
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || return 1
		sleep 0.2
	done
}
