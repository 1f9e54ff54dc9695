#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A pod with hostile names, by a kubelet to a real receiver, the page of metrics and the store; and settings and
# annotations that change while the agent runs.
# shellcheck source=e2e/lib.sh
. "$(dirname "$0")/lib.sh"

# The agent has its service account's token and the kubelet's list in a separate mount namespace.
account=/run/secrets/kubernetes.io/serviceaccount
made=$([ -d /run/secrets ] || echo yes)
mkdir -p /run/secrets
leave() {
	local status=$?
	set +e
	[ -z "$made" ] || rmdir /run/secrets
	(exit $status)
	cleanup
}
trap leave EXIT
agent_with_account() {
	agent=127.0.0.1:$(free_port)
	# shellcheck disable=SC2016
	unshare --mount sh -c 'mount -t tmpfs tmpfs /run/secrets && mkdir -p "$0" && echo token >"$0/token" && exec "$@"' \
		"$account" "$podprof" agent --listen "$agent" --node-name e2e-node "$@" >"$work/agent.log" 2>&1 &
	agent_pid=$!
	background+=("$agent_pid")
	until_true curl -sf "http://$agent/-/ready" || fail "the agent is not ready"
}

# pods ANNOTATIONS [ID]: the kubelet's answer from now on, with the ID of the container's previous run. The names end
# quotes, lines, tags and texts, are invalid UTF-8 (podprof drops this pod), contain terminal commands, and exceed the
# length of labels.
pods() {
	python3 - "$container" "$pod_uid" "$@" >"$work/kubelet/pods.new" <<-'EOF'
		import json, sys
		evil = '"}\n# TYPE x counter\nx{a="b"} 1\r\t\\" \x1b[2J\x01 <script>{}&=%2f../ \u202e'
		pod = {"metadata": {"uid": sys.argv[2], "namespace": "n" + evil, "name": "p" + evil,
		                    "labels": {"app.kubernetes.io/name": "a" + evil, "long": "x" * 4096, evil: "y", "team": "t" + evil},
		                    "annotations": json.loads(sys.argv[3])},
		       "status": {"containerStatuses": [{"name": "c" + evil, "containerID": "containerd://" + sys.argv[1],
		           "lastState": {"terminated": {"containerID": "containerd://" + i} for i in sys.argv[4:]}}]}}
		odd = {"metadata": {"uid": "u", "namespace": "n", "name": "INVALID"}}
		text = json.dumps({"kind": "PodList", "metadata": {}, "items": [odd, pod]}, ensure_ascii=False).encode()
		sys.stdout.buffer.write(text.replace(b"INVALID", b"app\xff\xfe\xc3"))
	EOF
	mv "$work/kubelet/pods.new" "$work/kubelet/pods"
}

settings() {
	jq -n --arg kubelet "http://127.0.0.1:$kubelet" --arg sink "pyroscope=http://$(cat "$work/sink.address")" \
		'{window: "3s", metadata: "kubelet", "kubelet-url": $kubelet, destination: [$sink]} + '"$1" >"$work/config.json"
}
reload() {
	settings "$1"
	kill -HUP "$agent_pid"
}

# entries FILTER: descriptions at the sink that match
entries() { jq -s "map(select($1)) | length" "$work"/sink/*.json; }
arrived() { [ "$(entries "$1")" -gt 0 ]; }
left_out() { curl -sf "http://$agent/metrics" | grep -q "^podprof_entities_excluded $1$"; }
within_five() {
	local start=$EPOCHREALTIME
	until_true left_out "$1" || fail "$2: not seen"
	note "$2: after $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s"
}

mkdir "$work/sink" "$work/kubelet"
"$fixtures/pyrosink" -dir "$work/sink" -address-file "$work/sink.address" >"$work/sink.log" 2>&1 &
background+=($!)
until_true test -s "$work/sink.address" || fail "no sink"
kubelet=$(free_port)
python3 -m http.server -b 127.0.0.1 -d "$work/kubelet" "$kubelet" >"$work/kubelet.log" 2>&1 &
background+=($!)
containerd_start
container_run "$fixtures/goalloc"
container_run "$fixtures/burn"
pods '{}'
settings '{relabel_configs: [{source_labels: ["__meta_kubernetes_pod_label_team"], target_label: "team"}]}'
agent_with_account --config "$work/config.json"

# The sent text arrives unchanged, without other effects
until_true arrived '.labels.pod != null' || fail "no profile of the pod: $(curl -s "http://$agent/-/ready")"
evil='"\"}\n# TYPE x counter\nx{a=\"b\"} 1\r\t\\\" \u001b[2J\u0001 <script>{}&=%2f../ \u202e"'
jq -es --argjson evil "$evil" 'map(select(.labels.pod != null)) | length > 0 and all(.labels.namespace == "n" + $evil and
	.labels.pod == "p" + $evil and .labels.container == "c" + $evil and .labels.team == "t" + $evil and
	(.labels.x // .labels.a) == null)' "$work"/sink/*.json >/dev/null ||
	fail "labels: $(jq -cs 'map(select(.labels.pod != null).labels)[0]' "$work"/sink/*.json)"
note "names at the receiver are the pod's, letter by letter"
curl -sf "http://$agent/metrics" >"$work/metrics.txt"
"$fixtures/promtool" check metrics <"$work/metrics.txt" >"$work/promtool.log" 2>&1 || fail "promtool check metrics"
! grep -q '^x{' "$work/metrics.txt" || fail "a name has become a sample"
curl -sf "http://$agent/" >"$work/page.html"
! grep -q '<script>{}' "$work/page.html" || fail "a name has become a tag"

# An annotation, and back
within_five 0 "all are profiled"
pods '{"podprof.io/profile": "false"}'
within_five 1 "an annotation"
pods '{}'
within_five 0 "the annotation is gone"

# Rules and selection by SIGHUP; invalid settings change nothing
reload '{relabel_configs: [{action: "labeldrop", regex: "pod|namespace"}, {target_label: "cluster", replacement: "e2e"}]}'
until_true arrived '.labels.cluster == "e2e" and .labels.pod == null' || fail "changed rules"
[ "$(entries '.labels.cluster == "e2e" and .labels.pod != null')" = 0 ] || fail "both rules at a time"
reload '{select: ["/nobody$"]}'
left_out_all() { ! left_out 0 && ! left_out 1; }
until_true left_out_all || fail "--select"
reload '{relabel_configs: [{regex: "("}]}'
until_true grep -q 'relabel_configs' "$work/agent.log" || fail "bad rules are not told of"
sleep 2
left_out_all || fail "bad settings have been taken"
before=$(entries '.labels.pod != null')
more() { [ "$(entries '.labels.pod != null')" -gt "$before" ]; }
reload '{}'
until_true more || fail "no settings"
note "rules, --select, rules that are none, no settings: by SIGHUP"

# The next run of a container has the same names: a window with both runs has one profile
former=$container
container_run "$fixtures/burn"
pods '{}' "$former"
named() { metric podprof_metadata_containers 'outcome="ok"'; }
both() { [ "$(named)" = 2 ]; }
until_true both || fail "two runs of a container: $(named) have names"
before=$(entries '.labels.pod != null')
later() { [ "$(entries '.labels.pod != null')" -gt $((before + 2)) ]; }
until_true later || fail "no profiles of two runs"
container_remove "$former"
one_run() { [ "$(named)" = 1 ]; }
until_true one_run || fail "a run that has ended is still there"
before=$(entries '.labels.pod != null')
until_true later || fail "no profiles of the run that is left"
twice=$(jq -s 'map(select(.labels.pod != null) | [.labels, .time_nanos]) | length - (unique | length)' "$work"/sink/*.json)
[ "$twice" = 0 ] || fail "$twice windows have two profiles of a container"
note "two runs of a container in a window: one profile"
agent_stop
