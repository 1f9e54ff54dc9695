#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Hostile containers: the agent stays up, answers, stays small, and escapes everything.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir "$work/store"
agent_start --window 3s --store-dir "$work/store"
containerd_start
entities=()
for how in names maps exec fork sparse tables; do
	container_run "$fixtures/hostile" "$how"
	entities+=("${container:0:12}")
done

# Answers within two seconds, all the time
for _ in $(seq 32); do
	answered=$(curl -sf --max-time 60 -o /dev/null -w '%{time_total}' "http://$agent/-/healthy") || fail "no answer"
	in_time "${answered%.*}" 1 "an answer"
	sleep 0.5
done

# Every container has profiles, under its own id
for entity in "${entities[@]}"; do
	ls "$work"/store/*"$entity"*/*_cpu.pb.gz >/dev/null 2>&1 || fail "no profile of the container $entity"
done
rss=$(awk '$1 == "VmRSS:" { print $2 }' "/proc/$agent_pid/status")
[ "$rss" -lt "${PODPROF_RSS_KIB:-100000}" ] || fail "the agent has grown to $rss KiB"
# Unwind tables without end, and of the same code over and over, do not keep the others waiting
seconds=$(metric podprof_unwind_compile_seconds_total)
[ "$seconds" -le 10 ] || fail "compiling unwind tables took $seconds s"
[ "$(metric podprof_unwind_compiled_total 'outcome="ok"')" -ge 2 ] || fail "no unwind tables"
note "RSS $rss KiB, open files $(find "/proc/$agent_pid/fd" -type l | wc -l)"

# The name is escaped everywhere
curl -sf "http://$agent/" >"$work/page.html"
curl -sf "http://$agent/metrics" >"$work/metrics.txt"
if grep -q '<b>"' "$work/page.html" || grep -q "$(printf '\033')" "$work/page.html" "$work/metrics.txt" "$work/agent.log"; then
	fail "a name was not escaped"
fi
"$fixtures/promtool" check metrics <"$work/metrics.txt" >"$work/promtool.log" 2>&1 || fail "promtool check metrics"
agent_stop
