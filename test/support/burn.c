// SPDX-License-Identifier: Apache-2.0
#include "support/burn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each function has its own section, and the linker provides the bounds. */
#define BURN_FUNCTION(name) __attribute__((noinline, section(#name "_text"))) void name

#define BURN_RANGE(name)                                          \
	extern const char __start_##name##_text[];                \
	extern const char __stop_##name##_text[];                 \
	struct burn_range name##_range(void)                      \
	{                                                         \
		return (struct burn_range){                       \
			.start = (uint64_t)__start_##name##_text, \
			.limit = (uint64_t)__stop_##name##_text,  \
		};                                                \
	}

#define BURN_DEPTH	 600
#define BURN_USUAL_DEPTH 24

/* More than the last cache holds and the second TLB covers, written in less than a hundredth of a
 * second. */
#define BURN_COLD_BYTES (64ul << 20)
#define BURN_LINE_BYTES 64

static volatile uint64_t sink;
static volatile bool stop; /* never set; but the compiler must assume that the calls return */

/* Zeros of the kernel: a millisecond on an emulated CPU. */
#define BURN_READ_BYTES (1ul << 20)

static void read_zeros(void)
{
	static uint8_t room[BURN_READ_BYTES];
	static int zeros = -1;

	if (zeros < 0)
		zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	if (read(zeros, room, sizeof(room)) != (ssize_t)sizeof(room))
		_exit(1);
}

/* A line of each cache set after the other, in pages of 4 KiB. */
static void evict_caches(void)
{
	static volatile uint8_t *room;

	if (!room) {
		void *memory = mmap(NULL, BURN_COLD_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			_exit(1);
		madvise(memory, BURN_COLD_BYTES, MADV_NOHUGEPAGE);
		room = memory;
	}
	for (size_t i = 0; i < BURN_COLD_BYTES; i += BURN_LINE_BYTES)
		room[i]++;
}

static BURN_FUNCTION(burn_inner)(enum burn_kind kind)
{
	const struct timespec nap = {.tv_nsec = 5000000};

	while (!stop) {
		if (kind == BURN_KERNEL)
			syscall(SYS_getppid);
		else if (kind == BURN_READ)
			read_zeros();
		else if (kind == BURN_SLEEP)
			syscall(SYS_nanosleep, &nap, NULL);
		else if (kind == BURN_COLD || kind == BURN_COLD_FEW)
			evict_caches();
		else
			sink = sink * 3 + 1;
	}
}

static BURN_FUNCTION(burn_right)(unsigned int path, int depth);

/* Left or right by each bit of the path: so many bits, so many different stacks. */
static BURN_FUNCTION(burn_left)(unsigned int path, int depth)
{
	if (depth && path & 1)
		burn_left(path >> 1, depth - 1);
	else if (depth)
		burn_right(path >> 1, depth - 1);
	for (int i = 0; i < 100 && !depth; i++)
		sink = sink * 3 + 1;
	sink++;
}

static BURN_FUNCTION(burn_right)(unsigned int path, int depth)
{
	if (depth && path & 1)
		burn_left(path >> 1, depth - 1);
	else if (depth)
		burn_right(path >> 1, depth - 1);
	for (int i = 0; i < 100 && !depth; i++)
		sink = sink * 5 + 1;
	sink++;
}

static void burn_many(void)
{
	for (unsigned int path = 0; !stop; path++)
		burn_left(path, 20);
}

static BURN_FUNCTION(burn_middle)(enum burn_kind kind)
{
	burn_inner(kind);
	sink++; /* a call in tail position might become a jump */
}

static BURN_FUNCTION(burn_deeper)(enum burn_kind kind, int depth)
{
	if (depth)
		burn_deeper(kind, depth - 1);
	else
		burn_middle(kind);
	sink++;
}

/* Functions with frames of different sizes, a block of an unwind table apart. */
#define BURN_STEP(n, inner)                                                                     \
	static __attribute__((noinline, aligned(1024))) void burn_step_##n(enum burn_kind kind) \
	{                                                                                       \
		volatile uint64_t room[(n)*2];                                                  \
                                                                                                \
		room[n] = n;                                                                    \
		burn_step_##inner(kind);                                                        \
		sink += room[n];                                                                \
	}
static __attribute__((noinline)) void burn_step_0(enum burn_kind kind)
{
	burn_middle(kind);
	sink++;
}
BURN_STEP(1, 0)
BURN_STEP(2, 1)
BURN_STEP(3, 2)
BURN_STEP(4, 3)
BURN_STEP(5, 4)
BURN_STEP(6, 5)
BURN_STEP(7, 6)
BURN_STEP(8, 7)
BURN_STEP(9, 8)
BURN_STEP(10, 9)
BURN_STEP(11, 10)
BURN_STEP(12, 11)
BURN_STEP(13, 12)
BURN_STEP(14, 13)
BURN_STEP(15, 14)
BURN_STEP(16, 15)
BURN_STEP(17, 16)
BURN_STEP(18, 17)
BURN_STEP(19, 18)
BURN_STEP(20, 19)
BURN_STEP(21, 20)
BURN_STEP(22, 21)
BURN_STEP(23, 22)
BURN_STEP(24, 23)

static BURN_FUNCTION(burn_outer)(enum burn_kind kind)
{
	if (kind == BURN_DEEP)
		burn_deeper(kind, BURN_DEPTH);
	else if (kind == BURN_USUAL)
		burn_deeper(kind, BURN_USUAL_DEPTH);
	else if (kind == BURN_COLD)
		burn_step_24(kind);
	else
		burn_middle(kind);
	sink++;
}

BURN_RANGE(burn_inner)
BURN_RANGE(burn_middle)
BURN_RANGE(burn_deeper)
BURN_RANGE(burn_outer)

static void burn_child(enum burn_kind kind)
{
	raise(SIGSTOP);
	if (kind == BURN_MANY)
		burn_many();
	else
		burn_outer(kind);
	_exit(0);
}

pid_t burn_start(enum burn_kind kind)
{
	pid_t parent = getpid();
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid > 0) {
		waitpid(pid, NULL, WUNTRACED);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		burn_child(kind);
	_exit(1);
}

pid_t burn_start_pidns(enum burn_kind kind)
{
	struct clone_args args = {.flags = CLONE_NEWPID, .exit_signal = SIGCHLD};
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0)
		return -errno;
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	burn_outer(kind);
	_exit(1);
}

void burn_go(pid_t pid)
{
	kill(pid, SIGCONT);
}

uint64_t burn_end(pid_t pid)
{
	struct rusage usage;
	int status;

	kill(pid, SIGKILL);
	if (wait4(pid, &status, 0, &usage) != pid)
		return 0;
	return ((uint64_t)usage.ru_utime.tv_sec + (uint64_t)usage.ru_stime.tv_sec) * 1000000000 +
	       ((uint64_t)usage.ru_utime.tv_usec + (uint64_t)usage.ru_stime.tv_usec) * 1000;
}
