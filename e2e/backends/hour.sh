#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An hour of profiles of all types with a simulated clock (test/tools/hour.c), to all servers at once. Every value of
# every profile arrives, and only a profile whose answer was lost arrives twice.
#
#   hour.sh hour   each server is down, slow, busy, forgetful or lying for minutes
#   hour.sh away   all servers but the collector are away for an hour, and the sender is killed (SIGKILL) twice meanwhile
set -eu
cd "$(dirname "$0")/../.."
# shellcheck source=e2e/backends/servers.sh
. e2e/backends/servers.sh
servers_start

# In memory: the spool writes through to the disk every 5 simulated seconds.
mkdir "$work/spool"
mount -t tmpfs -o size=300m tmpfs "$work/spool"
plan=$1 status=137 runs=0
while [ $status = 137 ]; do
	status=0 runs=$((runs + 1))
	build/test/tools/hour "$plan" "$work/faults" "$work/truth" "$work/spool" "file=$work/out,bytes=1GiB" "pyroscope=$(at pyroscope)" \
		"parca=$(at parca)" "otlp=$(at otlp)" "coroot=$(at coroot)" "otlp=$(at collector)" \
		>"$work/hour" 2>>"$work/agent.log" || status=$?
	note "$(paste -sd, "$work/hour" | sed 's/,/, /g')"
	[ $runs = 1 ] || grep -q '^recovered' "$work/hour" || fail "run $runs has found nothing in the spool"
done
[ $status = 0 ] || fail "profiles were dropped or still wait: $(tail -n 3 "$work/agent.log")"
while read -r server fault; do
	grep -qx "$fault" "$work/faults/$server.requests" || fail "$server had no request during the fault $fault"
done <"$work/faults/plan"
if [ "$plan" = hour ]; then
	refused=$(awk '$2 == "rejected" { n += $3 } END { print n + 0 }' "$work/hour")
	[ "$refused" = "$(grep -c . "$work/faults/otlp.partial")" ] || fail "$refused refused profiles in accepted requests were counted"
else
	[ $runs = 3 ] || fail "$runs runs"
fi
servers_compare -types "$work/truth"
# Killed with requests to the collector under way; all other acknowledgements were on disk.
if [ "$plan" = away ]; then
	awk '{ split($0, part, /, twice |, excused/); if (part[2] > 0) twice = twice $1 } END { exit twice != "collector" }' "$work/compared" ||
		fail "other profiles than the collector's arrived twice, or none"
fi
