# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The servers of the tests with faults, each behind a proxy: a collector, Pyroscope's push handler, and stand-ins for
# Parca, Coroot and OTLP that check what the servers check.

mkdir -p build/e2e build/test/results
for tool in pyrosink backends checkprofile collector; do
	ln -sf "$(test/tool.sh $tool)" build/e2e/$tool
done
# shellcheck source=e2e/lib.sh
. e2e/lib.sh
servers=(pyroscope parca otlp coroot collector)

# Starts the servers of $servers and their proxies.
servers_start() {
	mkdir "$work/sink" "$work/faults"
	"$fixtures/pyrosink" -dir "$work/sink" -address-file "$work/sink.address" >"$work/sink.log" 2>&1 &
	background+=($!)
	"$fixtures/backends" -out "$work/entries" -address-file "$work/backends.address" >"$work/check.log" 2>&1 &
	background+=($!)
	collector=127.0.0.1:$(free_port)
	cat >"$work/collector.yaml" <<EOF2
receivers: {otlp: {protocols: {http: {endpoint: "$collector"}}}}
exporters: {file: {path: "$work/collected", format: proto}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {profiles: {receivers: [otlp], exporters: [file]}}
EOF2
	"$fixtures/collector" --config "$work/collector.yaml" --feature-gates=service.profilesSupport >"$work/collector.log" 2>&1 &
	background+=($!)
	until_true test -s "$work/sink.address" -a -s "$work/backends.address" || fail "no sinks"
	answers() { [ "$(curl -s -o "$work/body" -w '%{http_code}' -X POST "http://$collector/v1development/profiles")" != 000 ]; }
	until_true answers || fail "no collector: $(tail -n 3 "$work/collector.log")"
	stand_ins=http://$(cat "$work/backends.address")
	"$fixtures/backends" proxy -dir "$work/faults" "pyroscope=http://$(cat "$work/sink.address")" "parca=$stand_ins" \
		"otlp=$stand_ins" "coroot=$stand_ins" "collector=http://$collector" >"$work/proxy.log" 2>&1 &
	background+=($!)
	for name in "${servers[@]}"; do
		until_true test -s "$work/faults/$name.address" || fail "no proxy"
	done
}
# at NAME: the address of a server's proxy
at() { echo "http://$(cat "$work/faults/$1.address")"; }

# servers_compare FLAG... FILE...: what the servers stored with each other, and with entries in other files before
servers_compare() {
	local name lost="" status=0
	for name in "${servers[@]}"; do
		note "$name: $(sort "$work/faults/$name.requests" | uniq -c | awk '{ printf "%s %s, ", $2, $1 }')"
	done
	[ ! -d "$work/faults/collector.lost" ] || lost="collector=$work/faults/collector.lost"
	"$fixtures/backends" read -out "$work/stored" "folder=$work/out" "pyroscope=$work/sink" "collector=$work/collected" 2>"$work/check.log" ||
		fail "read: $(tail -n 3 "$work/check.log")"
	"$fixtures/backends" read -out "$work/excused" -lost ${lost:+"$lost"} 2>"$work/check.log" || fail "read: $(tail -n 3 "$work/check.log")"
	"$fixtures/backends" compare -lost "$work/faults/lost" -forgotten "$work/faults/forgotten" "$@" \
		"$work/entries" "$work/stored" "$work/excused" >"$work/compared" 2>"$work/compare.log" || status=$?
	while read -r line; do note "$line"; done <"$work/compared"
	[ $status = 0 ] || fail "$(grep -c . "$work/compare.log") differences: $(head -n 5 "$work/compare.log")"
}
