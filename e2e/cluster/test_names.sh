#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every way in which a container comes to be, and all that podprof sends is named as the API server says.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"

podprof_install
workloads_up

# Each in the pod, the namespace and under the service_name that are its own, and what was sampled before its
# name was known, too.
everything=(--expect deployment=60 --expect daemonset=30 --expect statefulset=30 --expect job=30
	--expect cronjob=30 --expect restarting=30 --expect init=20 --expect sidecar=30 --expect main=30
	--expect ephemeral=30 --expect left=30 --expect right=30 --expect annotated=30 --expect labelled=20
	--expect static=30 --expect workGo=30 --expect allocateUnasked=1 --nameless 5)
until_true 150 judge "${everything[@]}" || {
	judge "${everything[@]}"
	fail "not all is there, or under its names"
}
judge "${everything[@]}"
