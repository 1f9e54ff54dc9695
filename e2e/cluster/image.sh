#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# image.sh podprof|workloads OUT.tar: an image for the node, as an archive: the agent's, by the Dockerfile and 'make
# image', or the common image of all test pods. Base images and unchanged layers are kept outside the tree.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
cache=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/podprof-tools
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=${STORAGE_DRIVER:-overlay}
store=(--root "$cache/images" --runroot /run/podprof-e2e-images)
# shellcheck source=/dev/null
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
base=localhost/debian:$suite

# One at a time: the clean-up might remove another run's files.
mkdir -p "$cache"
exec 9>"$cache/images.lock"
flock 9

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Leftovers of interrupted builds, and layers unused for long
tidy() {
	buildah "${store[@]}" rm --all >/dev/null 2>&1 || true
	[ ! -d "$cache/images" ] || [ "$(du -sm "$cache/images" | cut -f1)" -lt 4096 ] ||
		buildah "${store[@]}" rmi --prune >/dev/null
}

# This machine's Debian, from apt's archive: a registry may be unreachable.
make_base() {
	local archive container
	if buildah "${store[@]}" inspect "$base" >/dev/null 2>&1; then return; fi
	archive=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
		awk -v suite="$suite" '$2 == suite && $3 == "main" { print $1; exit }')
	debootstrap --variant=minbase "$suite" "$work/base" "$archive" >"$work/debootstrap.log" ||
		{ tail "$work/debootstrap.log"; return 1; }
	container=$(buildah "${store[@]}" from scratch)
	buildah "${store[@]}" copy -q "$container" "$work/base" / >/dev/null
	buildah "${store[@]}" commit -q "$container" "$base" >/dev/null
	buildah "${store[@]}" rm "$container" >/dev/null
}

# The fixtures of the other end-to-end tests, and more, all static
build_workloads() {
	local root=$work/root name
	mkdir -p "$root/out" "$root/tmp"
	gcc -O2 -Wall -Wextra -Werror -fomit-frame-pointer -static -o "$root/work" e2e/cluster/workloads/work.c
	gcc -Os -Wall -Wextra -Werror -static -s -o "$root/pause" e2e/cluster/workloads/pause.c
	for name in e2e/cluster/workloads/gowork e2e/workloads/gounsampled; do
		(cd "$name" && CGO_ENABLED=0 "$OLDPWD/test/go.sh" build -o "$root/${name##*/}" .)
	done
	printf 'FROM scratch\nCOPY root /\nENTRYPOINT ["/pause"]\n' >"$work/Dockerfile"
	buildah "${store[@]}" build -q -t "$1" "$work" >/dev/null
}

build_podprof() {
	make_base
	BASE=$base BUILD_FLAGS="${store[*]} --pull-never --network host --layers" \
		test/image.sh "$1" "$(git describe --always --dirty --tags 2>/dev/null || echo e2e)"
}

case "${1:-} ${2:+given}" in
"podprof given" | "workloads given")
	image=localhost/$1:e2e
	tidy
	"build_$1" "$image"
	rm -f "$2"
	buildah "${store[@]}" push -q "$image" "docker-archive:$2:$image"
	;;
*)
	echo "usage: e2e/cluster/image.sh podprof|workloads OUT.tar" >&2
	exit 2
	;;
esac
