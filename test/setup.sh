#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install the packages missing for building (build), for building and testing (all), also for arm64 (arm64), or in a
# cluster (cluster), from the machine's own Debian suite. Asks nothing; if all packages are present, only dpkg runs.
# "libraries" prints podprof's linked libraries.
set -eu

libraries="libc6-dev libbpf-dev libelf-dev libdw-dev libcurl4-openssl-dev libssl-dev libcrypt-dev libyaml-dev libmicrohttpd-dev libjansson-dev
	libprotobuf-c-dev zlib1g-dev liblzma-dev uthash-dev libre2-dev libiberty-dev"
build="gcc g++ make git clang bpftool protobuf-c-compiler ca-certificates $libraries"
tests="clang-19 clang-format clang-tidy libclang-rt-dev libcmocka-dev lld golang-go containerd runc jq curl
	shellcheck python3 openssl binutils xz-utils dwz llvm bc valgrind strace libarchive13 libsqlite3-0 libdebuginfod1 libjson-c5
	default-jdk-headless nodejs"
# A virtual machine of this machine's kind.
case $(dpkg --print-architecture) in
arm64) tests="$tests qemu-system-arm" ;;
*) tests="$tests qemu-system-x86" ;;
esac
# The other architecture's, and its cross compiler.
arm64="qemu-system-arm gcc-aarch64-linux-gnu g++-aarch64-linux-gnu"

# A node of Kubernetes, and its images.
cluster="containernetworking-plugins iptables conntrack iproute2 openssl buildah debootstrap"

# The Go for building the tests' tools: the first release that fetches newer ones itself.
go_minor_wanted=21

case "${1:-all}" in
build) want=$build ;;
all) want="$build $tests" ;;
arm64) want="$build $tests $arm64" ;;
cluster) want="$build $tests $cluster" ;;
libraries) echo $libraries; exit ;;
*) echo "usage: test/setup.sh build|all|arm64|cluster|libraries" >&2; exit 2 ;;
esac

# shellcheck source=/dev/null
. /etc/os-release
suite=${VERSION_CODENAME:-stable}
case "$suite" in
# clang's sanitizer and fuzzer runtime has clang's major version in its name there.
bookworm) want=$(echo "$want" | sed 's/libclang-rt-dev/libclang-rt-14-dev/') ;;
trixie) want=$(echo "$want" | sed 's/libarchive13/libarchive13t64/; s/libdebuginfod1/libdebuginfod1t64/') ;;
# Ubuntu has bpftool in the kernel's tools.
noble) want=$(echo "$want" | sed 's/libarchive13/libarchive13t64/; s/libdebuginfod1/libdebuginfod1t64/; s/libclang-rt-dev/libclang-rt-18-dev/; s/bpftool/linux-tools-common linux-tools-generic/') ;;
esac

as_root() {
	if [ "$(id -u)" != 0 ]; then
		echo "setup: missing:$1" >&2
		echo "setup: run 'make setup' as root to install it" >&2
		exit 1
	fi
	echo "  SETUP   $1"
	export DEBIAN_FRONTEND=noninteractive
}

# The suite is named because a machine may list several, and the newest would win. Its updates count as the suite: a
# library with a security fix needs the headers of the same version.
install_from() {
	from=$1
	shift
	apt-get install -q -y --no-install-recommends -t "$from" "$@" >/dev/null
}

missing=
for package in $want; do
	dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' ||
		missing="$missing $package"
done
if [ -n "$missing" ]; then
	as_root "$missing"
	apt-get update -q >/dev/null
	# shellcheck disable=SC2086
	install_from "/^$suite(-security|-updates)?\$/" $missing
fi

# The suite's backports, listed for one call and then removed from the machine.
install_backport() {
	uri=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }')
	list=/etc/apt/sources.list.d/podprof-setup.list
	trap 'rm -f "$list"' EXIT
	echo "deb $uri $suite-backports main" >"$list"
	apt-get update -q >/dev/null
	install_from "$suite-backports" "$@"
	rm -f "$list"
}

if [ "${1:-all}" != build ] && [ "$("$(dirname "$0")/go.sh" --minor)" -lt "$go_minor_wanted" ]; then
	as_root " a newer Go"
	install_backport golang-go golang-src
fi
