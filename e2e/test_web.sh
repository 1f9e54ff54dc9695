#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# HTTPS with passwords, for real clients: Prometheus, go tool pprof, curl; and while a crowd holds connections.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

export PPROF_TMPDIR=$work
cd "$work"
# The password is "secret".
cat >web.yml <<-'EOT'
	tls_server_config:
	  cert_file: web.crt
	  key_file: web.key
	basic_auth_users:
	  prom: $2y$08$abcdefghijklmnopqrstuuKxCcvB7KZ7.BpDoK0bh6qM7Dl1/xiJa
EOT
certificate() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=podprof \
		-addext subjectAltName=IP:127.0.0.1 -keyout "$1.key" -out "$1.crt" 2>/dev/null
}
certificate web
cp web.crt trusted.crt

"$podprof" doctor --listen 127.0.0.1:0 --web-config web.yml | grep -q 'ok *web-config' || fail "podprof doctor"
"$fixtures/promtool" check web-config web.yml >promtool.log 2>&1 || fail "not Prometheus' own format"

# The agent itself, because its readiness has another scheme here
agent=127.0.0.1:$(free_port)
"$podprof" agent --listen "$agent" --window 60s --host-processes=false --web-config web.yml --store-dir "$work/store" \
	2>agent.log &
agent_pid=$!
background+=("$agent_pid")
ask() { curl -s -m 60 --cacert trusted.crt -o body -w '%{http_code}' "$@"; }
is_ready() { [ "$(ask "https://$agent/-/ready")" = 200 ]; }
until_true is_ready || fail "the agent is not ready: $(cat body)"
[ "$(cat body)" = ready ] || fail "without a password, /-/ready tells: $(cat body)"
[ "$(ask "https://$agent/metrics")" = 401 ] || fail "metrics without a password"
[ "$(ask -u prom:wrong "https://$agent/")" = 401 ] || fail "the page with a wrong password"
[ "$(ask -u prom:secret "https://$agent/")" = 200 ] || fail "the page with the password"
[ "$(ask "http://$agent/metrics")" = 400 ] || fail "metrics without TLS"
metrics_page() { curl -sf -m 60 --cacert trusted.crt -u prom:secret "https://$agent/metrics"; }

# go tool pprof
containerd_start
container_run "$fixtures/burn"
burn=$container
container_run "$fixtures/goalloc"
goalloc=$container
pprof() { SSL_CERT_FILE=$work/trusted.crt "$top/test/go.sh" tool pprof -timeout 300 "$@" 2>>"$work/check.log"; }
base=https://prom:secret@$agent/debug/pprof
is_there() { [ "$(ask -u prom:secret "https://$agent/debug/pprof/$1")" = 200 ]; }
until_true is_there "profile?seconds=1&container=${burn:0:12}" || fail "no profile of the container: $(cat body)"
until_true is_there "heap?container=$goalloc" || fail "no heap profile: $(cat body)"
# A starved container may have no sample in 2 s
is_named() { pprof -top "$base/profile?seconds=2&container=${burn:0:12}" >top && grep -q ' burn_seventy' top; }
until_true is_named || fail "go tool pprof -top does not show burn_seventy: $(tail -3 check.log)"
! pprof -top "https://$agent/debug/pprof/profile?seconds=1" >top || fail "go tool pprof without a password"
# What is allocated in 3 s, of a program that also keeps what it had before
pprof -top -sample_index=inuse_space -unit=MB "$base/heap?container=$goalloc" >heap
grep -q ' 3[23][.0-9]*MB .* main\.allocateKept' heap || fail "the heap: $(sed -n 5,9p heap)"
pprof -top -sample_index=inuse_space -unit=MB "$base/heap?seconds=3&container=$goalloc" >heap || fail "a difference"
! grep -q 'main\.allocateKept' heap || fail "kept memory in a difference: $(sed -n 5,9p heap)"
grep -q '^Duration: 3' heap || fail "not 3 s: $(head -4 heap | paste -sd' ')"

# Prometheus
page=127.0.0.1:$(free_port)
echo secret >password
cat >prometheus.yml <<-EOT
	global: { scrape_interval: 1s }
	scrape_configs:
	  - job_name: podprof
	    scheme: https
	    tls_config: { ca_file: $work/trusted.crt }
	    basic_auth: { username: prom, password_file: $work/password }
	    static_configs: [{ targets: ["$agent"] }]
EOT
"$("$top/test/tool.sh" prometheus)" --config.file prometheus.yml --storage.tsdb.path data --web.listen-address "$page" \
	>prometheus.log 2>&1 &
background+=($!)
value() { curl -sf "http://$page/api/v1/query" --data-urlencode "query=$1" | jq -r '.data.result[0].value[1]'; }
has() { [ "$(value "$1")" = 1 ]; }
until_true has 'up{job="podprof"}' || fail "Prometheus does not scrape: $(curl -s "http://$page/api/v1/targets" | head -c 500)"
until_true has 'min_over_time(up{job="podprof"}[5s])' || fail "not each scrape"

# A renewed certificate, without a restart
certificate next
cp trusted.crt old.crt
cat old.crt next.crt >trusted.crt
mv next.crt web.crt
mv next.key web.key
has_next() { curl -sf -o body --cacert web.crt "https://$agent/-/healthy"; }
until_true has_next || fail "the old certificate is still in use"
grep -q 'read --web-config again' agent.log || fail "the log does not tell about the certificate"

# 10,000 silent connections and 1,000 slow ones
lost() { metric podprof_samples_total 'outcome="lost_'; }
rss() {
	local child
	read -r child <"/proc/$agent_pid/task/$agent_pid/children"
	awk '/^VmRSS/ { print $2 }' "/proc/$child/status"
}
# A failed scrape is a sample of 0
scrapes() { value 'sum_over_time(up{job="podprof"}[1h])'; }
lost_before=$(lost) rss_before=$(rss) scrapes_before=$(scrapes)
mkfifo crowd
"$top/e2e/crowd.py" "$agent" 10000 1000 <crowd >crowd.log 2>&1 &
crowd_pid=$!
background+=("$crowd_pid")
exec 9>crowd
until_true grep -q ready crowd.log || fail "the crowd does not come: $(cat crowd.log)"
# A client that needs longer for its handshake than the crowd for 64 new connections loses its place, and tries again.
again=0 slowest=0
scrape() {
	curl -sf -m 60 --cacert trusted.crt -u prom:secret -o body -w '%{time_total}' --interface 127.0.0.2 "https://$agent/metrics"
}
for _ in 1 2 3 4 5 6 7 8 9 10; do
	until time=$(scrape); do
		again=$((again + 1))
		[ $again -le 10 ] || fail "no scrape while a crowd holds connections: $(tail -2 crowd.log)"
	done
	slowest=$(printf '%s\n' "$slowest" "$time" | sort -g | tail -1)
done
rss_after=$(rss)
exec 9>&-
wait $crowd_pid || fail "the crowd: $(cat crowd.log)"
note "$(tail -1 crowd.log); the slowest of 10 scrapes took $slowest s, $again were tried again; memory $rss_before KiB, with the crowd $rss_after KiB"
[ $((rss_after - rss_before)) -lt 16384 ] || fail "the crowd took $((rss_after - rss_before)) KiB"
[ "$(lost)" = "$lost_before" ] || fail "samples are lost"
has 'min_over_time(up{job="podprof"}[5s])' || note "Prometheus shares the crowd's address, and lost a scrape"
has_more() { [ "$(scrapes)" -gt "$scrapes_before" ]; }
until_true has_more || fail "no scrape by Prometheus any more"
