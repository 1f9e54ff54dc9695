#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run the newest Go on the machine with the given arguments, without the machine's own settings; or print --minor, the N
# of its version 1.N, or --path. From 1.21 on Go fetches the version of a go.mod itself.
set -eu

proxy=
best=
best_version=0
for go in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go-*/bin/go; do
	[ -x "$go" ] || continue
	version=$(GOENV=off GOFLAGS='' GOTOOLCHAIN=local "$go" version |
		sed -n 's/^go version go1\.\([0-9]*\).*/\1/p')
	[ -n "$version" ] && [ "$version" -gt "$best_version" ] || continue
	best=$go
	best_version=$version
	proxy=$("$go" env GOPROXY)
done
if [ -z "$best" ]; then
	echo "go.sh: no Go here; 'make setup' installs it" >&2
	exit 1
fi
case ${1:-} in
--minor) echo "$best_version"; exit 0 ;;
--path) echo "$best"; exit 0 ;;
esac
export GOENV=off GOFLAGS='' GOTOOLCHAIN="${PODPROF_GOTOOLCHAIN:-auto}" GOPROXY="$proxy"
exec "$best" "$@"
