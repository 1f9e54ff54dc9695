#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# embed.sh FILE...: C source that holds the files (agent/server/asset.h). Plain arrays, because every
# compiler and machine reads them; od, awk and cksum, because every builder has them.
set -eu

type_of() {
	case $1 in
	*.css) echo 'text/css; charset=utf-8' ;;
	*.js) echo 'text/javascript; charset=utf-8' ;;
	*.svg) echo 'image/svg+xml' ;;
	*) echo "embed.sh: $1: unknown kind of file" >&2; exit 1 ;;
	esac
}

echo '#include "server/asset.h"'
i=0
for file in "$@"; do
	echo "static const unsigned char asset_${i}[] = {"
	od -An -v -tu1 "$file" | awk '{ gsub(/ +/, ","); print substr($0, 2) "," }'
	echo '};'
	i=$((i + 1))
done
echo 'const struct asset assets[] = {'
i=0
for file in "$@"; do
	type=$(type_of "$file")
	sum=$(cksum <"$file" | tr ' ' -)
	printf '\t{"%s", "%s", "\\"%s\\"", asset_%d, sizeof(asset_%d)},\n' \
		"${file##*/}" "$type" "$sum" "$i" "$i"
	i=$((i + 1))
done
echo '};'
echo "const size_t n_assets = $i;"
