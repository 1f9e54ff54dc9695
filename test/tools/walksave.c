// SPDX-License-Identifier: Apache-2.0
/*
 * "walksave PID [auto|fp|dwarf]" writes the stack of a living process as a test case
 * (support/walkcase.h) to standard output: its registers, the memory read by the walker, the rows
 * around each frame, and the walker's frames. Check the frames by hand: a wrong frame is the
 * purpose of a case.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "discovery/pid.h"
#include "procmap/address_space.h"
#include "procmap/maps.h"
#include "profile/sample.h"
#include "shared/sample.h"
#include "support/hostwalk.h"
#include "support/stopping.h"
#include "symbolize/symbolizer.h"
#include "unwind/rowtext.h"

#if defined(__x86_64__)
#define MACHINE	     CFI_X86_64
#define MACHINE_NAME "x86-64"
static const char *const names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "",    "",
				    "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
static const char *const pc_name = "rip", *const sp_name = "rsp", *const fp_name = "rbp";
#else
#define MACHINE	     CFI_ARM64
#define MACHINE_NAME "aarch64"
static const char *const names[] = {"x0", "x1", "x2",  "x3",  "x4",  "x5",  "x6",  "x7",
				    "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15"};
static const char *const pc_name = "pc", *const sp_name = "sp", *const fp_name = "x29";
#endif

#define WORDS_A_LINE 4
/* Range of code around each frame whose rows are written. */
#define PAGE	     256ull

struct saver {
	struct root proc;
	struct pid_id id;
	struct maps maps;
	struct hostwalk *walk;
	struct hostwalk_regs regs;
	struct hostwalk_stack stack;
	struct address_space_cache *spaces;
	struct symbolizer *symbolizer;
};

/* ---------------------------------------------------------------- registers and memory */

static void write_registers(const struct hostwalk_regs *r)
{
	printf("reg %s %" PRIx64 "\nreg %s %" PRIx64 "\nreg %s %" PRIx64 "\n", pc_name, r->pc,
	       sp_name, r->sp, fp_name, r->fp);
	for (size_t i = 0; i < array_size(names); i++)
		if (names[i][0] && r->numbered[i])
			printf("reg %s %" PRIx64 "\n", names[i], r->numbered[i]);
	if (r->thread_pointer)
		printf("reg fs_base %" PRIx64 "\n", r->thread_pointer);
	if (r->in_syscall)
		printf("in_syscall\n");
}

static int by_address(const void *a, const void *b)
{
	const struct hostwalk_read *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

/* The words of one line; no line if all are zeros, because missing words read as zeros. */
static void write_words(uint64_t address, const uint64_t *words, size_t n, bool always)
{
	uint64_t any = always;

	for (size_t i = 0; i < n; i++)
		any |= words[i];
	if (!any)
		return;
	printf("mem %" PRIx64, address);
	for (size_t i = 0; i < n; i++)
		printf(" %" PRIx64, words[i]);
	printf("\n");
}

static void write_range(int mem, uint64_t from, uint64_t end, bool first)
{
	uint64_t words[WORDS_A_LINE];

	for (; from < end; from += sizeof(words), first = false) {
		size_t n = end - from < sizeof(words) ? end - from : sizeof(words);

		if (pread(mem, words, n, (off_t)from) == (ssize_t)n)
			write_words(from, words, n / 8, first);
	}
}

static void write_memory(struct saver *s, int mem)
{
	struct hostwalk_read reads[HOSTWALK_READS];
	uint64_t end = 0;
	size_t n;

	memcpy(reads, hostwalk_reads(s->walk, &n), sizeof(reads));
	qsort(reads, n, sizeof(*reads), by_address);
	for (size_t i = 0; i < n; i++) {
		const uint64_t from = reads[i].address > end ? reads[i].address : end;

		if (reads[i].address + reads[i].n_bytes > from)
			write_range(mem, from, reads[i].address + reads[i].n_bytes, true);
		if (reads[i].address + reads[i].n_bytes > end)
			end = reads[i].address + reads[i].n_bytes;
	}
}

/* ---------------------------------------------------------------- code */

/* Where a frame's row was looked up. */
static uint64_t looked_up(const struct hostwalk_stack *stack, size_t i)
{
	return stack->pcs[i] - (i != 0);
}

static bool is_used(const struct saver *s, const struct maps_entry *e)
{
	for (size_t i = 0; i < s->stack.n; i++)
		if (maps_find(&s->maps, looked_up(&s->stack, i)) == e)
			return true;
	return false;
}

/* The last component of the path, without blanks; once for each mapping with rows. */
static void print_image(const struct maps_entry *e)
{
	const char *slash = e->path ? strrchr(e->path, '/') : NULL;
	const char *name = slash ? slash + 1 : e->path ? e->path : "-";

	if (!*name)
		name = "-";
	for (; *name; name++)
		putchar(*name == ' ' || *name == '#' ? '_' : *name);
}

static uint64_t bias_of(struct saver *s, const struct maps_entry *e)
{
	uint64_t bias;

	return hostwalk_bias(s->walk, e->start, &bias) ? bias : 0;
}

static void write_mappings(struct saver *s)
{
	for (size_t i = 0; i < s->maps.n; i++) {
		const struct maps_entry *e = &s->maps.items[i];

		printf("map %" PRIx64 " %" PRIx64 " %" PRIx64 " ", e->start, e->limit,
		       bias_of(s, e));
		if (is_used(s, e))
			print_image(e);
		else
			putchar('-');
		putchar('\n');
	}
}

static void write_row(const struct maps_entry *e, uint64_t start, uint64_t end,
		      const struct unwind_rule *rule)
{
	char text[ROWTEXT_MAX];

	if (rule->cfa == UNWIND_CFA_GAP)
		return;
	printf("row ");
	print_image(e);
	printf(" %" PRIx64 " %" PRIx64 " %s\n", start, end, rowtext_print(MACHINE, rule, text));
}

/* The rows of the code around @pc. */
static void write_page(struct saver *s, uint64_t pc)
{
	const struct maps_entry *e = maps_find(&s->maps, pc);
	const uint64_t bias = e ? bias_of(s, e) : 0;
	struct unwind_rule rule = {0}, next;
	uint64_t at = pc & -PAGE, end = at + PAGE, start = at;

	if (!e)
		return;
	for (; at < end; at++) {
		if (!hostwalk_rule(s->walk, at, &next))
			next = (struct unwind_rule){0};
		if (memcmp(&next, &rule, sizeof(rule)) == 0)
			continue;
		write_row(e, start - bias, at - bias, &rule);
		rule = next;
		start = at;
	}
	write_row(e, start - bias, at - bias, &rule);
}

static bool is_written(const struct hostwalk_stack *stack, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if ((looked_up(stack, k) & -PAGE) == (looked_up(stack, i) & -PAGE))
			return true;
	return false;
}

static void write_frames(struct saver *s)
{
	for (size_t i = 0; i < s->stack.n; i++) {
		struct symbol symbol;
		struct frame frame;

		printf("frame %" PRIx64, s->stack.pcs[i]);
		if (!address_space_cache_resolve(s->spaces, &s->id, looked_up(&s->stack, i),
						 &frame)) {
			if (!symbolizer_find(s->symbolizer, &frame, &symbol))
				printf(" %s", symbol.lines[symbol.n_lines - 1].function);
			image_unref(frame.image);
		}
		printf("\n");
	}
	printf("end %s\n", sample_stat_name(s->stack.end));
}

static int save(struct saver *s, pid_t pid, const char *mode)
{
	_cleanup_(close_fdp) int mem = -1;
	char path[64];

	snprintf(path, sizeof(path), "%d/mem", pid);
	if (root_open_file(&s->proc, path, &mem))
		return 1;
	hostwalk_walk(s->walk, &s->regs,
		      strcmp(mode, "fp") == 0	   ? SETTINGS_UNWIND_FP
		      : strcmp(mode, "dwarf") == 0 ? SETTINGS_UNWIND_DWARF
						   : SETTINGS_UNWIND_AUTO,
		      &s->stack);
	printf("machine " MACHINE_NAME "\nunwind %s\n", mode);
	write_registers(&s->regs);
	write_mappings(s);
	for (size_t i = 0; i < s->stack.n; i++)
		if (!is_written(&s->stack, i))
			write_page(s, looked_up(&s->stack, i));
	write_memory(s, mem);
	write_frames(s);
	return 0;
}

static int prepare(struct saver *s, pid_t pid)
{
	struct symbolizer_opts opts = {.proc = &s->proc, .cache_bytes = 64u << 20};

	s->maps.only_prot = MAPS_X;
	if (root_open("/proc", &s->proc) || pid_read(&s->proc, pid, &s->id) ||
	    maps_read(&s->proc, &s->id, &s->maps) ||
	    address_space_cache_new(&s->proc, &s->spaces) ||
	    symbolizer_new(&opts, &s->symbolizer) || hostwalk_new(pid, &s->walk) ||
	    hostwalk_regs(pid, &s->regs))
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	const pid_t pid = argc > 1 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
	struct stopping stop;
	struct saver s = {.proc = ROOT_INIT};
	int r;

	if (pid <= 0 || !stopping_begin(&stop, pid)) {
		fprintf(stderr, "usage: walksave PID [auto|fp|dwarf]\n");
		return 2;
	}
	r = prepare(&s, pid);
	if (!r)
		r = save(&s, pid, argc > 2 ? argv[2] : "auto");
	stopping_end(&stop);
	if (r)
		fprintf(stderr, "walksave: cannot read process %d\n", pid);
	hostwalk_free(s.walk);
	symbolizer_free(s.symbolizer);
	address_space_cache_free(s.spaces);
	maps_deinit(&s.maps);
	root_deinit(&s.proc);
	return r;
}
