#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Profiles of real programs in a whole Parca: sent by parca=, and then read by Parca's own scraper. The sum of each type is
# that of the profiles sent, and that of the answers, to the nanosecond and byte. Parca names a function that the node cannot
# name, by the uploaded file of the program.
#
#   parca.sh PROGRAM [SECONDS]
#
# PROGRAM is Parca's server; its pages are not needed. What was sent is known from Pyroscope's push handler, a second
# destination, and from a folder.
set -eu
# Nothing here asks another machine.
[ -n "${PODPROF_OWN_NETWORK:-}" ] || exec unshare --net env PODPROF_OWN_NETWORK=yes "$0" "$@"
parca=$(realpath "$1") seconds=${2:-60}
cd "$(dirname "$0")/../.."
# shellcheck source=e2e/backends/whole.sh
. e2e/backends/whole.sh
# A function with a name in DWARF only.
burn_build burn_hidden -g
objcopy --strip-symbol=burn_seventy build/e2e/burn_hidden

# parca_start NAME: with $work/NAME.yaml. Sets $server.
parca_start() {
	server=http://127.0.0.1:$(free_port)
	mkdir "$work/$1"
	(
		cd "$work/$1"
		exec "$parca" --config-path "$work/$1.yaml" --http-address "${server#http://}" --http-read-timeout 2m \
			--debuginfod-upstream-servers http://127.0.0.1:9 --debuginfo-cache-dir "$work/$1"
	) >"$work/$1.log" 2>&1 &
	background+=($!)
	until_true curl -sf "$server/api/profiles/types" || fail "no Parca: $(tail -n 3 "$work/$1.log")"
}
storage='object_storage: {bucket: {type: FILESYSTEM, config: {directory: ./data}}}'

# Sent
sink_start "$work"
echo "$storage" >"$work/pushed.yaml"
parca_start pushed
containerd_start
programs_start burn_hidden
sending_start "$work" '[]' --dwarf=false --destination "parca=$server,server-symbols=true,debuginfo=true"
is_uploaded() { [ "$(metric podprof_debuginfo_uploads_total 'outcome="uploaded"')" -ge 1 ]; }
sleep "$seconds"
until_true is_uploaded || fail "no program file is uploaded: $(metrics_page | grep podprof_debuginfo_uploads_total)"
everything_sent
note "$(outcomes 'export_profiles|debuginfo_uploads')"
dropped=$(metric podprof_export_profiles_total 'outcome="dropped')
[ "$dropped" = 0 ] || fail "$dropped profiles are dropped"
repeated=$(metric podprof_export_profiles_total 'destination="parca.*outcome="retried"')
agent_stop
sent_read "$work"
if [ "$repeated" = 0 ]; then
	sums_check "$work" parca -server "$server" "$work/truth"
else
	note "$repeated profiles repeated after a lost answer: the sums are not comparable"
fi
is_named() {
	curl -sfG "$server/api/profiles/query" --data-urlencode 'mode=MODE_MERGE' --data-urlencode 'report_type=REPORT_TYPE_TOP' \
		--data-urlencode 'merge.query=process_cpu:cpu:nanoseconds:cpu:nanoseconds:delta{}' \
		--data-urlencode "merge.start=$(date -u -d -1hour +%FT%TZ)" --data-urlencode "merge.end=$(date -u +%FT%TZ)" \
		-o "$work/top" && grep -q burn_seventy "$work/top"
}
until_true is_named || fail "Parca does not name burn_seventy"
note "Parca names burn_seventy by the uploaded file"

# Scraped
mkdir "$work/kept"
programs_start burn_hidden
only_own_containers "$work/own.json"
agent_start --config "$work/own.json" --window 60s --host-processes=false --off-cpu 1 --go-heap-profiler force
"$fixtures/backends" keep -server "http://$agent" -dir "$work/kept" -n 3 -address-file "$work/keep.address" 2>"$work/keep.log" &
background+=($!)
until_true test -s "$work/keep.address" || fail "no proxy"
# A kind is there once its container has been seen for some seconds.
kinds='memory=allocs heap=heap block=block goroutine=goroutine mutex=mutex process_cpu=profile+ offcpu=offcpu+
	memory_delta=allocs+ mutex_delta=mutex+'
is_there() { for path in allocs mutex block offcpu?seconds=1; do curl -sf -o /dev/null "http://$agent/debug/pprof/$path" || return 1; done; }
until_true is_there || fail "not all kinds of profiles are there"
{
	echo "$storage"
	echo "scrape_configs:"
	echo "- job_name: node"
	echo "  scrape_interval: 10s"
	echo "  scrape_timeout: 60s"
	echo "  static_configs: [{targets: ['$(cat "$work/keep.address")']}]"
	echo "  profiling_config:"
	echo "    pprof_config:"
	for kind in $kinds; do
		path=${kind#*=} delta=false
		[ "${path%+}" = "$path" ] || delta=true
		echo "      ${kind%=*}: {enabled: true, path: /${kind%=*}/debug/pprof/${path%+}, delta: $delta}"
	done
} >"$work/scraped.yaml"
parca_start scraped
all_kept() { for kind in $kinds; do [ -e "$work/kept/${kind%=*}-3.pb.gz" ] || return 1; done; }
until_true all_kept || fail "scraped are: $(cd "$work/kept" && echo *)"
sums_check "$work" scrape -server "$server" "$work/kept"
agent_stop
