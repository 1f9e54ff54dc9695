#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Boot Debian's kernels in QEMU with the guest program (guest.c) as their first process, and print its results, one line
# each. Needs no root; uses KVM if available.
#
#   check.sh oldest                the oldest available kernel
#   check.sh RELEASE...            these (5.10, 6.1, ...); "here" is the running kernel (root)
#
# B is the folder of the build, ARCH its architecture (x86 or arm64), SYSROOT the folder of its libraries, PYTHON one with
# CPython, NODE with Node and JAVA with one OpenJDK (debian.sh; without one the guest has none), SMP the CPUs as QEMU takes them
# (2; "2,maxcpus=64": possible ones). With ICOUNT=2 a guest's clock counts instructions, 4 ns each, in place of time. For a
# busy machine: there a guest with a tenth of a CPU spends this on its timer. Not for 5.10, whose second CPU does not start.
set -u
here=$(dirname "$0")
build=${B:-build}
arch=${ARCH:-x86}
sysroot=${SYSROOT:-/}
python=${PYTHON:-}
node=${NODE:-}
java=${JAVA:-}
# Half of the MB is for files: those of Node and Java need 300.
memory=1024
[ -z "$node$java" ] || memory=2048
work=$build/test/kernels
arguments=$*
results=build/test/results/kernels-${build//\//-}-${arguments// /-}
# A virtual machine has 2 slow CPUs and this time, in seconds. Seen: 20 without KVM, on an idle machine.
patience=1800

# Oldest first. The archive may have dropped the first one.
oldest="5.10 6.1"

mkdir -p "$work" "${results%/*}"
: >"$results"

qemu() {
	# One thread for both CPUs: with two threads, QEMU 7.2 sometimes hits a breakpoint already removed by the other
	# CPU while the kernel patches its code, or worse.
	local accel=tcg,thread=single clock=()
	[ -z "${ICOUNT:-}" ] || clock=(-icount "shift=$ICOUNT")
	if [ -w /dev/kvm ] && [ "$(uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')" = "$arch" ] &&
		{ [ "$arch" = arm64 ] || grep -qwE 'vmx|svm' /proc/cpuinfo; }; then
		accel=kvm
		clock=()
	fi
	case $arch in
	# Without cmpxchg16b: after this instruction QEMU 7.2 may give an interrupt invalid flags, a double fault in the
	# kernel's allocator, seen on 6.12. Without the kernel's timer check, which panics if the host is too busy for
	# ten ticks in time ("IO-APIC + timer doesn't work", seen on 5.10).
	x86)
		set -- qemu-system-x86_64 -accel $accel -cpu max,-cx16 \
			-append "console=ttyS0 quiet panic=-1 no_timer_check" "$@"
		;;
	arm64)
		# Signed return addresses, by a cheap way of signing.
		set -- qemu-system-aarch64 -M virt -accel $accel -cpu max,pauth-impdef=on \
			-append "console=ttyAMA0 quiet panic=-1" "$@"
		;;
	esac
	timeout $patience "$@" "${clock[@]}" -smp "${SMP:-2}" -m "$memory" -nic none -nographic -no-reboot </dev/null 2>&1 | tr -d '\r'
}

# outcome NAME LOG: the guest's closing line, or its whole output
outcome() {
	local line
	line=$(grep -ao '^RESULT .*' "$2" | tail -n 1)
	case $line in
	"RESULT ok "*)
		echo "passed $1" >>"$results"
		printf '  %-8s %s %s\n' PASS "$1" "${line#RESULT ok }"
		;;
	*)
		echo "failed $1" >>"$results"
		printf '  %-8s %s\n' FAIL "$1"
		cat "$2"
		return 1
		;;
	esac
}

kernel_of() {
	"$here/debian.sh" kernel "$1" "$(echo "$arch" | sed 's/x86/amd64/')"
}

boot() {
	local release=$1 kernel=$2 log=$work/console-$1
	[ -s "$work/initramfs" ] || return 1
	# Emulation sometimes fails while the kernel boots; the test proper comes later.
	for _ in 1 2; do
		qemu -kernel "$kernel" -initrd "$work/initramfs" >"$log"
		grep -qa 'user stacks' "$log" && break
	done
	outcome "linux $release ($arch)" "$log"
}

run_here() {
	nice "$work/guest" "$build/podprof" "$work/runtimes" >"$work/console-here" 2>&1
	outcome "this machine" "$work/console-here"
}

one() {
	local kernel
	if [ "$1" = here ]; then
		run_here
	elif kernel=$(kernel_of "$1"); then
		boot "$1" "$kernel"
	else
		echo "  FAIL     linux $1: no kernel to boot"
		echo "failed linux $1" >>"$results"
		return 1
	fi
}

files=("/init=$work/guest" "/bin/podprof=$build/podprof" "/bin/runtimes=$work/runtimes")
if [ -n "$python" ]; then
	release=$(basename "$python"/usr/lib/python3.*)
	sysroot=$python:$sysroot
	files+=("/usr/bin/python3=$python/usr/bin/$release" "/usr/lib/$release=$python/usr/lib/$release")
	files+=("/burn.py=$here/../data/python/burn.py" "/children.py=$here/../data/python/children.py")
fi
if [ -n "$node" ]; then
	sysroot=$node:$sysroot
	files+=("/usr/bin/node=$node/usr/bin/node" "/usr/share/nodejs=$node/usr/share/nodejs")
	files+=("/burn.js=$here/../data/v8/burn.js")
fi
# The parts of OpenJDK that a small program needs; the configuration is outside of its folder. 8 has the runtime in a folder of
# its own, and libraries below the name of the machine. A file for each way of running a program has the options of java.
if [ -n "$java" ]; then
	jvm=$(find "$java/usr/lib/jvm" -maxdepth 1 -name 'java-*-openjdk-*' ! -name 'java-1.*')
	[ ! -d "$jvm/jre" ] || jvm=$jvm/jre
	sysroot=$java:$sysroot
	javac --release 8 -Xlint:-options -d "$work/java" "$here"/../data/java/{Burn,Wait,Throw,Deopt,Heap}.java || exit 1
	for file in bin/java lib/modules lib/rt.jar lib/{,aarch64/}server/libjvm.so lib/server/classes.jsa \
		lib/{,aarch64/,aarch64/jli/}lib{jli,java,jimage,zip,nio,net,verify}.so; do
		[ ! -e "$jvm/$file" ] || files+=("/jvm/$file=$jvm/$file")
	done
	[ ! -d "$jvm/lib/aarch64" ] || machine=aarch64/
	files+=("/jvm/lib/${machine:-}jvm.cfg=$(echo "$java"/etc/java-*-openjdk/jvm-*.cfg)")
	common="-Xmx32m -XX:-UsePerfData -XX:CompileCommand=quiet"
	for class in Burn Wait Throw Deopt Heap; do
		common+=" -XX:CompileCommand=dontinline,$class*::*"
		only+=" -XX:CompileCommand=compileonly,$class*::*"
	done
	c1="-Xcomp -XX:TieredStopAtLevel=1$only" c2="-Xcomp -XX:-TieredCompilation$only"
	for mode in "int -XX:+UseSerialGC -Xint" "c1 -XX:+UseSerialGC $c1" "c2 -XX:+UseSerialGC $c2" \
		"parallel -XX:+UseParallelGC" "g1 -XX:+UseG1GC" "shenandoah -XX:+UseShenandoahGC" "z -XX:+UseZGC"; do
		echo "$common ${mode#* }" >"$work/java/${mode%% *}"
	done
	files+=("/burn=$work/java")
fi
"$here/initramfs.py" "$sysroot" "$work/initramfs" "${files[@]}" || exit 1
if [ "${1:-}" = oldest ]; then
	for release in $oldest; do
		kernel=$(kernel_of "$release") || {
			echo "  NOTE     linux $release: cannot be had here, so a newer one"
			continue
		}
		boot "$release" "$kernel"
		exit
	done
	# shellcheck source=/dev/null
	. /etc/os-release
	# Elsewhere there is no Debian kernel to be had: the machine's own instead.
	[ "$ID" = debian ] && set -- "${release:?}" || set -- here
fi
failed=0
for release in "$@"; do one "$release" || failed=1; done
exit $failed
