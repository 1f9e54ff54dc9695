// SPDX-License-Identifier: Apache-2.0
/*
 * The row oracle over many files: the named files and all files in the named folders; without
 * arguments, the machine's programs and libraries. Prints a line for each file with differences or
 * rules without a name, and a table at the end. Fails on any difference, or if more than 0.02 % of
 * the rows have no rule.
 */
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "elf/elffile.h"
#include "support/rowsoracle.h"
#include "symbolize/symtab.h"

#define OPEN_MAX_DIRS		16
#define DIFFERENCES_SHOWN	10
#define UNSUPPORTED_PER_MILLION 200

/* Files under several names, of several packages, count once. */
struct seen {
	struct {
		uint64_t device, inode;
	} key;
	UT_hash_handle hh;
};

struct all {
	struct seen *seen;
	const char *path; /* the file at hand */
	unsigned int n_shown;
	unsigned int n_files;
	unsigned int n_failed;
	struct rowsoracle_report report;
};

DEFINE_CLEANUP(struct symtab *, symtab_freep, symtab_free);

static struct all all; /* for nftw(), which has no context argument */

static void print_name(const char *path, uint64_t vaddr)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(symtab_freep) struct symtab *table = NULL;
	struct symtab_symbol symbol;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0 && elffile_open(fd, &file))
		close(fd);
	if (file && !symtab_open(file, &table) && !symtab_find(table, vaddr, &symbol))
		printf(" in %s", symbol.name);
}

static void told(void *ctx, uint64_t vaddr, const char *theirs, const char *ours)
{
	struct all *a = ctx;

	if (a->n_shown++ >= DIFFERENCES_SHOWN)
		return;
	printf("  %s: %" PRIx64, a->path, vaddr);
	print_name(a->path, vaddr);
	printf(": readelf '%s', podprof '%s'\n", theirs, ours);
}

static bool seen_before(const struct stat *st)
{
	bool hash_oom = false;
	struct seen *s = calloc(1, sizeof(*s)), *found;

	if (!s)
		return false;
	s->key.device = st->st_dev;
	s->key.inode = st->st_ino;
	HASH_FIND(hh, all.seen, &s->key, sizeof(s->key), found);
	if (!found)
		HASH_ADD(hh, all.seen, key, sizeof(s->key), s);
	if (found || hash_oom)
		free(s);
	return found != NULL;
}

static bool is_elf(const char *path)
{
	_cleanup_(fclosep) FILE *f = fopen(path, "re");
	char magic[4];

	return f && fread(magic, 1, sizeof(magic), f) == sizeof(magic) &&
	       memcmp(magic, "\177ELF", sizeof(magic)) == 0;
}

static int each_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	struct rowsoracle_report *total = &all.report, before = *total;
	int r;

	(void)ftw;
	if (type != FTW_F || !S_ISREG(st->st_mode) || st->st_size < 64 || seen_before(st) ||
	    !is_elf(path))
		return 0;
	all.path = path;
	all.n_shown = 0;
	r = rowsoracle_compare(path, told, &all, total);
	if (r == ROWSORACLE_NO_TABLES)
		return 0;
	all.n_files++;
	if (r) {
		printf("%s: cannot be compared: %s\n", path, strerror(-r));
		all.n_failed++;
	}
	if (total->different != before.different || total->skipped != before.skipped ||
	    total->overlapped != before.overlapped ||
	    rowsoracle_unsupported(total) != rowsoracle_unsupported(&before))
		printf("%s: %" PRIu64 " rows: %" PRIu64 " different, %" PRIu64
		       " unsupported, %" PRIu64 " functions overlapped, %" PRIu64 " skipped\n",
		       path, total->rows - before.rows, total->different - before.different,
		       rowsoracle_unsupported(total) - rowsoracle_unsupported(&before),
		       total->overlapped - before.overlapped, total->skipped - before.skipped);
	fflush(stdout);
	return 0;
}

static int print_table(void)
{
	const struct rowsoracle_report *r = &all.report;
	uint64_t unsupported = rowsoracle_unsupported(r);
	bool good = r->different == 0 && all.n_failed == 0 && r->rows > 0 &&
		    unsupported * 1000000 <= r->rows * UNSUPPORTED_PER_MILLION;

	printf("\nrow oracle: %u files, %.1f MB of tables, %" PRIu64 " functions (%" PRIu64
	       " overlapped, %" PRIu64 " entries skipped)\n"
	       "  rows         %12" PRIu64 "\n"
	       "  equal        %12" PRIu64 "  (stop %" PRIu64 ", signal %" PRIu64
	       ", by expression %" PRIu64 ")\n"
	       "  unsupported  %12" PRIu64 "  %.4f %%\n",
	       all.n_files, (double)r->bytes / 1e6, r->functions, r->overlapped, r->skipped,
	       r->rows, r->equal, r->stops, r->signals, r->expressions, unsupported,
	       100.0 * (double)unsupported / (double)(r->rows ? r->rows : 1));
	for (int i = 1; i < UNSUPPORTED_MAX; i++)
		if (r->unsupported[i])
			printf("    %-20s %9" PRIu64 "\n", rows_unsupported_name(i),
			       r->unsupported[i]);
	printf("  packed       %12" PRIu64 " lookups\n", r->packed);
	printf("  different    %12" PRIu64 "\n%s\n", r->different,
	       good ? "row oracle: good" : "row oracle: NOT good");
	return good ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"/usr/bin",	    "/usr/sbin",  "/usr/lib",
					    "/usr/libexec", "/usr/local", "/opt"};

	for (int i = 1; i < argc; i++)
		nftw(argv[i], each_file, OPEN_MAX_DIRS, FTW_PHYS);
	for (size_t i = 0; argc == 1 && i < array_size(usual); i++)
		if (access(usual[i], R_OK) == 0)
			nftw(usual[i], each_file, OPEN_MAX_DIRS, FTW_PHYS);
	return print_table();
}
