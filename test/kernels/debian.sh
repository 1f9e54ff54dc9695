#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Debian packages of other suites and architectures: downloaded and unpacked below the cache, never installed. Lists,
# keys and state are separate, so the machine's apt stays unchanged; the archive is the machine's own.
#
# DEBIAN_ARCHIVE=URI takes another archive, for suites that have moved.
#
#   debian.sh kernel RELEASE ARCH              path of a cloud kernel's image; RELEASE is 5.10, 6.1, ...
#   debian.sh sysroot ARCH PACKAGE...          directory with these packages of the machine's suite and
#                                              all dependencies
#   debian.sh tree SUITE ARCH PACKAGE...       the same of any suite, with the available ones of these packages
set -eu
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/podprof-tools/debian
keys=/usr/share/keyrings/debian-archive-keyring.gpg

# Kernels by suite: Debian 11, 12, 13, and the backports to 13. An old suite leaves the archive's mirrors at the end of
# its support.
suite_of() {
	case $1 in
	5.10) echo bullseye ;;
	6.1) echo bookworm ;;
	6.12) echo trixie ;;
	*) echo trixie-backports ;;
	esac
}

# apt_for SUITE ARCH get|cache ARGUMENT...
apt_for() {
	local state=$cache/apt-$1-$2 arch=$2 tool=$3
	shift 3
	"apt-$tool" -q -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" \
		-o Dir::State::status="$state/status" -o APT::Architecture="$arch" \
		-o APT::Architectures="$arch" -o APT::Sandbox::User="$(id -un)" \
		-o APT::Install-Recommends=false -o Acquire::Languages=none "$@"
}

# lists_of SUITE ARCH SUITE...: start with the lists of these suites
lists_of() {
	local state=$cache/apt-$1-$2 from=$1 arch=$2 uri
	shift 2
	uri=${DEBIAN_ARCHIVE:-$(apt-get indextargets --format '$(REPO_URI) $(COMPONENT)' \
		'Created-By: Packages' 'Origin: Debian' |
		awk '$2 == "main" && $1 !~ /security/ { print $1; exit }')}
	if [ -z "$uri" ]; then
		echo "debian.sh: this machine's apt knows no Debian archive" >&2
		return 1
	fi
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	: >"$state/status"
	for suite in "$@"; do echo "deb [signed-by=$keys] $uri $suite main"; done >"$state/sources.list"
	apt_for "$from" "$arch" get -o APT::Update::Error-Mode=any update >"$state/log" 2>&1 || {
		cat "$state/log" >&2
		echo "debian.sh: no suite '$*' for $arch at $uri (DEBIAN_ARCHIVE=URI names another archive)" >&2
		return 1
	}
}

# The newest image. Since 7.1 the package linux-image-* is empty and the image in linux-binary-*.
kernel_package() {
	apt_for "$1" "$2" cache pkgnames linux- |
		grep -E "^linux-(image|binary)-${3/./\\.}[.+-].*-cloud-$2\$" |
		grep -vE '^linux-image-[0-9.]+-cloud-' | sort -t- -k3V -k2,2r | tail -n 1
}

unpack_kernel() {
	local release=$1 arch=$2 out=$3 suite package work
	suite=$(suite_of "$release")
	lists_of "$suite" "$arch" "$suite"
	package=$(kernel_package "$suite" "$arch" "$release")
	if [ -z "$package" ]; then
		echo "debian.sh: $suite has no Linux $release" >&2
		return 1
	fi
	work=$(mktemp -d "$cache/work.XXXXXX")
	# shellcheck disable=SC2064
	trap "rm -rf '$work'" EXIT
	(cd "$work" && apt_for "$suite" "$arch" get download "$package" >/dev/null && dpkg-deb -x ./*.deb x)
	find "$work/x" -name 'vmlinuz*' -type f -exec mv {} "$out" \;
}

# unpack_tree SUITE ARCH OUT PACKAGE...
unpack_tree() {
	local suite=$1 arch=$2 out=$3 work state
	shift 3
	lists_of "$suite" "$arch" "$suite"
	work=$(mktemp -d "$cache/work.XXXXXX")
	# shellcheck disable=SC2064
	trap "rm -rf '$work'" EXIT
	state=$cache/apt-$suite-$arch
	apt_for "$suite" "$arch" get install -y --download-only "$@" >"$state/log" 2>&1 || {
		cat "$state/log" >&2
		return 1
	}
	for package in "$state"/cache/archives/*.deb; do dpkg-deb -x "$package" "$work/x"; done
	apt_for "$suite" "$arch" get clean
	# Since Debian 13 everything is in /usr; the installation makes the links.
	for dir in lib lib64; do
		[ -e "$work/x/$dir" ] || [ ! -d "$work/x/usr/$dir" ] || ln -s "usr/$dir" "$work/x/$dir"
	done
	mv "$work/x" "$out"
}

case "${1:-} $#" in
"kernel 3")
	out=$cache/vmlinuz-$2-$3
	mkdir -p "$cache"
	[ -s "$out" ] || unpack_kernel "$2" "$3" "$out"
	[ -s "$out" ] && echo "$out"
	;;
sysroot*)
	shift
	# Named by contents, so a change makes a new file.
	out=$cache/sysroot-$1-$(. /etc/os-release && echo "$VERSION_CODENAME $*" | sha256sum | cut -c1-16)
	mkdir -p "$cache"
	# shellcheck source=/dev/null
	[ -d "$out" ] || unpack_tree "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$1" "$out" "${@:2}"
	echo "$out"
	;;
tree*)
	out=$cache/tree-$2-$3-$(echo "${@:4}" | sha256sum | cut -c1-16)
	mkdir -p "$cache"
	if [ ! -d "$out" ]; then
		lists_of "$2" "$3" "$2"
		# shellcheck disable=SC2046
		unpack_tree "$2" "$3" "$out" $(apt_for "$2" "$3" cache pkgnames |
			grep -xF "$(printf '%s\n' "${@:4}")")
	fi
	echo "$out"
	;;
*)
	echo "usage: test/kernels/debian.sh kernel RELEASE ARCH | sysroot ARCH PACKAGE... | tree SUITE ARCH PACKAGE..." >&2
	exit 2
	;;
esac
