#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cpusets.sh save|restore FILE: the permitted CPUs of this machine's cgroups. Cpusets of version 1 lose a CPU that goes
# offline, and do not regain the CPU later. Without this script a hotplug test leaves the machine's containers with
# fewer CPUs.
set -u
top=/sys/fs/cgroup/cpuset

case "${1:-} ${2:+given}" in
"save given")
	# parents first
	find "$top" -mindepth 2 -name cpuset.cpus -printf '%d %p\n' 2>/dev/null | sort -n | while read -r _ file; do
		cpus=$(cat "$file" 2>/dev/null) && [ -z "$cpus" ] || echo "$cpus $file"
	done >"$2"
	;;
"restore given")
	while read -r cpus file; do
		# the kernel updates cpusets some moments after the CPU's return
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			if [ ! -e "$file" ] || [ "$(cat "$file")" = "$cpus" ]; then break; fi
			echo "$cpus" 2>/dev/null >"$file" || sleep 0.1
		done
	done <"$2"
	rm -f "$2"
	;;
*)
	echo "usage: cpusets.sh save|restore FILE" >&2
	exit 2
	;;
esac
