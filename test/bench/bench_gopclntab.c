// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of naming a Go address, in large programs of the machine (or in the arguments): time to
 * open the table; time of a lookup of a new address anywhere in the program (cold: blocks are read
 * from the page cache) and of the same address again (warm); reads of the file per cold lookup;
 * memory; time to find a function by name.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "elf/elffile.h"
#include "gofile/gofuncs.h"
#include "gofile/gomodule.h"
#include "gofile/gopclntab.h"
#include "support/figure.h"

#define QUESTIONS 20000

DEFINE_CLEANUP(struct gopclntab *, gopclntab_freep, gopclntab_free);

/* The largest segment with code. */
static struct elffile_segment code_segment(const struct elffile *file)
{
	struct elffile_segment largest = {0};
	const struct elffile_segment *segments;
	size_t n;

	segments = elffile_segments(file, &n);
	for (size_t i = 0; i < n; i++)
		if ((segments[i].flags & 1 /* PF_X */) && segments[i].memsz > largest.memsz)
			largest = segments[i];
	return largest;
}

static uint64_t cpu_ns(void)
{
	return nsec_read(CLOCK_THREAD_CPUTIME_ID);
}

struct cost {
	uint64_t cold_ns;
	uint64_t warm_ns;
	uint64_t n_found;
	uint64_t n_inlined;
};

static void ask(struct gopclntab *table, const struct elffile_segment *code, struct cost *cost)
{
	struct gopclntab_line line;
	uint64_t state = 1;

	for (size_t i = 0; i < QUESTIONS; i++) {
		uint64_t t0, t1;

		state = state * 6364136223846793005ull + 1442695040888963407ull;
		t0 = cpu_ns();
		if (gopclntab_find(table, code->vaddr + (state >> 20) % code->memsz, &line))
			continue;
		t1 = cpu_ns();
		if (gopclntab_find(table, code->vaddr + (state >> 20) % code->memsz, &line))
			continue;
		cost->warm_ns += cpu_ns() - t1;
		cost->cold_ns += t1 - t0;
		cost->n_found++;
		cost->n_inlined += line.parent_pc >= 0;
	}
}

static int bench_file(const char *path)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(gopclntab_freep) struct gopclntab *table = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	static const char *const names[] = {"main.main"};
	struct gomodule module;
	struct gofuncs_one found;
	uint64_t t0, open_ns, name_ns, reads;
	struct elffile_segment code;
	struct cost cost = {0};

	if (fd < 0 || elffile_open(fd, &file)) {
		printf("gopclntab: %s: cannot be read\n", path);
		return 0;
	}
	t0 = cpu_ns();
	if (gopclntab_open(file, &table)) {
		printf("gopclntab: %s: has no line table\n", path);
		return 0;
	}
	open_ns = cpu_ns() - t0;
	code = code_segment(file);
	if (code.memsz)
		ask(table, &code, &cost);
	if (!cost.n_found)
		return -1;
	reads = gopclntab_reads(table);
	t0 = cpu_ns();
	if (gomodule_find(file, &module) || gofuncs_find(file, &module, names, 1, &found))
		return -1;
	name_ns = cpu_ns() - t0;
	printf("gopclntab: %s (%llu MB): open %llu us, find %llu ns cold (%.1f reads), %llu ns "
	       "warm, "
	       "%llu %% inlined, %zu bytes, main.main by name %llu us\n",
	       path, (unsigned long long)elffile_size(file) / 1000000,
	       (unsigned long long)open_ns / 1000,
	       (unsigned long long)(cost.cold_ns / cost.n_found),
	       (double)reads / (double)cost.n_found,
	       (unsigned long long)(cost.warm_ns / cost.n_found),
	       (unsigned long long)(100 * cost.n_inlined / cost.n_found), gopclntab_bytes(table),
	       (unsigned long long)name_ns / 1000);
	figure((double)cost.cold_ns / (double)cost.n_found, "ns", "%s: cold", path);
	figure((double)cost.warm_ns / (double)cost.n_found, "ns", "%s: warm", path);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"/usr/bin/containerd", "/usr/bin/runc",
					    "/usr/lib/go-1.19/bin/go", "/usr/local/go/bin/go"};
	int r = 0;

	for (int i = 1; i < argc && !r; i++)
		r = bench_file(argv[i]);
	for (size_t i = 0; argc == 1 && i < array_size(usual) && !r; i++)
		if (access(usual[i], R_OK) == 0)
			r = bench_file(usual[i]);
	return r ? 1 : 0;
}
