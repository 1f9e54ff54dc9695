#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# podprof in a real cluster of one node: its chart installed by helm, its image made by its Dockerfile.
#
#   run.sh [NAME...]       some of test_NAME.sh, or all tests for the shape, on a new node
#   run.sh up | down       the node alone, for inspection: run.sh kubectl ...
#   run.sh test [NAME...]  on the running node
#
# PODPROF_E2E_SHAPE=container: the node is a container, like kind's; otherwise the node is this machine.
# PODPROF_TEST_IMAGE=FILE takes the agent's image from an archive. The image's name must be localhost/podprof:e2e.
# shellcheck source=e2e/cluster/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$top"

# "names" comes first on a node. "tokens" is for "make e2e-long" alone.
declare -A tests_of=(
	[machine]="names restarts rights sources requests uninstall"
	[container]="names nested runtime"
)

programs() {
	kubernetes=$(test/tool.sh kubernetes)
	helm=$(test/tool.sh helm)
	etcd=$(test/tool.sh etcd)
	pyrosink=$(test/tool.sh pyrosink)
	promtool=$(test/tool.sh promtool)
	export kubernetes helm etcd pyrosink promtool
}

up() {
	local images=$top/build/e2e/images
	test/setup.sh cluster
	programs
	mkdir -p "$images"
	e2e/cluster/image.sh workloads "$images/workloads.tar"
	[ -n "${PODPROF_TEST_IMAGE:-}" ] || e2e/cluster/image.sh podprof "$images/podprof.tar"
	node_down
	node_up "$images/workloads.tar" "${PODPROF_TEST_IMAGE:-$images/podprof.tar}"
	watch_all
	mkdir "$node/sink"
	start pyrosink "$pyrosink" -dir "$node/sink" -listen "$node_address:4040"
}

run_tests() {
	local failed=0 name results=build/test/results/cluster-$node_shape
	mkdir -p build/test/results
	: >"$results"
	# shellcheck disable=SC2086
	[ $# -gt 0 ] || set -- ${tests_of[$node_shape]}
	for name; do
		printf '  %-8s %s\n' E2E "cluster/$name (the node is a $node_shape)"
		SECONDS=0
		if timeout 3600 "e2e/cluster/test_$name.sh"; then
			echo "passed cluster/$name ($node_shape)" >>"$results"
			printf '  %-8s cluster/%s %s s\n' PASS "$name" "$SECONDS"
		else
			echo "failed cluster/$name ($node_shape)" >>"$results"
			printf '  %-8s cluster/%s %s s\n' FAIL "$name" "$SECONDS"
			failed=1
		fi
	done
	return $failed
}

case "${1:-}" in
up) trap '[ $? = 0 ] || node_down' EXIT; up ;;
down) node_down ;;
kubectl) programs; shift; kubectl "$@" ;;
test) programs; shift; run_tests "$@" ;;
*)
	trap node_down EXIT
	trap 'exit 130' INT TERM
	mkdir -p build/test/results
	echo "failed cluster: no node ($node_shape)" >"build/test/results/cluster-$node_shape" # until the node is up
	up
	run_tests "$@"
	;;
esac
