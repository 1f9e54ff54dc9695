#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Profiles on demand, by go tool pprof and a plain client: of one container, with bounds, and for loopback only.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

export PPROF_TMPDIR=$work
check() { "$fixtures/checkprofile" "$@" >>"$work/check.log" 2>&1 || fail "checkprofile $*"; }
# On a busy machine an answer may come later than pprof waits by itself
pprof() { "$top/test/go.sh" tool pprof -timeout 300 "$@" 2>>"$work/check.log"; }
# status PATH: of an answer, with its headers in $work/headers and its body in $work/body
status() { curl -s -D "$work/headers" -o "$work/body" -w '%{http_code}' "http://$agent$1"; }
# refused STATUS WORDS PATH
refused() {
	local got
	got=$(status "$3")
	[ "$got" = "$1" ] || fail "$3: status $got instead of $1"
	grep -q -- "$2" "$work/body" || fail "$3: '$(head -c 200 "$work/body")' instead of '$2'"
}

doc=https://runbook.example/podprof
agent_start --doc-url "$doc" --window 60s --host-processes=false --off-cpu 0 --store-dir "$work/store"
containerd_start
container_run "$fixtures/burn"
burn=$container container_burn=$container_pid
container_run "$fixtures/goalloc"
goalloc=$container
of_burn="container=${burn:0:12}"

# The agent knows a container soon after its start, and a Go program soon after
is_there() { [ "$(status "$1")" = 200 ]; }
until_true is_there "/debug/pprof/profile?seconds=1&$of_burn" || fail "no profile of the container: $(cat "$work/body")"
until_true is_there "/debug/pprof/heap?container=$goalloc" || fail "no heap profile: $(cat "$work/body")"

# By address, as people ask
pprof -top "http://$agent/debug/pprof/profile?seconds=4&$of_burn" >"$work/top" || fail "go tool pprof: $(cat "$work/check.log")"
grep -q ' burn_seventy' "$work/top" || fail "go tool pprof -top does not show burn_seventy"
! grep -q 'main\.allocate' "$work/top" || fail "another container is in the profile"
grep -q '^Duration: 4' "$work/top" || fail "not 4 s: $(grep "^Duration" "$work/top")"
sed -n '4,7s/^/           /p' "$work/top"
# The functions' shares, in enough samples: a busy machine gives the program little time
cpu_ms() { "$fixtures/checkprofile" -type cpu "$1" | sed -n 's|.*cpu/nanoseconds total \([0-9]*\)[0-9]\{6\}.*|\1|p'; }
for part in {1..30}; do
	pprof -proto -output "$work/part$part.pb.gz" "http://$agent/debug/pprof/profile?seconds=6&$of_burn" >/dev/null || fail "-proto"
	pprof -proto -output "$work/cpu.pb.gz" "$work"/part*.pb.gz >/dev/null || fail "-proto of files"
	[ "$(cpu_ms "$work/cpu.pb.gz")" -lt 2500 ] || break
done
check -type cpu -function '^burn_seventy$' -cum -share 70 -tolerance 12 "$work/cpu.pb.gz"
check -type cpu -function '^main$' -cum -share 99 -tolerance 1 "$work/cpu.pb.gz"
# The whole of the CPU time that the kernel counted meanwhile, in ticks of 10 ms
pids=$(echo "$container_burn" "$(cat "/proc/$container_burn/task/$container_burn/children")")
ticks() { for pid in $pids; do cut -d' ' -f14,15 "/proc/$pid/stat"; done | awk '{ sum += $1 + $2 } END { print sum }'; }
# agrees: the answer may come late, so the kernel's count ends with the 6 s
agrees() {
	local before request
	before=$(ticks)
	curl -sf -o "$work/six.pb.gz" "http://$agent/debug/pprof/profile?seconds=6&$of_burn" &
	request=$!
	sleep 6
	used=$((($(ticks) - before) * 10))
	wait $request || return 1
	ms=$(cpu_ms "$work/six.pb.gz")
	[ "$ms" -ge $((used * 85 / 100)) ] && [ "$ms" -le $((used * 115 / 100)) ]
}
agrees || agrees || agrees || fail "$ms ms of CPU time in the profile, the kernel counted $used"
pprof -raw "$work/part1.pb.gz" | grep -q "^Doc: $doc$" || fail "no address of the documentation in a CPU profile"
pprof -raw "http://$agent/debug/pprof/heap?container=$goalloc" | grep -q "^Doc: $doc$" || fail "nor in a heap profile"
pprof -top -sample_index=inuse_space -unit=MB "http://$agent/debug/pprof/heap?container=$goalloc" >"$work/heap"
grep -q ' 3[23][.0-9]*MB .* main\.allocateKept' "$work/heap" || fail "the heap: $(sed -n 5,9p "$work/heap")"
note "$ms ms of CPU time in 6 s, $used by the kernel; the heap: $(sed -n '/allocateKept/s/ \+/ /gp' "$work/heap")"

# Go's headers
is_there "/debug/pprof/allocs?container=$goalloc" || fail "allocs: $(cat "$work/body")"
for header in 'Content-Type: application/octet-stream' 'Content-Disposition: attachment; filename=' 'X-Content-Type-Options: nosniff'; do
	grep -qi "^$header" "$work/headers" || fail "no header '$header'"
done

# Words
refused 404 'no such container' "/debug/pprof/profile?seconds=1&container=nosuch"
refused 404 'no such container' "/debug/pprof/heap?pod=shop/nosuch"
refused 404 'off-CPU\|off-cpu' "/debug/pprof/offcpu?seconds=1"
refused 400 '1 to 240' "/debug/pprof/profile?seconds=0"
refused 400 '1 to 240' "/debug/pprof/profile?seconds=5s"
refused 400 'NAMESPACE/NAME' "/debug/pprof/profile?pod=nosuch"

# Four at once; a client that goes away makes room
for ((i = 0; i < 5; i++)); do
	curl -s -D "$work/headers$i" -o "$work/body$i" "http://$agent/debug/pprof/profile?seconds=240" &
	pulls[i]=$!
done
refusals() { cat "$work"/headers[0-4] 2>/dev/null | grep -c '^HTTP/1.1 429'; }
is_full() { [ "$(refusals)" = 1 ]; }
until_true is_full || fail "$(refusals) of 5 requests are refused"
cat "$work"/headers[0-4] | grep -qi '^Retry-After: [1-9]' || fail "no Retry-After"
[ "$(status "/debug/pprof/profile?seconds=1")" = 429 ] || fail "a fifth request is taken"
curl -sf "http://$agent/-/ready" >/dev/null || fail "not ready during requests"
for pid in "${pulls[@]}"; do kill "$pid" 2>/dev/null || true; done # one has ended
within 30 is_there "/debug/pprof/profile?seconds=1" || fail "the requests of clients that have gone stay"
check -type cpu "$work/body"
note "429 for the fifth request, and $(metric podprof_cpu_pulls_total 'outcome="abandoned"') requests ended with their clients"

# On an open address only with --pull; the page's paths are not at the address of the metrics
agent_stop
open=127.0.0.1:$(free_port)
page="0.0.0.0:${open#*:}"
agent_start --window 60s --host-processes=false --store-dir "$work/store" --ui-listen "$page"
refused 404 '--ui-listen' "/debug/pprof/profile?seconds=1"
refused 404 '--ui-listen' /
metrics=$agent agent=$open
refused 404 '--pull' "/debug/pprof/profile?seconds=1"
is_there / || fail "no page at --ui-listen"
agent=$metrics
agent_stop
agent_start --window 60s --host-processes=false --store-dir "$work/store" --ui-listen "$page" --pull --thread-names
metrics=$agent agent=$open
until_true is_there "/debug/pprof/profile?seconds=1&$of_burn" || fail "--pull: $(cat "$work/body")"
check -type cpu -function '^burn_seventy$' "$work/body"
# The label is a root for pprof
pprof -top -cum -tagroot thread "http://$agent/debug/pprof/profile?seconds=2&$of_burn" >"$work/threads"
grep -q ' 100% \+program$' "$work/threads" || fail "-tagroot thread: $(sed -n 5,9p "$work/threads")"
note "-tagroot thread:$(sed -n '/% \+program$/s/ \+/ /gp' "$work/threads")"
agent=$metrics
agent_stop
