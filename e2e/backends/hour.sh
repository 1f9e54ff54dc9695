#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An hour of profiles of all types with a simulated clock (test/tools/hour.c), to all servers at once. Each server is
# down, slow, busy, forgetful or lying for minutes. Every value of every profile arrives, and only a profile whose answer
# was lost arrives twice.
set -eu
cd "$(dirname "$0")/../.."
# shellcheck source=e2e/backends/servers.sh
. e2e/backends/servers.sh
servers_start

# In memory: the spool writes through to the disk every 5 simulated seconds.
mkdir "$work/spool"
mount -t tmpfs -o size=300m tmpfs "$work/spool"
status=0
build/test/tools/hour "$work/faults" "$work/truth" "$work/spool" "file=$work/out,bytes=1GiB" "pyroscope=$(at pyroscope)" "parca=$(at parca)" \
	"otlp=$(at otlp)" "coroot=$(at coroot)" "otlp=$(at collector)" >"$work/hour" 2>"$work/agent.log" || status=$?
note "$(paste -sd, "$work/hour" | sed 's/,/, /g')"
[ $status = 0 ] || fail "profiles were dropped or still wait: $(tail -n 3 "$work/agent.log")"
while read -r server fault; do
	grep -qx "$fault" "$work/faults/$server.requests" || fail "$server had no request during the fault $fault"
done <"$work/faults/plan"
refused=$(awk '$2 == "rejected" { n += $3 } END { print n + 0 }' "$work/hour")
[ "$refused" = "$(grep -c . "$work/faults/otlp.partial")" ] || fail "$refused refused profiles in accepted requests were counted"
servers_compare -types "$work/truth"
