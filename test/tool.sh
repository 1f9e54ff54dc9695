#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Print the path of a program needed by the tests and not installed by Debian; build the program first if necessary.
# Programs are kept outside the tree, so a clean clone does not build them again.
#
#   tool.sh charttool | promtool | pyrosink | checkprofile | backends | collector | relabelcases | helm | etcd | prometheus | debuginfod |
#           eu-addr2line
#   tool.sh kubernetes [PROGRAM...]   the folder with Kubernetes' programs, or only these (minutes, once)
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/podprof-tools
mkdir -p "$cache"

# The name of a folder's Go programs contains a hash, so a change makes a new program.
go_key() {
	{
		cat "$1"/*.mod "$1"/*.sum "$1"/*.go "$1"/*/*.go 2>/dev/null || true
		find "$1" -mindepth 3 -type f | sort | xargs -r cat
	} | sha256sum | cut -c1-16
}

# go_build OUT DIR PACKAGE [LINKER FLAGS]: appears whole, built by the first caller
go_build() {
	[ ! -x "$1" ] || return 0
	(
		flock 9
		[ ! -x "$1" ] || exit 0
		cd "$2"
		CGO_ENABLED=0 "$top/test/go.sh" build -trimpath -ldflags "-s -w ${4:-}" -o "$1.new" "$3" >&2
		mv "$1.new" "$1"
	) 9>"$1.lock"
}

go_tool() {
	name=$1 dir=$2 package=$3
	out=$cache/$name-$(go_key "$dir")
	go_build "$out" "$dir" "$package"
	echo "$out"
}

# The linker writes the version into the programs, and they compare versions with each other.
kubernetes() {
	dir=$top/e2e/cluster/kubernetes
	out=$cache/kubernetes-$(go_key "$dir")
	version=$(sed -n 's/^require .* v1\.//p' "$dir/go.mod")
	about=k8s.io/component-base/version
	mkdir -p "$out"
	for program in "$@"; do
		go_build "$out/$program" "$dir" "k8s.io/kubernetes/cmd/$program" "-X $about.gitVersion=v1.$version \
			-X $about.gitMajor=1 -X $about.gitMinor=${version%.*} -X $about.gitTreeState=clean"
	done
	echo "$out"
}

# debian_tool PACKAGE PROGRAM: extracted from Debian's package, because an installation would start a server
debian_tool() {
	out=$cache/$2
	if [ ! -x "$out" ]; then
		work=$(mktemp -d)
		trap 'rm -rf "$work"' EXIT
		chmod 777 "$work"
		(cd "$work" && apt-get download -q "$1" >/dev/null 2>&1 && dpkg-deb -x "$1"_*.deb x)
		mv "$work/x/usr/bin/$2" "$out"
	fi
	echo "$out"
}

case "${1:-}" in
charttool) go_tool charttool "$top/e2e/charttool" . ;;
pyrosink) go_tool pyrosink "$top/e2e/pyrosink" . ;;
checkprofile) go_tool checkprofile "$top/e2e/pyrosink" ./checkprofile ;;
backends) go_tool backends "$top/e2e/backends" . ;;
collector) go_tool collector "$top/e2e/collector" . ;; # a minute and a half, once
relabelcases) go_tool relabelcases "$top/test/oracle/relabel" . ;;
helm) go_tool helm "$top/e2e/cluster/helm" helm.sh/helm/v3/cmd/helm ;;
kubernetes)
	shift
	[ $# -gt 0 ] || set -- kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl
	kubernetes "$@"
	;;
promtool)
	# in a separate package from Debian 13 on
	package=promtool
	apt-cache show promtool >/dev/null 2>&1 || package=prometheus
	debian_tool "$package" promtool
	;;
etcd) debian_tool etcd-server etcd ;;
prometheus) debian_tool prometheus prometheus ;;
debuginfod) debian_tool debuginfod debuginfod ;; # its libraries: setup.sh
eu-addr2line) debian_tool elfutils eu-addr2line ;;
*)
	echo "usage: test/tool.sh charttool|promtool|pyrosink|checkprofile|backends|collector|relabelcases|helm|etcd|prometheus|debuginfod|eu-addr2line|kubernetes" >&2
	exit 2
	;;
esac
