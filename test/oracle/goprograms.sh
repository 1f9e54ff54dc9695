#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Go programs built by others: Debian's packages of several suites, and so of several releases of Go, all stripped. The
# script fetches and unpacks the packages without an installation, and runs each program in its own root and network for
# some seconds (as root). Two tables: the files with found variables, and the results from the processes. Fails if
# anything is not found, not read, or not named.
#
#   goprograms.sh SUITE...      bookworm trixie sid; PROGRAMS selects programs by a part of the name
set -u
build=${B:-build}
packages="prometheus etcd-server containerd rclone restic caddy prometheus-node-exporter syncthing gh hugo"
seconds=${SECONDS_EACH:-6}
work=$(mktemp -d)
failed=0
pid=
trap '[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null; rm -rf "$work"' EXIT

# row SUITE PROGRAM CELL...: ends with "**no**" cells where something is wrong
row() {
	local cells
	cells=$(printf ' %s |' "${@:3}")
	printf '| %-8s | %-26s |%s\n' "$1" "$2" "$cells"
	case $cells in *'**'*) failed=1 ;; esac
}

# kind_of FILE: the kind of linking
kind_of() {
	local kind
	kind=$(readelf -hlW "$1" 2>/dev/null | awk '/Type: *DYN/ {pie = ", PIE"} /INTERP/ {cgo = 1}
		END {print (cgo ? "dynamic" : "static") pie}')
	readelf -SW "$1" 2>/dev/null | grep -q ' \.symtab ' && kind="$kind, symbols"
	echo "$kind"
}


# variables: of $work/runtime, by the source of the list of records, the rate and the cycle
variables() {
	jq -r '[.runtimes[0].variables[] | select(.source != null and
			(.name | test("^runtime.(mbuckets|MemProfileRate|mProfCycle|mProf)$"))) | .source]
		| if length == 3 then unique | join(", ") else "**no**" end' "$work/runtime"
}

file_row() {
	local state
	"$build/podprof" inspect goruntime --json "$2" >"$work/runtime" 2>/dev/null || return 0
	state=$(jq -r .state "$work/runtime")
	[ "$state" = no_runtime ] && return
	[ "$state" = ok ] || state="**$state**"
	row "$1" "$(basename "$2")" "$(jq -r '.runtimes[0].version' "$work/runtime")" "$(kind_of "$2")" "$state" \
		"$(variables)"
}

# heap OUTPUT [OPTION]: the profile of $pid
heap() {
	"$build/podprof" heap "$pid" --output "$@" >"$work/said" 2>&1
}

# named FILE: per cent of the distinct places in a profile with a name and a line
named() {
	test/go.sh tool pprof -symbolize=none -raw "$1" 2>/dev/null | awk '
		/^Locations/ {on = 1; next} /^Mappings/ {on = 0}
		on {n++; if ($0 ~ /[^ ]:[0-9]+:[0-9]+/ && $0 !~ / \[/) good++}
		END {printf n ? (good == n ? "100" : "**" sprintf("%.1f", 100 * good / n) "**") : "-"}'
}

records() {
	sed -n 's/.* \([0-9]*\) records, .*/\1/p' "$work/said"
}

# live_row SUITE TREE NAME FILE COMMAND...: run the program in its tree and read its heap
live_row() {
	local suite=$1 tree=$2 name=$3 file=$4 state n forced=- n_forced=- share=-
	shift 4
	[ -x "$tree/$file" ] || return 0
	case $name in *"${PROGRAMS:-}"*) ;; *) return ;; esac
	# shellcheck disable=SC2016
	unshare -n -m -- sh -c 'ip link set lo up; root=$1; shift
		mount --bind /dev "$root/dev" && mount --bind /proc "$root/proc" && mount --bind /sys "$root/sys" || exit 1
		exec env -i HOME=/tmp/home PATH=/usr/bin:/usr/sbin RESTIC_PASSWORD=x chroot "$root" "$@"' \
		sh "$tree" "$@" <&7 >"$work/log" 2>&1 &
	pid=$!
	sleep "$seconds"
	"$build/podprof" inspect goruntime --json $pid >"$work/runtime" 2>"$work/error"
	state=$(jq -r .state "$work/runtime" 2>/dev/null)
	heap "$work/profile"
	n=$(records)
	if [ -n "$n" ]; then
		share=$(named "$work/profile")
	elif [ "$state" = disabled_by_linker ]; then
		heap "$work/profile" --force
		timeout "$seconds" head -c 100M /dev/urandom >&7
		sleep 1
		heap "$work/profile"
		forced=$(jq -r .state <("$build/podprof" inspect goruntime --json $pid))
		n_forced=$(records)
		[ -z "$n_forced" ] || share=$(named "$work/profile")
	else
		state="**${state:-$(tail -n 1 "$work/error" "$work/log" | tr '\n|' '  ')}**"
	fi
	row "$suite" "$name" "$(jq -r '.runtimes[0].version' "$work/runtime" 2>/dev/null)" "$state" "${n:--}" \
		"$forced" "${n_forced:-0}" "$share"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	pid=
}

live_rows() {
	local suite=$1 tree=$2 run
	run="$tree/tmp/run"
	rm -rf "$tree/tmp" && mkdir -p "$run" "$tree/tmp/home" "$tree/dev" "$tree/proc" "$tree/sys"
	mkdir -p "$tree/etc" && echo '127.0.0.1 localhost' >"$tree/etc/hosts"
	echo 'root:x:0:0:root:/tmp/home:/bin/sh' >"$tree/etc/passwd"
	echo 'scrape_configs: []' >"$run/prometheus.yml"
	chroot "$tree" /usr/bin/hugo new site /tmp/run/site >/dev/null 2>&1
	RESTIC_PASSWORD=x chroot "$tree" /usr/bin/restic init -r /tmp/run/restic >/dev/null 2>&1
	set -- "$suite" "$tree"
	live_row "$@" prometheus usr/bin/prometheus /usr/bin/prometheus --config.file=/tmp/run/prometheus.yml \
		--storage.tsdb.path=/tmp/run/tsdb --web.listen-address=127.0.0.1:9090
	live_row "$@" etcd usr/bin/etcd /usr/bin/etcd --data-dir /tmp/run/etcd
	live_row "$@" containerd usr/bin/containerd /usr/bin/containerd --root /tmp/run/cdr --state /tmp/run/cds \
		--address /tmp/run/cd.sock
	live_row "$@" "rclone rcd" usr/bin/rclone /usr/bin/rclone rcd --rc-no-auth
	live_row "$@" "restic backup" usr/bin/restic /usr/bin/restic -r /tmp/run/restic backup --stdin
	live_row "$@" "caddy file-server" usr/bin/caddy /usr/bin/caddy file-server --listen 127.0.0.1:8080
	live_row "$@" node-exporter usr/bin/prometheus-node-exporter /usr/bin/prometheus-node-exporter \
		--web.listen-address=127.0.0.1:9100
	live_row "$@" syncthing usr/bin/syncthing /usr/bin/syncthing serve --no-browser
	live_row "$@" "gh auth login" usr/bin/gh /usr/bin/gh auth login --with-token
	live_row "$@" "hugo server" usr/bin/hugo /usr/bin/hugo server --source /tmp/run/site --bind 127.0.0.1
}

# An endless standard input, to make its readers allocate.
mkfifo "$work/in" && exec 7<>"$work/in"

trees=()
for suite in "$@"; do
	# shellcheck disable=SC2086
	trees+=("$(test/kernels/debian.sh tree "$suite" "$(dpkg --print-architecture)" $packages)") || exit 1
done
echo '| suite | file | Go | linked | state | variables by |'
echo '|---|---|---|---|---|---|'
i=0
for suite in "$@"; do
	for file in "${trees[$i]}"/usr/bin/* "${trees[$i]}"/usr/sbin/*; do
		[ -f "$file" ] && [ ! -L "$file" ] && file_row "$suite" "$file"
	done
	i=$((i + 1))
done
echo
echo '| suite | program | Go | state | records | when forced | records then | places named, % |'
echo '|---|---|---|---|---|---|---|---|'
i=0
for suite in "$@"; do
	live_rows "$suite" "${trees[$i]}"
	i=$((i + 1))
done
exit $failed
