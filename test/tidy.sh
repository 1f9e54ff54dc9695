#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang-tidy on one file: tidy.sh FLAGS_FILE OUT FILE FLAGS...
#
# OUT.d gets the files included by FILE, also the system's. A pass without findings is cached outside the tree, keyed by
# the contents of these files and of FLAGS_FILE (version, flags, checks), so a new clone repeats no unchanged file.
# Entries unused for a month are removed.
set -eu
about=$1 out=$2 file=$3
shift 3
passed=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/podprof-tools/tidy

"${CLANG:-clang}" "$@" -M -MP -MT "$out.ok" -MF "$out.d" "$file"
key=$({ cat "$about" && sed -n 's/:$//p' "$out.d" | sort -u | xargs sha256sum -- "$file"; } | sha256sum | cut -c1-32)
if [ -e "$passed/$key" ]; then
	touch "$passed/$key"
	exit 0
fi
# The list of checks is for version 14 (Debian 12): additional findings of other versions are shown and are not errors.
lenient=
grep -q 'version 14\.' "$about" || lenient="--warnings-as-errors=-*"
status=0
findings=$(clang-tidy -quiet ${lenient:+"$lenient"} "$file" -- "$@" 2>/dev/null) || status=$?
[ -z "$findings" ] || printf '%s\n' "$findings"
if [ $status = 0 ] && [ -z "$findings" ]; then
	mkdir -p "$passed"
	touch "$passed/$key"
fi
exit $status
