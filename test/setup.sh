#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what is missing to build (build) or to build and test (all), from the machine's own Debian
# suite. Asks nothing; when nothing is missing it only asks dpkg.
set -eu

build="gcc make git clang bpftool libc6-dev libbpf-dev libelf-dev libdw-dev libcurl4-openssl-dev
	libmicrohttpd-dev libjansson-dev protobuf-c-compiler libprotobuf-c-dev zlib1g-dev uthash-dev
	libpcre2-dev libiberty-dev ca-certificates"
tests="clang-format clang-tidy libclang-rt-dev libcmocka-dev golang-go containerd runc jq curl
	shellcheck python3 binutils"

case "${1:-all}" in
build) want=$build ;;
all) want="$build $tests" ;;
*) echo "usage: test/setup.sh build|all" >&2; exit 2 ;;
esac

. /etc/os-release
# clang's sanitizer and fuzzer runtime carries clang's major version in its name on Debian 12.
if [ "${VERSION_CODENAME:-}" = bookworm ]; then
	want=$(echo "$want" | sed 's/libclang-rt-dev/libclang-rt-14-dev/')
fi

missing=
for package in $want; do
	dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' ||
		missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "setup: missing:$missing" >&2
	echo "setup: run 'make setup' as root to install them" >&2
	exit 1
fi
echo "  SETUP   $missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
# The suite is named because a machine may list several, and the newest would win.
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends -t "${VERSION_CODENAME:-stable}" $missing >/dev/null
