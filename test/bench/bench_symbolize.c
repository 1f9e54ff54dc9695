// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of names: loading and querying the symbol tables of a few large files (if present on
 * this machine, plus the arguments), the kernel's table, and the step from a pc to an image.
 *
 *	bench_symbolize --list PODPROF
 *
 * reads lines "FILE 0xVADDR..." and prints the functions in the form of addr2line -a -i -f, for
 * symbolizers.py. DWARF is read by a process of PODPROF.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/heap.h"
#include "base/nsec.h"
#include "base/line_reader.h"
#include "base/root.h"
#include "procmap/address_space.h"
#include "support/figure.h"
#include "symbolize/demangle.h"
#include "symbolize/dwarfreader.h"
#include "symbolize/ksyms.h"
#include "symbolize/symbolizer.h"
#include "symbolize/symtab.h"

#define LOOKUPS		   200000
/* Addresses of an image in a usual profile, and reports with the same ones. */
#define PLACES		   1024
#define REPORTS		   200
/* --list: addresses of a line, and what the agent keeps of symbols by default. */
#define LIST_ADDRESSES_MAX 65536
#define LIST_CACHE_BYTES   (16u << 20)
#define OUTPUT_BYTES	   (64u << 10)

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 16;
}

static double per_lookup(uint64_t start_ns, size_t n)
{
	return (double)(nsec_monotonic() - start_ns) / (double)n;
}

static void ask_table(const struct symtab *t, const struct elffile_section *text)
{
	static struct symtab_symbol symbol;
	uint64_t state = 1, start = nsec_monotonic();
	size_t n_found = 0;

	for (size_t i = 0; i < LOOKUPS; i++)
		n_found += symtab_find(t, text->vaddr + next_random(&state) % text->size,
				       &symbol) == 0;
	printf("    %.0f ns a lookup with its name, %zu of %d found\n", per_lookup(start, LOOKUPS),
	       n_found, LOOKUPS);
}

/* Like a report: tables, demangling, strings. */
static void ask_symbolizer(struct image *image, const struct elffile_section *text)
{
	struct symbolizer_opts opts = {.cache_bytes = 64u << 20};
	uint64_t state = 1, start = nsec_monotonic();
	struct symbolizer *s;
	struct symbol sym;

	if (symbolizer_new(&opts, &s))
		return;
	for (size_t i = 0; i < LOOKUPS / 10; i++) {
		struct frame frame = {.image = image,
				      .vaddr = text->vaddr + next_random(&state) % text->size};

		if (symbolizer_find(s, &frame, &sym))
			break;
	}
	printf("    %.0f ns a frame through the symbolizer, loading included; %zu bytes held\n",
	       per_lookup(start, LOOKUPS / 10), symbolizer_bytes(s));
	symbolizer_free(s);
}

static int use_symbol(void *ctx, size_t i, const struct symbol *symbol)
{
	uint64_t *n_found = ctx;

	(void)i;
	*n_found += symbol->found;
	return 0;
}

/* Later reports with the same addresses. */
static void ask_again(struct image *image, const struct elffile_section *text)
{
	struct symbolizer_opts opts = {.cache_bytes = 64u << 20, .guarded = true};
	uint64_t vaddrs[PLACES], state = 1, n_found = 0, start, cpu_start;
	struct symbolizer *s;

	if (symbolizer_new(&opts, &s))
		return;
	for (size_t i = 0; i < PLACES; i++)
		vaddrs[i] = text->vaddr + next_random(&state) % text->size;
	if (symbolizer_find_all(s, image, vaddrs, PLACES, use_symbol, &n_found))
		return;
	symbolizer_release(s);
	start = nsec_monotonic();
	cpu_start = nsec_read(CLOCK_PROCESS_CPUTIME_ID);
	for (size_t i = 0; i < REPORTS; i++) {
		if (symbolizer_find_all(s, image, vaddrs, PLACES, use_symbol, &n_found))
			return;
		symbolizer_release(s);
	}
	printf("    %.0f ns of time and %.0f ns of CPU time a frame in later reports\n",
	       per_lookup(start, PLACES * REPORTS),
	       (double)(nsec_read(CLOCK_PROCESS_CPUTIME_ID) - cpu_start) / (PLACES * REPORTS));
	figure((double)(nsec_read(CLOCK_PROCESS_CPUTIME_ID) - cpu_start) / (PLACES * REPORTS), "ns",
	       "%s: a frame in later reports", image->path);
	symbolizer_free(s);
}

static void bench_file(const char *path)
{
	int elf, fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elffile_section text;
	struct image *image;
	struct symtab *t;
	uint64_t start;

	if (fd < 0)
		return;
	if (image_new_file(fd, path, &image, &elf)) {
		close(fd);
		return;
	}
	printf("%s, %" PRIu64 " bytes\n", path, image->id.size);
	start = nsec_monotonic();
	if (image->file && elffile_section(image->file, ".text", &text) == 0 &&
	    symtab_open(image->file, &t) == 0) {
		printf("    loaded in %.2f ms: %zu bytes of symbols\n",
		       (double)(nsec_monotonic() - start) / 1e6, symtab_bytes(t));
		ask_table(t, &text);
		symtab_free(t);
	}
	if (image->file && elffile_section(image->file, ".text", &text) == 0)
		ask_symbolizer(image, &text);
	if (image->file && elffile_section(image->file, ".text", &text) == 0)
		ask_again(image, &text);
	image_unref(image);
}

static int skip_line(void *ctx, struct strview line)
{
	(void)ctx;
	(void)line;
	return 0;
}

/* CPU time in which the kernel makes the list, and its lines are found. */
static uint64_t list_ns(const struct root *proc)
{
	uint64_t start = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	_cleanup_(close_fdp) int fd = -1;
	size_t n_skipped;

	if (!root_open_file(proc, "kallsyms", &fd))
		(void)line_reader_read(fd, skip_line, NULL, &n_skipped);
	return nsec_read(CLOCK_THREAD_CPUTIME_ID) - start;
}

static void bench_kernel(const struct root *proc)
{
	uint64_t list = list_ns(proc), cpu = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	uint64_t state = 1, start = nsec_monotonic(), found_at;
	struct ksyms_name name;
	struct ksyms *k;
	int r = ksyms_load(proc, &k);

	if (r) {
		printf("kernel: %s\n", ksyms_outcome_name(r));
		return;
	}
	cpu = nsec_read(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("kernel\n    loaded in %.1f ms, CPU time %.1f ms, %.1f ms of it to read the list: "
	       "%zu "
	       "symbols, %.1f bytes each\n",
	       (double)(nsec_monotonic() - start) / 1e6, (double)cpu / 1e6, (double)list / 1e6,
	       ksyms_n(k), (double)ksyms_bytes(k) / (double)ksyms_n(k));
	figure((double)cpu / 1e6, "ms", "the kernel's names");
	figure((double)ksyms_bytes(k), "bytes", "of the kernel's names");
	start = nsec_monotonic();
	for (size_t i = 0; i < LOOKUPS; i++)
		ksyms_find(k, 0xffffffff81000000 + next_random(&state) % (16u << 20), &name,
			   &found_at);
	printf("    %.0f ns a lookup\n", per_lookup(start, LOOKUPS));
	ksyms_free(k);
}

static void bench_address_space(const struct root *proc)
{
	uint64_t start = nsec_monotonic(), pc = (uint64_t)(uintptr_t)&bench_address_space;
	struct address_space_cache *cache;
	struct frame frame;
	struct pid_id id;

	if (address_space_cache_new(proc, &cache) || pid_read(proc, getpid(), &id))
		return;
	if (address_space_cache_resolve(cache, &id, pc, &frame))
		return;
	image_unref(frame.image);
	printf("pc to image\n    first: %.0f us\n", (double)(nsec_monotonic() - start) / 1e3);
	start = nsec_monotonic();
	for (size_t i = 0; i < LOOKUPS; i++)
		if (address_space_cache_resolve(cache, &id, pc, &frame) == 0)
			image_unref(frame.image);
	printf("    then: %.0f ns\n", per_lookup(start, LOOKUPS));
	address_space_cache_free(cache);
}

/* The output of --list, whose cost is none of the names': printf() would be a third of it. */
struct output {
	const uint64_t *vaddrs;
	size_t n;
	char bytes[OUTPUT_BYTES];
};

static void flush(struct output *out)
{
	if (fwrite(out->bytes, 1, out->n, stdout) != out->n)
		exit(1);
	out->n = 0;
}

static void put(struct output *out, const char *text, size_t n)
{
	if (n > sizeof(out->bytes) - out->n)
		flush(out);
	if (n > sizeof(out->bytes))
		n = sizeof(out->bytes);
	memcpy(out->bytes + out->n, text, n);
	out->n += n;
}

static void put_number(struct output *out, uint64_t value, unsigned int base)
{
	char digits[20], *at = digits + sizeof(digits);

	do {
		*--at = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	put(out, at, (size_t)(digits + sizeof(digits) - at));
}

static int print_symbol(void *ctx, size_t i, const struct symbol *symbol)
{
	struct output *out = ctx;

	put(out, "0x", 2);
	put_number(out, out->vaddrs[i], 16);
	put(out, "\n", 1);
	for (size_t k = 0; k < symbol->n_lines; k++) {
		const struct symbol_line *line = &symbol->lines[k];
		const char *function = symbol->found ? line->function : "??";
		const char *file = line->file[0] ? line->file : "??";

		put(out, function, strlen(function));
		put(out, "\n", 1);
		put(out, file, strlen(file));
		put(out, ":", 1);
		put_number(out, line->line, 10);
		put(out, "\n", 1);
	}
	return 0;
}

/* The next of the numbers in @text, "0xNUMBER" in lower case. False at the end. */
static bool next_vaddr(const char **text, uint64_t *ret)
{
	const char *at = *text;

	while (*at == ' ')
		at++;
	if (strncmp(at, "0x", 2) != 0)
		return false;
	*ret = 0;
	for (at += 2; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
		*ret = *ret << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
	*text = at;
	return true;
}

/* "FILE 0xVADDR...". */
static int list_file(struct symbolizer *s, char *line)
{
	static uint64_t vaddrs[LIST_ADDRESSES_MAX];
	static struct output out;
	char *rest = NULL, *path = strtok_r(line, " \n", &rest);
	const char *numbers = rest;
	struct image *image;
	size_t n = 0;
	int elf, r, fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0)
		return -1;
	r = image_new_file(fd, path, &image, &elf);
	if (r) {
		close(fd);
		return r;
	}
	while (n < array_size(vaddrs) && next_vaddr(&numbers, &vaddrs[n]))
		n++;
	out.vaddrs = vaddrs;
	r = symbolizer_find_all(s, image, vaddrs, n, print_symbol, &out);
	flush(&out);
	symbolizer_release(s);
	image_unref(image);
	return r;
}

static int list(const char *program)
{
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;
	const struct dwarfreader_opts dwarf = {.program = program};
	struct symbolizer_opts opts = {
		.proc = &proc, .cache_bytes = LIST_CACHE_BYTES, .guarded = true, .dwarf = &dwarf};
	struct symbolizer *s;
	char *line = NULL;
	size_t cap = 0;
	int r = 0;

	heap_keep_little();
	if (root_open("/proc", &proc) || symbolizer_new(&opts, &s))
		return 1;
	while (!r && getline(&line, &cap, stdin) > 0)
		r = list_file(s, line);
	free(line);
	symbolizer_free(s);
	return r != 0;
}

int main(int argc, char **argv)
{
	static const char *const paths[] = {
		"/proc/self/exe",
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
		"/usr/lib/x86_64-linux-gnu/libLLVM-19.so.1",
		"/usr/local/go/bin/go",
	};
	_cleanup_(root_deinit) struct root proc = ROOT_INIT;

	if (argc == 3 && strcmp(argv[1], "--list") == 0)
		return list(argv[2]);
	for (size_t i = 0; i < array_size(paths); i++)
		bench_file(paths[i]);
	for (int i = 1; i < argc; i++)
		bench_file(argv[i]);
	if (root_open("/proc", &proc))
		return 1;
	bench_kernel(&proc);
	bench_address_space(&proc);
	return 0;
}
