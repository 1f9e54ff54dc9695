#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# clang-tidy on one file: tidy.sh FLAGS_FILE OUT FILE FLAGS...
#
# OUT.d gets the files that FILE includes, the system's too. What has passed without a word is remembered by its
# content outside the tree, so that a new clone asks again for nothing that is the same: FLAGS_FILE, which says the
# version, the flags and the checks, and all those files. It is forgotten when nobody has asked for it for a month.
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
# The list of checks is that of version 14 (Debian 12): what other versions find besides is shown and is not an error.
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
