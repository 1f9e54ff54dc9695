#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build a Go program of ours once per Go version and way of linking, and print the path of the
# result. A rerun with nothing changed costs nothing.
#
#   build-go.sh OUT_DIR SRC_DIR GO VARIANT
#
#   OUT_DIR  where results are kept: OUT_DIR/NAME-goX.Y.Z-VARIANT, NAME from SRC_DIR
#   SRC_DIR  a main package with a go.mod whose module path has a dot in its first element (older
#            Go takes any other for the standard library). Its "go" line is replaced by the
#            version that builds, so that new and old language features are both at hand; files
#            that need a newer Go say so in a build constraint.
#   GO       a go command (go, /usr/lib/go-1.19/bin/go), or a version (1.22.12) that the
#            newest command here fetches as a toolchain (it must be 1.21 or newer for that)
#   VARIANT  default            the Go linker, no cgo
#            stripped           the same with -ldflags '-s -w': neither .symtab nor DWARF
#            pie, pie-stripped  position independent, by the Go linker
#            cgo                with cgo, by the C linker
#            cgo-pie            the same, position independent
#            cgo-pie-stripped
#            arm64, arm64-pie   for another machine, not run
#            debug, arm64-debug with .debug_frame as it is, not compressed
#            cgo-static-pie     position independent and static, by the C linker; those of Go before
#                               1.21 end themselves when they begin, in runtime.rt0_go
#            cgo-static         the C library in it, by the C linker
#            cgo-internal       with cgo, by the Go linker
#            sectionless, stripped-sectionless, pie-sectionless
#                               without section headers, as some tools leave them
#            strip              the default, stripped by binutils
#            trimpath, race, noopt, noinline, amd64v3
#                               as Go's flags and settings of these names have it
#            devel, vendor, unversioned
#                               the default, with other words for a version in it
#            experiment         with one of the release's GOEXPERIMENTs turned over
#            c-shared, c-shared-stripped
#                               a library, and the result is a C program that loads it
#            c-shared-python    the same in Python
#            plugin             a plugin, and the result is a Go program that loads it
#            packed             in anonymous memory, and the result is a program that puts it there
#            upx, upx-pie       the default, and pie, packed by the UPX that $PODPROF_UPX names
#   All that runs does so with the same arguments, whatever the variant. What a result loads lies
#   beside it, and has its name and ".so" or ".packed".
#
# Exit status: 0 built or still good; 1 the build fails; 2 wrong usage; 3 no such Go to be had here.
set -eu

[ $# = 4 ] || { sed -n 's/^# \{0,1\}//; 5,45p' "$0" >&2; exit 2; }
out=$1 src=$2 go=$3 variant=$4

# The user's own settings for fetching are kept, those for building are not: a machine's go env
# file may hold flags that an older Go refuses.
GOPROXY=$(go env GOPROXY 2>/dev/null) || GOPROXY=
GOSUMDB=$(go env GOSUMDB 2>/dev/null) || GOSUMDB=
[ -z "$GOPROXY" ] || export GOPROXY
[ -z "$GOSUMDB" ] || export GOSUMDB
export GOENV=off GOFLAGS='' GOWORK=off
case $go in
[0-9]*) export GOTOOLCHAIN="go$go"; go=$("$(dirname "$0")/../go.sh" --path) ;;
*) export GOTOOLCHAIN=local ;;
esac

if ! version=$("$go" version 2>&1); then
	echo "build-go.sh: cannot run $go (toolchain $GOTOOLCHAIN): $version" >&2
	exit 3
fi
version=$(echo "$version" | awk '/^go version/ {print $3}')
case $GOTOOLCHAIN in
local | "$version") ;;
*) echo "build-go.sh: wanted $GOTOOLCHAIN, this go command gives $version" >&2; exit 3 ;;
esac
minor=${version#go1.}
minor=${minor%%[!0-9]*}
[ -n "$minor" ] || { echo "build-go.sh: cannot tell the version: $version" >&2; exit 3; }

export CGO_ENABLED=0 GOOS=linux
flags=()
ldflags=
case $variant in
default) ;;
stripped) ldflags='-s -w' ;;
pie) flags+=(-buildmode=pie) ;;
pie-stripped) flags+=(-buildmode=pie); ldflags='-s -w' ;;
cgo) CGO_ENABLED=1; ldflags=-linkmode=external ;;
cgo-pie) CGO_ENABLED=1; flags+=(-buildmode=pie); ldflags=-linkmode=external ;;
cgo-pie-stripped)
	CGO_ENABLED=1
	flags+=(-buildmode=pie)
	ldflags='-linkmode=external -s -w'
	;;
cgo-static-pie)
	CGO_ENABLED=1
	flags+=(-buildmode=pie)
	ldflags='-linkmode=external -extldflags=-static-pie'
	;;
cgo-static)
	CGO_ENABLED=1
	flags+=(-tags 'netgo osusergo')
	ldflags='-linkmode=external -extldflags=-static'
	;;
cgo-internal) CGO_ENABLED=1; ldflags=-linkmode=internal ;;
sectionless | packed | strip | upx) ;;
upx-pie) flags+=(-buildmode=pie) ;;
stripped-sectionless) ldflags='-s -w' ;;
trimpath) flags+=(-trimpath) ;;
race) CGO_ENABLED=1; flags+=(-race) ;;
noopt) flags+=(-gcflags='all=-N -l') ;;
noinline) flags+=(-gcflags='all=-l') ;;
amd64v3) export GOAMD64=v3 ;;
devel) ldflags="-X 'runtime.buildVersion=devel +d1c9f7a4b2 Tue Mar 3 10:00:00 2026 +0000'" ;;
vendor) ldflags="-X 'runtime.buildVersion=go1.$minor.99-vendor.2 X:boringcrypto'" ;;
unversioned) ldflags="-X 'runtime.buildVersion=our own toolchain'" ;;
experiment) # a toolchain knows its own only
	case $minor in
	1[67]) GOEXPERIMENT=fieldtrack ;;
	18 | 19) GOEXPERIMENT=staticlockranking ;;
	2[01]) GOEXPERIMENT=arenas ;;
	2[23]) GOEXPERIMENT=rangefunc ;;
	24) GOEXPERIMENT=noswissmap ;;
	25) GOEXPERIMENT=greenteagc ;;
	*) GOEXPERIMENT=nosizespecializedmalloc ;;
	esac
	export GOEXPERIMENT
	;;
pie-sectionless) flags+=(-buildmode=pie) ;;
cgo-pie-sectionless) CGO_ENABLED=1; flags+=(-buildmode=pie); ldflags=-linkmode=external ;;
c-shared | c-shared-python) CGO_ENABLED=1; flags+=(-buildmode=c-shared) ;;
c-shared-stripped) CGO_ENABLED=1; flags+=(-buildmode=c-shared); ldflags='-s -w' ;;
plugin) CGO_ENABLED=1; flags+=(-buildmode=plugin) ;;
arm64) export GOARCH=arm64 ;;
debug) export GOARCH=amd64; ldflags=-compressdwarf=false ;;
arm64-debug) export GOARCH=arm64; ldflags=-compressdwarf=false ;;
arm64-pie) export GOARCH=arm64; flags+=(-buildmode=pie) ;;
*) echo "build-go.sh: no variant '$variant'" >&2; exit 2 ;;
esac
[ "$minor" -lt 18 ] || flags+=(-buildvcs=false)

mkdir -p "$out"
out=$(cd "$out" && pwd)
src=$(cd "$src" && pwd)
result=$out/$(basename "$src")-$version-$variant

# What has to be built again if it is newer.
hosts=$(cd "$(dirname "$0")" && pwd)/gohosts
sources=("$src" "$0" "$hosts")

# Each step of these is chained: in a condition bash does not stop at a step that fails.

# build SRC_DIR OUT [FLAG...]
build() {
	local from=$1 to=$2
	shift 2
	sed "s/^go .*/go 1.$minor/" "$from/go.mod" >"$to.mod" &&
		(cd "$from" && "$go" build -modfile="$to.mod" "$@" -o "$to" .) &&
		rm -f "$to.mod" "$to.sum"
}

# The program with one more file that says where a host finds its beginning.
build_part() {
	local part=$result.src
	rm -rf "$part" && cp -r "$src" "$part" && cp "$hosts/$1" "$part/entry_$1" &&
		build "$part" "$result.so" "${flags[@]}" -ldflags="$ldflags" &&
		rm -rf "$part" "$result.h"
}

# Neither a table of section headers nor a word about one.
drop_sections() {
	dd if=/dev/zero of="$1" bs=1 seek=40 count=8 conv=notrunc status=none &&
		dd if=/dev/zero of="$1" bs=1 seek=58 count=6 conv=notrunc status=none
}

build_variant() {
	case $variant in
	c-shared-python)
		build_part library.go && cp "$hosts/library.py" "$result.new" &&
			chmod +x "$result.new"
		;;
	c-shared*)
		build_part library.go &&
			gcc -O1 -Wall -o "$result.new" "$hosts/library.c" -ldl -lpthread
		;;
	plugin)
		build_part plugin.go && build "$hosts/pluginhost" "$result.new"
		;;
	packed)
		build "$src" "$result.packed" "${flags[@]}" -ldflags="$ldflags" &&
			gcc -O1 -Wall -fpie -pie -s -o "$result.new" "$hosts/packed.c" &&
			drop_sections "$result.new"
		;;
	upx*)
		build "$src" "$result.new" "${flags[@]}" -ldflags="$ldflags" &&
			"${PODPROF_UPX:?no UPX}" -q "$result.new"
		;;
	strip)
		build "$src" "$result.new" "${flags[@]}" -ldflags="$ldflags" && strip "$result.new"
		;;
	*sectionless)
		build "$src" "$result.new" "${flags[@]}" -ldflags="$ldflags" &&
			drop_sections "$result.new"
		;;
	*)
		build "$src" "$result.new" "${flags[@]}" -ldflags="$ldflags"
		;;
	esac
}

exec 9>"$result.lock"
flock 9
if [ ! -e "$result" ] || [ -n "$(find "${sources[@]}" -newer "$result" -print -quit)" ]; then
	log=$result.log
	if ! build_variant >"$log" 2>&1; then
		echo "build-go.sh: $version $variant: go build fails in $src:" >&2
		cat "$log" >&2
		exit 1
	fi
	touch "$result.new" # go leaves the time of its cache entry where it can
	mv "$result.new" "$result"
	rm -f "$log"
fi
echo "$result"
