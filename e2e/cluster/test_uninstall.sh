#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An upgrade with other values makes a new pod with these values; an uninstall leaves nothing in the cluster or on the
# node.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

bpf_programs() { "$bpftool" prog show | grep -c 'name \(oncpu\|offcpu\|sideband\)' || true; }
left() { kubectl get all,configmaps,serviceaccounts,clusterroles,clusterrolebindings -A \
	-l app.kubernetes.io/instance=podprof -o name; }
bpftool=$(command -v bpftool || echo /usr/sbin/bpftool)

podprof_install --set config.cpu-rate=19
one=$(podprof_pod)
programs=$(bpf_programs)
podprof_install --set config.cpu-rate=49
[ "$(podprof_pod)" != "$one" ] || fail "the pod is the same after an upgrade"
kubectl -n podprof get configmap podprof -o jsonpath='{.data.config\.json}' | jq -e '."cpu-rate" == 49' >/dev/null || fail "the settings are not new"
[ "$(left | wc -l)" -ge 5 ] || fail "what was installed has no label: $(left)"
note "installed: $(left | wc -l) objects, $programs BPF programs"

podprof_uninstall
gone() { [ -z "$(left)" ]; }
until_true gone || fail "left behind: $(left)"
no_programs() { [ "$(bpf_programs)" -lt "$programs" ]; }
[ "$programs" = 0 ] || until_true no_programs || fail "its BPF programs are still there"
note "nothing is left"
