// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of a frame of a user stack in the kernel: by unwind tables, by frame pointers, and by
 * the kernel's own bpf_get_stack(), in one run. The stacks consist of real rows of this program's
 * libraries, four frames in each library and then in the next. Hot: 16 stacks in a cycle; cold:
 * 256.
 *
 * Rounds are so short that most run without an interrupt. The median is the cost on this machine
 * with its other load; the lowest tenth is near the cost without load.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <libelf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "lib/regs_arch.bpf.h"
#include "profile/bpfobj.h"
#include "support/figure.h"
#include "support/hostwalk.h"
#include "support/kernelwalk.h"

#define STACKS	    256
#define HOT	    16
#define FRAMES	    32 /* including the one on top */
#define STACK_BYTES 32768
#define ROUNDS	    600
#define RUNS	    64

struct bench {
	struct bpf_object *object;
	volatile uint32_t *bss; /* next, mappings, frames, end */
	struct hostwalk *walk;
	uint8_t *memory;
	struct regs rows[STACKS], fps[STACKS];
	uint64_t image[3]; /* an address in each library */
	uint64_t x;
};

static uint64_t rnd(struct bench *b)
{
	b->x ^= b->x << 13;
	b->x ^= b->x >> 7;
	b->x ^= b->x << 17;
	return b->x;
}

/* ---------------------------------------------------------------- stacks */

/* A place in the code of the library around @near with the most typical frame. */
static uint64_t pick(struct bench *b, uint64_t near, struct unwind_rule *rule)
{
	for (;;) {
		uint64_t pc = near + rnd(b) % (1 << 19);

		if (hostwalk_rule(b->walk, pc - 1, rule) && rule->cfa == UNWIND_CFA_REG &&
		    rule->cfa_reg == REGS_UNWIND_SP && rule->cfa_off >= 32 && rule->cfa_off < 640 &&
		    rule->ra_off == -8 && rule->fp != UNWIND_FP_DEREF && rule->fp_off <= 0 &&
		    rule->fp_off > -rule->cfa_off && rule->fp_off != -8)
			return pc;
	}
}

static struct regs regs_of(uint64_t pc, uint64_t sp, uint64_t fp)
{
#if defined(__x86_64__)
	return (struct regs){.ip = pc, .sp = sp, .bp = fp, .orig_ax = (uint64_t)-1};
#else
	struct regs regs = {.pc = pc, .sp = sp};

	regs.x[29] = fp;
	return regs;
#endif
}

static void poke(uint64_t at, uint64_t word)
{
	memcpy((void *)(uintptr_t)at, &word, sizeof(word));
}

/* Rows say where each return address is. */
static void lay_rows(struct bench *b, uint8_t *memory, struct regs *ret)
{
	uint64_t sp = (uint64_t)(uintptr_t)memory, start = sp;
	struct unwind_rule rule;
	uint64_t pc = pick(b, b->image[0], &rule), first = pc;

	for (int i = 0; i < FRAMES; i++) {
		uint64_t cfa = sp + (uint64_t)rule.cfa_off;

		if (rule.fp == UNWIND_FP_AT_CFA)
			poke(cfa + (uint64_t)(int64_t)rule.fp_off, cfa);
		pc = i == FRAMES - 1 ? 0 : pick(b, b->image[(i + 1) / 4 % 3], &rule);
		poke(cfa - 8, pc);
		sp = cfa;
	}
	*ret = regs_of(first - 1, start, 0);
}

/* The same depth, 170 bytes a frame, as a list of frame records. */
static void lay_fps(struct bench *b, uint8_t *memory, struct regs *ret)
{
	uint64_t sp = (uint64_t)(uintptr_t)memory, at = sp + 32;

	*ret = regs_of(b->image[0], sp, at);
	for (int i = 0; i < FRAMES; i++, at += 176) {
		poke(at, i == FRAMES - 1 ? 0 : at + 176);
		poke(at + 8, i == FRAMES - 1 ? 0 : b->image[i % 3] + (uint64_t)i);
	}
}

/* ---------------------------------------------------------------- running */

static int program(const struct bench *b, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(b->object, name));
}

static int map(const struct bench *b, const char *name)
{
	return bpf_object__find_map_fd_by_name(b->object, name);
}

/* By the raw system call: a library without frame pointers would hide its callers. */
static __attribute__((noinline)) int run_once(int fd)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)fd;
	return (int)syscall(__NR_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr));
}

/* ns a run. */
struct cost {
	double median;
	double low; /* the lowest tenth is below */
};

static int compare_costs(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* By the kernel's counters. */
static struct cost run(struct bench *b, int fd, uint32_t n_stacks)
{
	struct bpfobj_cost before, after;
	double ns[ROUNDS] = {0};
	uint32_t next = 0;

	for (int round = 0; round < ROUNDS; round++) {
		(void)bpfobj_cost(fd, &before);
		for (uint32_t i = 0; i < RUNS; i++) {
			b->bss[0] = next++ * 7 % n_stacks;
			(void)run_once(fd);
		}
		(void)bpfobj_cost(fd, &after);
		ns[round] =
			(double)(after.run_ns - before.run_ns) / (double)(after.runs - before.runs);
	}
	qsort(ns, ROUNDS, sizeof(ns[0]), compare_costs);
	return (struct cost){ns[ROUNDS / 2], ns[ROUNDS / 10]};
}

static void report(struct bench *b, const char *name, struct cost nothing, struct cost hot,
		   struct cost cold)
{
	const double n = b->bss[2] - 1;

	printf("  %-32s %3.0f frames, hot %5.0f ns, %5.1f a frame (low %5.1f), "
	       "cold %5.0f ns, %5.1f (low %5.1f)\n",
	       name, n + 1, hot.median - nothing.median, (hot.median - nothing.median) / n,
	       (hot.low - nothing.low) / n, cold.median - nothing.median,
	       (cold.median - nothing.median) / n, (cold.low - nothing.low) / n);
	figure((hot.median - nothing.median) / n, "ns", "%s: a frame, hot", name);
	figure((cold.median - nothing.median) / n, "ns", "%s: a frame, cold", name);
}

/* Deep enough for bpf_get_stack() to find as many frames. */
static __attribute__((noinline)) struct cost deeper(struct bench *b, int fd, int n)
{
	struct cost cost = n ? deeper(b, fd, n - 1) : run(b, fd, HOT);

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return cost;
}

static int measure(struct bench *b, const char *name, const struct regs regs[STACKS])
{
	struct cost nothing, hot, cold;

	for (uint32_t i = 0; i < STACKS; i++)
		if (bpf_map_update_elem(map(b, "bench_stacks"), &i, &regs[i], BPF_ANY) < 0)
			return -errno;
	for (uint32_t i = 0; i < STACKS; i++) {
		b->bss[0] = i;
		if (run_once(program(b, "bench_begin")) == 0 && b->bss[2] == FRAMES && !b->bss[3])
			continue;
		fprintf(stderr, "bench_walk: %s: stack %u has %u frames and ends with %u\n", name,
			i, b->bss[2], b->bss[3]);
		return -EINVAL;
	}
	nothing = run(b, program(b, "bench_nothing"), 1);
	hot = run(b, program(b, "bench_begin"), HOT);
	cold = run(b, program(b, "bench_begin"), STACKS);
	report(b, name, nothing, hot, cold);
	return 0;
}

/* ---------------------------------------------------------------- setting up */

static int load(struct bench *b, const char *path, enum settings_unwind unwind, const char *walker)
{
	const uint32_t n_cpus = (uint32_t)libbpf_num_possible_cpus();
	const uint32_t zero = 0;
	struct settings *cfg;
	int room, fd;
	size_t n;

	bpf_object__close(b->object);
	b->object = bpf_object__open(path);
	if (!b->object)
		return -errno;
	cfg = (void *)(uintptr_t)bpf_map__initial_value(
		bpf_object__find_map_by_name(b->object, ".rodata"), &n);
	cfg->unwind = unwind;
	bpf_map__set_max_entries(bpf_object__find_map_by_name(b->object, "bench_rooms"), n_cpus);
	if (bpf_object__load(b->object) < 0)
		return -errno;
	b->bss = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, map(b, ".bss"), 0);
	if (b->bss == MAP_FAILED)
		return -errno;
	for (uint32_t i = 0; i < n_cpus; i++) {
		room = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(i), SETTINGS_ROOM_BYTES, 1,
				      NULL);
		if (room < 0 || bpf_map_update_elem(map(b, "bench_rooms"), &i, &room, BPF_ANY) < 0)
			return -errno;
		close(room);
	}
	fd = program(b, walker);
	return bpf_map_update_elem(map(b, "bench_programs"), &zero, &fd, BPF_ANY);
}

static int publish(struct bench *b)
{
	const struct hostwalk_space space = hostwalk_space(b->walk);
	const struct bpfobj_unwind to = {
		.slabs = map(b, "table_slabs"),
		.exes = map(b, "table_exes"),
		.rules = map(b, "table_rules"),
		.rule_runs = map(b, "table_rule_runs"),
	};

	b->bss[1] = space.n_mappings;
	return kernelwalk_publish(&to, &space);
}

static int bench(struct bench *b, const char *path)
{
	struct cost nothing, kernel;
	int r;

	for (size_t i = 0; i < STACKS; i++) {
		lay_rows(b, b->memory + i * STACK_BYTES, &b->rows[i]);
		lay_fps(b, b->memory + (STACKS + i) * STACK_BYTES, &b->fps[i]);
	}
	r = load(b, path, SETTINGS_UNWIND_AUTO, "bench_walk_part");
	if (r == 0)
		r = publish(b);
	if (r == 0)
		r = measure(b, "by unwind tables, in parts", b->rows);
	if (r == 0)
		r = load(b, path, SETTINGS_UNWIND_AUTO, "bench_walk");
	if (r == 0)
		r = publish(b);
	if (r == 0)
		r = measure(b, "by unwind tables", b->rows);
	if (r == 0)
		r = load(b, path, SETTINGS_UNWIND_FP, "bench_walk");
	if (r == 0)
		r = measure(b, "by frame pointers", b->fps);
	if (r < 0)
		return r;
	nothing = run(b, program(b, "bench_nothing"), 1);
	kernel = deeper(b, program(b, "bench_get_stack"), FRAMES - 6);
	report(b, "bpf_get_stack, frame pointers", nothing, kernel, kernel);
	return 0;
}

int main(int argc, char **argv)
{
	/* The kernel counts while this descriptor is open. */
	_cleanup_(close_fdp) int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	static struct bench b;
	char path[4096];
	int r;

	(void)argc;
	snprintf(path, sizeof(path), "%.*s/walk.bpf.o", (int)(strrchr(argv[0], '/') - argv[0]),
		 argv[0]);
	b.x = 88172645463325252ull;
	b.memory = calloc(2 * STACKS, STACK_BYTES);
	b.image[0] = (uint64_t)(uintptr_t)bpf_map_create & ~0xffffull;
	b.image[1] = (uint64_t)(uintptr_t)qsort & ~0xffffull;
	b.image[2] = (uint64_t)(uintptr_t)elf_begin & ~0xffffull;
	r = stats < 0 || !b.memory ? -EPERM : hostwalk_new(getpid(), &b.walk);
	if (r == 0)
		r = bench(&b, path);
	if (r < 0)
		fprintf(stderr, "bench_walk: %s\n", strerror(-r));
	bpf_object__close(b.object);
	hostwalk_free(b.walk);
	free(b.memory);
	return r < 0;
}
