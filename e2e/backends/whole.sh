# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The tests with a whole server: live containers, what was sent, and the sums of the server. Sourced in the top folder,
# in a network namespace of its own.

ip link set lo up
mkdir -p build/e2e
for tool in pyrosink backends; do
	ln -sf "$(test/tool.sh $tool)" build/e2e/$tool
done
# shellcheck source=e2e/lib.sh
. e2e/lib.sh
for name in goalloc gocontend goserve; do
	(cd e2e/workloads/$name && CGO_ENABLED=0 ../../../test/go.sh build -o ../../../build/e2e/$name .)
done

# burn_build NAME FLAG...: build/e2e/NAME, a program that burns CPU time
burn_build() {
	gcc -O2 -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -static "${@:2}" -o "build/e2e/$1" e2e/workloads/burn.c
}
# programs_start BURN: one burning program, one with contention, two of each other kind
programs_start() {
	container_run "$fixtures/$1"
	container_run "$fixtures/gocontend"
	for _ in 1 2; do
		container_run "$fixtures/goalloc"
		container_run "$fixtures/goserve"
	done
}

no_series() { [ "$(metric podprof_series)" = 0 ]; }
queued() { metric podprof_export_queue_bytes; }
nothing_waits() { [ "$(queued)" = 0 ]; }
# outcomes METRIC...: of profiles and files, in one line
outcomes() {
	metrics_page | awk -v names="^podprof_($1)_total.* [1-9]" '$0 ~ names { sub(/.*{/, ""); sub(/}/, ""); printf "%s; ", $0 }'
}

# sink_start DIR: Pyroscope's push handler, which keeps what it gets in DIR/sink
sink_start() {
	mkdir -p "$1/sink"
	"$fixtures/pyrosink" -dir "$1/sink" -address-file "$1/sink.address" >"$1/sink.log" 2>&1 &
	background+=($!)
	until_true test -s "$1/sink.address" || fail "no sink"
}
# sending_start DIR RULES FLAG...: an agent of the present containers that sends to DIR/out, to the sink, and where the
# flags say
sending_start() {
	only_own_containers "$1/own.json" "$2"
	agent_start --config "$1/own.json" --window 5s --host-processes=false --off-cpu 1 --go-heap-profiler force \
		--destination "file=$1/out,bytes=4GiB" --destination "pyroscope=http://$(cat "$1/sink.address")" "${@:3}"
}
# The end of the agent is no part of these tests: what it has not sent 8 s after its SIGTERM is lost.
everything_sent() {
	local id
	for id in "${containers[@]}"; do container_remove "$id"; done
	containers=()
	until_true no_series || fail "removed containers have profiles"
	sleep 12 # two windows
	until_true nothing_waits || fail "$(queued) bytes stay in the queues"
}
# sent_read DIR: what was sent is in DIR/truth. The folder and the sink have the same.
sent_read() {
	"$fixtures/backends" read -out "$1/sent" "folder=$1/out" "pyroscope=$1/sink" 2>"$work/check.log" ||
		fail "read: $(tail -n 3 "$work/check.log")"
	"$fixtures/backends" compare "$1/sent" >"$1/compared" 2>"$work/check.log" ||
		fail "the folder and the push handler have different profiles"
	grep '"backend":"pyroscope"' "$1/sent" >"$1/truth"
}

# sums_agree DIR WAY FLAG... SENT: whether the sums of a server (-server) are those of SENT
sums_agree() {
	"$fixtures/backends" query -way "$2" "${@:3}" >"$1/$2.sums" 2>"$work/check.log"
}
# sums_check DIR WAY FLAG... SENT: they are, after a while; prints them
sums_check() {
	until_true sums_agree "$@" || fail "$2: $(tail -n 3 "$work/check.log")"
	while read -r line; do note "$line"; done <"$1/$2.sums"
}
