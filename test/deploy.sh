#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The chart and its rendered manifests, by helm's own packages (e2e/charttool).
#
#   deploy.sh render    print the expected deploy/podprof.yaml
#   deploy.sh check     lint, every values file renders, the manifest is up to date
set -eu
cd "$(dirname "$0")/.."
charttool=$(test/tool.sh charttool)
kube=1.34.0 # Kubernetes version for rendering

render() {
	echo "# Rendered from charts/podprof by 'make manifest'; edit the chart, not this file."
	"$charttool" template -version "$kube" -name podprof -namespace podprof charts/podprof
}

# The settings file of a rendered chart has the rules unchanged.
check_rules() {
	python3 -c '
import json, sys
text = sys.stdin.read().split("config.json: |\n")[1].split("\n---")[0]
rules = json.loads(text)["relabel_configs"]
assert rules[0]["regex"] == r"(?P<kube>kube)-\w+", rules
assert rules[1]["action"] == "labelmap" and rules[2]["modulus"] == 4, rules'
}

# With a web configuration the probes speak HTTPS, or only connect where the kubelet has no certificate.
check_web() {
	"$charttool" template -version "$kube" -f charts/podprof/ci/web-values.yaml charts/podprof >build/test/web.yaml &&
		[ "$(grep -c 'port: http, scheme: HTTPS' build/test/web.yaml)" = 2 ] &&
		grep -q '"web-config": "/etc/podprof-web/web.yml"' build/test/web.yaml &&
		grep -q 'name: web, mountPath: /etc/podprof-web, readOnly: true' build/test/web.yaml &&
		grep -q 'secretName: "podprof-web"' build/test/web.yaml &&
		[ "$("$charttool" template -version "$kube" -f charts/podprof/ci/full-values.yaml charts/podprof |
			grep -c 'tcpSocket: { port: http }')" = 2 ]
}

# The name of a Secret may have dots, that of a volume may not.
check_secrets() {
	"$charttool" template -version "$kube" -f charts/podprof/ci/full-values.yaml charts/podprof >build/test/secrets.yaml &&
		grep -q 'name: secret-1, mountPath: "/etc/podprof-secrets/registry.key", readOnly: true' build/test/secrets.yaml &&
		grep -A 2 -e '- name: secret-1$' build/test/secrets.yaml | grep -q 'secretName: "registry.key"' &&
		! grep -q 'name: secret-.*\.' <(sed 's/, mountPath.*//' build/test/secrets.yaml)
}

# Values at the limits of what the agent takes, and beyond.
check_values() {
	local value
	for value in config.cpu-rate=10000 config.off-cpu=0.01 config.window=1s config.store-bytes=1MiB config.label=_a=b \
		config.ui-listen=10.1.2.3:80 'config.ui-listen=[::]:7071' config.doc-url=https://wiki port=65534 'relabelConfigs[0].modulus=1' \
		'store.enabled=false,destinations={file=/out}' \
		'store.enabled=false,extraVolumeMounts[0].name=a,extraVolumeMounts[0].mountPath=/var/lib/podprof' \
		config.memory-budget=16MiB config.memory-budget=16777216 config.window=1h 'config.window=1h,config.store-age=60m' \
		config.spool-bytes=4MiB 'config.off-cpu=0,config.cpu-rate=0' config.kubelet-url=https://10.0.0.1:10250 \
		'config.memory-budget=300MiB,resources.limits.memory=301Mi' config.memory-budget=255MiB \
		'config.store-bytes=1GiB,store.sizeLimit=1100Mi' config.store-bytes=335544319 config.spool-bytes=1GiB \
		'spool.enabled=true,spool.hostPath=/s,config.spool-bytes=1GiB' 'store.enabled=false,config.store-bytes=1GiB,destinations={file=/out}'; do
		"$charttool" template -version "$kube" -set "$value" charts/podprof >/dev/null || {
			echo "the value $value was refused"
			return 1
		}
	done
	for value in hostPIDx=true 'relabelConfigs[0].regx=a' config.cpu_rate=97 config.window=10 config.unwind=slow \
		config.cpu-rate=10001 config.off-cpu=1.5 config.window=0s config.store-bytes=0 config.label=__a=b config.label=a= \
		config.ui-listen=localhost:7071 config.ui-listen=:7071 config.doc-url=wiki port=65535 'relabelConfigs[0].modulus=0' \
		'secrets={a,a}' nodeSelector.a=true podAnnotations.a=1 store.enabled=false \
		config.memory-budget=15MiB config.memory-budget=16777215 config.window=999ms config.window=61m config.store-age=59s \
		'config.window=1h,config.store-age=59m' config.spool-bytes=3MiB config.store-bytes=1048575 \
		'config.off-cpu=0.1,config.cpu-rate=0' config.kubelet-url=10.0.0.1:10250 config.memory-budget=256MiB \
		'config.memory-budget=300MiB,resources.limits.memory=300Mi' \
		config.store-bytes=1GiB config.store-bytes=335544320 store.sizeLimit=256Mi \
		'spool.enabled=true,config.spool-bytes=400MiB' 'debuginfod.servers={http://d},debuginfod.sizeLimit=1Gi'; do
		if "$charttool" template -version "$kube" -set "$value" charts/podprof >/dev/null 2>&1; then
			echo "the wrong value $value was accepted"
			return 1
		fi
	done
}

check() {
	"$charttool" lint -version "$kube" charts/podprof
	for values in charts/podprof/ci/*.yaml; do
		"$charttool" lint -version "$kube" -f "$values" charts/podprof
		"$charttool" template -version "$kube" -f "$values" charts/podprof >/dev/null
	done
	check_values || return
	"$charttool" template -version "$kube" -f charts/podprof/ci/relabel-values.yaml charts/podprof | check_rules
	check_web || {
		echo "the values of web do not render as wanted"
		return 1
	}
	check_secrets || {
		echo "the values of secrets do not render as wanted"
		return 1
	}
	render | diff -u deploy/podprof.yaml - || {
		echo "deploy/podprof.yaml is out of date: make manifest"
		return 1
	}
}

case "${1:-}" in
render) render ;;
check)
	mkdir -p build/test/results
	if check; then
		echo passed deploy >build/test/results/deploy
		printf '  %-8s %s\n' PASS deploy
	else
		echo failed deploy >build/test/results/deploy
		printf '  %-8s %s\n' FAIL deploy
		exit 1
	fi
	;;
*)
	echo "usage: test/deploy.sh render|check" >&2
	exit 2
	;;
esac
