// SPDX-License-Identifier: Apache-2.0
/*
 * Makes two functions at run time, lists them in a perf map and spends its CPU time there, 70 % and
 * 30 %, for 3 s. The map first has another name for this memory.
 *
 *	jit          /tmp/perf-PID.map
 *	jit nested   as the first process of a new PID namespace, with a /tmp of its own
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* push rbp; mov rbp, rsp; mov rcx, rdi; 1: dec rcx; jnz 1b; pop rbp; ret */
static const uint8_t count_down[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0xf9,
				     0x48, 0xff, 0xc9, 0x75, 0xfb, 0x5d, 0xc3};

#define SLICE_NS 10000000ull /* of CPU time */

typedef void (*count_fn)(uint64_t n);

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void spin(const uint8_t *code, uint64_t until)
{
	do
		((count_fn)(uintptr_t)code)(100000);
	while (cpu_ns() < until);
}

static int run(void)
{
	uint8_t *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint8_t *seventy = code, *thirty = code + 64;
	uint64_t due = cpu_ns();
	char path[64];
	FILE *map;

	if (code == MAP_FAILED)
		return 1;
	memcpy(code, count_down, sizeof(count_down));
	memcpy(code + 64, count_down, sizeof(count_down));
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC))
		return 1;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "we");
	if (!map)
		return 1;
	fprintf(map, "%lx 1000 jit_replaced\n", (unsigned long)code);
	fprintf(map, "%lx 40 jit_seventy\n", (unsigned long)seventy);
	fprintf(map, "%lx 40 jit_thirty\n", (unsigned long)thirty);
	fclose(map);
	for (int i = 0; i < 30; i++) { /* turns far longer than the time between two samples */
		due += 7 * SLICE_NS;
		spin(seventy, due);
		due += 3 * SLICE_NS;
		spin(thirty, due);
	}
	unlink(path);
	return 0;
}

int main(int argc, char **argv)
{
	int status;

	if (argc < 2 || strcmp(argv[1], "nested"))
		return run();
	if (unshare(CLONE_NEWPID | CLONE_NEWNS) || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) ||
	    mount("jit", "/tmp", "tmpfs", 0, NULL))
		return 1;
	if (fork() == 0)
		_exit(run());
	wait(&status);
	return status != 0;
}
