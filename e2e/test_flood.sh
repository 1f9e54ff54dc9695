#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# More flame graphs than an agent makes: the others wait or come again, and nothing else does. Health and metrics are
# answered all the time, samples are not lost, and the agent ends when told to.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir "$work/store"
entity=$("$top/e2e/flood.py" fill "$work/store" 300)
agent_start --window 3s --store-dir "$work/store"
"$fixtures/burn" &
background+=($!)
lost() { echo $(($(metric podprof_samples_total 'outcome="lost_full"') + $(metric podprof_process_events_lost_total))); }
answer() { awk -v name="$1" '$1 == name { n = $2 } END { print n + 0 }' "$work/flood.txt"; }

"$top/e2e/flood.py" flood "$agent" "$entity" >"$work/flood.txt" || fail "flood.py"
# Every answer is a graph, or a refusal with Retry-After; some connections were too many of one address
made=$(answer flame_200) refused=$(answer flame_503) closed=$(metric podprof_http_connections_total 'outcome="per_address"')
[ $((made + refused)) = 61 ] || [ "$(answer flame_0)" = "$closed" ] || fail "flame graphs: $(tr '\n' ' ' <"$work/flood.txt")"
[ "$made" -ge 9 ] || fail "$made flame graphs, less than the queue holds"
[ "$(metric podprof_http_jobs_total 'outcome="ok"')" = "$made" ] || fail "podprof_http_jobs_total"
[ "$(metric podprof_http_jobs_total 'outcome="busy"')" = "$refused" ] || fail "podprof_http_jobs_total"
for what in healthy ready metrics; do
	if grep "^${what}_" "$work/flood.txt" | grep -qv "^${what}_200"; then
		fail "/$what: $(grep "^${what}_" "$work/flood.txt" | tr '\n' ' ')"
	fi
	[ "$(answer "${what}_200")" -gt 0 ] || fail "no answers of $what"
	# On a quiet machine 100 ms; it took a minute before answers were made off the loop
	[ "$(answer "longest_ms_$what")" -le 1000 ] || is_busy || fail "$what: $(answer "longest_ms_$what") ms"
done
# None on a quiet machine; a node that gives the agent no CPU loses some without a flood. It was three in four.
[ $(($(lost) * 10)) -le "$(metric podprof_samples_total)" ] || is_busy || fail "$(lost) samples and events lost"
note "$made graphs in $(answer seconds) s, $refused refused; $(answer healthy_200) health answers, the longest" \
	"$(answer longest_ms_healthy) ms; lost $(lost) of $(metric podprof_samples_total) samples"

# Clients that go away leave no work behind
abandoned() {
	curl -s -m 0.05 -o /dev/null "http://$agent/entity/$entity/flame.json?kind=cpu" || true
	[ "$(metric podprof_http_jobs_total 'outcome="abandoned"')" -gt 0 ]
}
until_true abandoned || fail "no job was abandoned"

# The end does not wait for the queue
for _ in 1 2 3 4; do
	curl -s -o /dev/null "http://$agent/entity/$entity/flame.json?kind=cpu" &
done
sleep 0.5
agent_stop
