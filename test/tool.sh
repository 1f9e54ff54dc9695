#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Print the path of a program that the tests need and Debian does not install for us; make it first if
# need be. They are kept outside the tree, so that a clean clone does not build them again.
#
#   tool.sh charttool | promtool | pyrosink | checkprofile | relabelcases
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/podprof-tools
mkdir -p "$cache"

# A Go program, named by what it is built from, so that a change makes another one.
go_tool() {
	name=$1 dir=$2 package=$3
	key=$({
		cat "$dir"/*.mod "$dir"/*.sum "$dir"/*.go "$dir"/*/*.go 2>/dev/null || true
		find "$dir" -mindepth 3 -type f | sort | xargs -r cat
	} | sha256sum | cut -c1-16)
	out=$cache/$name-$key
	if [ ! -x "$out" ]; then
		(cd "$dir" && CGO_ENABLED=0 "$top/test/go.sh" build -trimpath -ldflags '-s -w' -o "$out.new" "$package") >&2
		mv "$out.new" "$out"
	fi
	echo "$out"
}

case "${1:-}" in
charttool) go_tool charttool "$top/e2e/charttool" . ;;
pyrosink) go_tool pyrosink "$top/e2e/pyrosink" . ;;
checkprofile) go_tool checkprofile "$top/e2e/pyrosink" ./checkprofile ;;
relabelcases) go_tool relabelcases "$top/test/oracle/relabel" . ;;
promtool)
	# Taken out of Debian's package, which would start a server if it were installed; from Debian 13
	# on it has one of its own.
	out=$cache/promtool
	if [ ! -x "$out" ]; then
		work=$(mktemp -d)
		trap 'rm -rf "$work"' EXIT
		chmod 777 "$work"
		package=promtool
		apt-cache show promtool >/dev/null 2>&1 || package=prometheus
		(cd "$work" && apt-get download -q "$package" >/dev/null 2>&1 && dpkg-deb -x "$package"_*.deb x)
		mv "$work/x/usr/bin/promtool" "$out"
	fi
	echo "$out"
	;;
*)
	echo "usage: test/tool.sh charttool|promtool|pyrosink|checkprofile|relabelcases" >&2
	exit 2
	;;
esac
