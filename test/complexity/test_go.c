// SPDX-License-Identifier: Apache-2.0
/* Go programs, their memory and their cores: agent/gofile and agent/goheap. */
#include "support/test.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/root.h"
#include "complexity/count.h"
#include "complexity/elf.h"
#include "complexity/growth.h"
#include "elf/elffile.h"
#include "gofile/coderefs.h"
#include "gofile/gofuncs.h"
#include "gofile/gomodule.h"
#include "gofile/gopclntab.h"
#include "gofile/goversion.h"
#include "goheap/buckets.h"
#include "goheap/corefile.h"
#include "goheap/gobss.h"
#include "goheap/gocore.h"
#include "goheap/goroutines.h"
#include "goheap/goruntime.h"
#include "goheap/gototals.h"
#include "goheap/gounpacked.h"
#include "goheap/govars.h"
#include "procmap/image.h"
#include "procmap/maps.h"
#include "support/elfworst.h"
#include "support/heapimage.h"

#define TEXT ELFWORST_TEXT

static uint64_t gopclntab_lines(size_t n)
{
	struct gopclntab_line line;
	struct gopclntab *t;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;

	elfworst_go(&m, n, false);
	file = open_made(&m);
	before = count_now();
	assert_int_equal(gopclntab_open(file, &t), 0);
	for (size_t i = 0; i < n; i++)
		(void)gopclntab_find(t, TEXT + 16 * i + 8, &line);
	gopclntab_free(t);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* Symbols, sections and code of a file without Go's tables, searched for the runtime. */
static uint64_t goruntime_words(size_t n)
{
	static struct goruntime_file found;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;

	elfmake_init(&m, ET_EXEC, 8 * n);
	m.eh.e_shnum = 0;
	m.eh.e_shoff = 0;
	m.eh.e_shstrndx = 0;
	for (size_t i = 0; i < n; i++)
		elfmake_bytes(&m, "\xf1\xff\xff\xff\0\0\1\x08", 8);
	elfmake_segment(&m, PT_LOAD, PF_R | PF_W, TEXT, m.n - 8 * n, 8 * n);
	file = open_made(&m);
	before = count_now();
	assert_int_equal(goruntime_file_read(file, &found), GORUNTIME_NO_RUNTIME);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* ---------------------------------------------------------------- memory */

/* Reads find the same byte everywhere. */
struct flat {
	struct memory memory;
	uint8_t byte;
	uint64_t n_procs;
};

static int flat_read(struct memory *memory, const struct memory_range *ranges, size_t n,
		     size_t *ret)
{
	const struct flat *flat = container_of(memory, struct flat, memory);

	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		memset(ranges[i].to, flat->byte, ranges[i].n);
		if (ranges[i].n == 16 && flat->n_procs) /* the slice of processors */
			memcpy((uint8_t *)ranges[i].to + 8, &flat->n_procs, 8);
		*ret += ranges[i].n;
	}
	return 0;
}

static int flat_check(struct memory *memory)
{
	(void)memory;
	return 0;
}

static uint64_t gosched_procs(size_t n)
{
	struct flat flat = {.memory = {.read = flat_read, .check = flat_check}, .n_procs = n};
	struct goruntime rt = {.file = {.sched = {8, 8, 8, 8, true}}};
	struct gosched s = {.free_at = 64};
	uint64_t before = count_now(), number;

	(void)gosched_read(&rt, &flat.memory, &s, &number);
	s.free_at = 0;
	(void)gosched_read(&rt, &flat.memory, &s, &number);
	return count_now() - before;
}

/* A process with pieces of anonymous code beside each other, in a procfs of our own. */
static uint64_t gounpacked_maps(size_t n)
{
	const char stat[] = "7 (a) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 55 0 0 0\n";
	struct pid_id id = {.start_ticks = 55, .pid = 7};
	char dir[] = "/tmp/podprof-test-XXXXXX";
	struct elffile *file = NULL;
	struct root proc;
	uint64_t before;
	int fd, r;
	FILE *out;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(root_open(dir, &proc), 0);
	assert_int_equal(mkdirat(proc.fd, "7", 0700), 0);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = {"7/stat", "7/mem", "7/maps"};

		fd = openat(proc.fd, names[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		out = fdopen(fd, "we");
		assert_non_null(out);
		if (i == 0)
			fputs(stat, out);
		for (size_t k = 0; i == 2 && k < n; k++)
			fprintf(out, "%zx-%zx rwxp 00000000 00:00 0\n", (k + 1) << 20,
				(k + 2) << 20);
		assert_int_equal(fclose(out), 0);
	}
	before = count_now();
	r = gounpacked_open(&proc, &id, EM_X86_64, &file);
	before = count_now() - before;
	assert_int_equal(r, GORUNTIME_OK);
	elffile_free(file);
	for (size_t i = 0; i < 3; i++)
		(void)unlinkat(proc.fd, (const char *[]){"7/stat", "7/mem", "7/maps"}[i], 0);
	assert_int_equal(unlinkat(proc.fd, "7", AT_REMOVEDIR), 0);
	assert_int_equal(rmdir(dir), 0);
	root_deinit(&proc);
	return before;
}

/* A core of @n mappings, the last one first, of a file each: its number behind @prefix. */
static uint8_t *make_core(size_t n, const char *prefix, size_t *ret_n)
{
	const size_t n_path = strlen(prefix) + 9;
	const size_t n_desc = 16 + (24 + n_path) * n, n_notes = 20 + n_desc;
	const size_t size = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr) + (n + 1) * sizeof(Elf64_Phdr);
	const size_t notes_off = size + 64;
	uint8_t *bytes = calloc(1, notes_off + n_notes + 64), *note;
	Elf64_Ehdr eh = {.e_type = ET_CORE,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = (uint16_t)(n + 1),
			 .e_phoff = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr)};
	const uint32_t head[3] = {5, (uint32_t)n_desc, NT_FILE};
	const uint64_t counts[2] = {n, 4096};

	assert_non_null(bytes);
	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(bytes, &eh, sizeof(eh));
	for (size_t i = 0; i <= n; i++) {
		Elf64_Phdr ph = {.p_type = PT_LOAD,
				 .p_flags = PF_R | PF_X,
				 .p_vaddr = 4096 * (n - i),
				 .p_offset = size,
				 .p_filesz = 64,
				 .p_memsz = 4096};

		if (i == n)
			ph = (Elf64_Phdr){
				.p_type = PT_NOTE, .p_offset = notes_off, .p_filesz = n_notes};
		memcpy(bytes + eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph));
	}
	note = bytes + notes_off;
	memcpy(note, head, sizeof(head));
	memcpy(note + 12, "CORE", 5);
	memcpy(note + 20, counts, sizeof(counts));
	for (size_t i = 0; i < n; i++) {
		const uint64_t mapping[3] = {4096 * (i + 1), 4096 * (i + 2), 0};
		char *path = (char *)note + 36 + 24 * n + n_path * i;

		memcpy(note + 36 + 24 * i, mapping, sizeof(mapping));
		snprintf(path, n_path, "%s%08zx", prefix, i);
	}
	*ret_n = notes_off + n_notes + 64;
	return bytes;
}

/* Each mapping is read. */
static uint64_t corefile_mappings_of(size_t n)
{
	struct corefile *core;
	uint64_t before;
	uint8_t got[16];
	size_t size;
	uint8_t *bytes = make_core(n, "", &size);

	before = count_now();
	assert_int_equal(corefile_open_memory(bytes, size, &core), 0);
	for (size_t i = 0; i < n; i++)
		(void)memory_read(corefile_memory(core), 4096 * (i + 1), got, sizeof(got));
	corefile_free(core);
	before = count_now() - before;
	free(bytes);
	return before;
}

/* Files with long names that differ at the end. Each is missing, and each address is asked for. */
static uint64_t gocore_files(size_t n)
{
	char prefix[200] = "";
	struct root root;
	struct gocore_opts opts = {.fd = memfd_create("core", MFD_CLOEXEC), .sysroot = &root};
	struct gocore *core;
	struct frame frame;
	uint64_t before;
	size_t size;
	uint8_t *bytes;

	memset(prefix, 'a', sizeof(prefix) - 1);
	bytes = make_core(n, prefix, &size);
	assert_int_equal(root_open("/proc/self/task", &root), 0);
	assert_true(opts.fd >= 0);
	assert_int_equal(write(opts.fd, bytes, size), size);
	before = count_now();
	assert_int_equal(gocore_open(&opts, &core), 0);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(gocore_resolve(core, 4096 * (i + 1), &frame), 0);
		assert_string_equal(image_name(frame.image) + sizeof(prefix) - 1,
				    gocore_file(core, i, &(enum gocore_file_state){0}) +
					    sizeof(prefix) - 1);
		image_unref(frame.image);
	}
	gocore_free(core);
	before = count_now() - before;
	close(opts.fd);
	root_deinit(&root);
	free(bytes);
	return before;
}

/* ---------------------------------------------------------------- records */

#define MODULE	0x600000ull
#define VARS	0x700000ull
#define RECORDS 0x7f0000000000ull

/* Records of the kind @typ with @n_pcs each. Returns the newest, which is the last. */
static uint64_t put_records(struct heapimage *image, size_t n, size_t n_pcs, uint64_t typ,
			    uint64_t (*pc)(size_t i))
{
	const size_t bytes = BUCKETS_HEADER_BYTES + 8 * n_pcs + 16;
	uint64_t *pcs = calloc(n_pcs, sizeof(*pcs)), newest = 0;

	assert_non_null(pcs);
	heapimage_map(image, RECORDS, n * bytes);
	for (size_t i = 0; i < n; i++) {
		const uint64_t addr = RECORDS + i * bytes;

		for (size_t k = 0; k < n_pcs; k++)
			pcs[k] = pc(i * n_pcs + k);
		const uint64_t head[] = {0, newest, typ, bucket_hash(pcs, n_pcs, 0), 0, n_pcs};

		heapimage_write(image, addr, head, sizeof(head));
		heapimage_write(image, addr + sizeof(head), pcs, n_pcs * sizeof(*pcs));
		newest = addr;
	}
	free(pcs);
	return newest;
}

/* The first read, and a second one of all counters. */
static uint64_t run_buckets(size_t n, size_t n_pcs, uint64_t (*pc)(size_t i))
{
	size_t budget = SIZE_MAX;
	struct heapimage image;
	uint64_t before, head;
	struct buckets b;

	heapimage_init(&image);
	head = put_records(&image, n, n_pcs, BUCKETS_MUTEX, pc);
	buckets_init(&b, BUCKETS_MUTEX, (size_t)1 << 30);
	before = count_now();
	assert_int_equal(buckets_update(&b, &image.memory, head, 26, &budget), 0);
	assert_int_equal(buckets_refresh(&b, &image.memory, b.n, &budget), 0);
	before = count_now() - before;
	assert_int_equal(b.n, n);
	buckets_deinit(&b);
	heapimage_deinit(&image);
	return before;
}

static uint64_t high_pc(size_t i)
{
	return (uint64_t)i << 50;
}

static uint64_t page_pc(size_t i)
{
	return (uint64_t)i << 12;
}

/* A multiplication moves the bits of a PC only upwards. */
static uint64_t buckets_high_bits(size_t n)
{
	return run_buckets(n, 1, high_pc);
}

/* No PC twice. */
static uint64_t buckets_long(size_t n)
{
	return run_buckets(n, 256, page_pc);
}

/* Words of .bss that point to one record, the largest, with a wrong hash. */
static uint64_t gobss_words(size_t n)
{
	struct goruntime rt = {.file.data = MODULE};
	struct maps maps = {.n = 0};
	struct heapimage image;
	uint64_t before, found;
	char text[200];

	heapimage_init(&image);
	heapimage_map(&image, MODULE, 4096);
	heapimage_map(&image, VARS, 8 * n);
	heapimage_u64(&image, MODULE + 224, VARS);
	heapimage_u64(&image, MODULE + 232, VARS + 8 * n);
	heapimage_map(&image, RECORDS, 16384);
	heapimage_write(&image, RECORDS,
			(const uint64_t[]){0, 0, BUCKETS_MEMORY, 1, 64, BUCKETS_PCS_MAX}, 48);
	for (size_t i = 0; i < n; i++)
		heapimage_u64(&image, VARS + 8 * i, RECORDS);
	snprintf(text, sizeof(text), "%llx-%llx rw-p 0 0:0 0\n%llx-%llx rw-p 0 0:0 0\n", MODULE,
		 VARS + 8ull * n, RECORDS, RECORDS + 16384);
	assert_int_equal(maps_parse(text, strlen(text), &maps), 0);
	before = count_now();
	assert_int_equal(gobss_find(&rt, &image.memory, &maps, &found), GOBSS_AMBIGUOUS);
	before = count_now() - before;
	maps_deinit(&maps);
	heapimage_deinit(&image);
	return before;
}

static int see_goroutine(void *ctx, const struct goroutine *g)
{
	(void)g;
	++*(size_t *)ctx;
	return 0;
}

/* All pointers lead to one description, with the longest stack. */
static uint64_t goroutines_one(size_t n)
{
	const uint64_t stack = RECORDS + 65536;
	struct goruntime rt = {.file.version = "go1.26.1"};
	const struct goversion_g *g = &goversion_find(26)->g;
	struct goroutines_stats stats;
	struct heapimage image;
	uint64_t before;
	size_t seen = 0;

	heapimage_init(&image);
	heapimage_map(&image, VARS, 24 + 8 * n);
	heapimage_u64(&image, VARS, VARS + 24);
	heapimage_u64(&image, VARS + 8, n);
	heapimage_u64(&image, VARS + 16, n);
	for (size_t i = 0; i < n; i++)
		heapimage_u64(&image, VARS + 24 + 8 * i, RECORDS);
	heapimage_map(&image, RECORDS, 65536 + GOROUTINES_STACK_MAX);
	heapimage_u64(&image, RECORDS, stack);
	heapimage_u64(&image, RECORDS + 8, stack + GOROUTINES_STACK_MAX);
	heapimage_u64(&image, RECORDS + 56, stack);
	heapimage_u64(&image, RECORDS + 64, 0x401000);
	heapimage_u64(&image, RECORDS + g->id, 1);
	heapimage_u64(&image, RECORDS + g->status, GOROUTINE_WAITING);
	heapimage_u64(&image, RECORDS + g->start_pc, 0x401000);
	rt.file.vars[GORUNTIME_ALLGS] = (struct goruntime_place){VARS, GORUNTIME_FROM_CODE, ""};
	before = count_now();
	assert_int_equal(goroutines_read(&rt, &image.memory, see_goroutine, &seen, &stats), 0);
	before = count_now() - before;
	assert_int_equal(seen + stats.n_left_out, n);
	heapimage_deinit(&image);
	return before;
}

/* ---------------------------------------------------------------- variables */

/* Offsets in Go's tables. */
enum { GO_NAMES = 72, GO_CUS = 96, GO_FILES = 104, GO_PCS = 112, GO_FUNCS = 128, GO_BYTES = 256 };

/* Go's tables with the one function @name of @n_code bytes. */
static void put_gotable(struct elfmake *m, const char *name, size_t n_code)
{
	const uint64_t words[] = {1, 1, TEXT, GO_NAMES, GO_CUS, GO_FILES, GO_PCS, GO_FUNCS};
	const uint32_t entries[] = {0, 16, (uint32_t)n_code, 0};
	uint8_t t[GO_BYTES] = "\xf1\xff\xff\xff\0\0\1\x08";
	size_t off;

	memcpy(t + 8, words, sizeof(words));
	memcpy(t + GO_NAMES, name, strlen(name));
	memcpy(t + GO_FUNCS, entries, sizeof(entries));
	off = elfmake_bytes(m, t, sizeof(t));
	elfmake_section(m, ".gopclntab", SHT_PROGBITS, SHF_ALLOC, 0x40000000, off, sizeof(t));
	elfmake_segment(m, PT_LOAD, PF_R, 0x40000000, off, sizeof(t));
}

/* A function that loads variables one behind the other, as parts of slices, each in a segment of
 * its own, the last one first. */
static uint64_t govars_refs(size_t n)
{
	const uint64_t data = TEXT + 0x100000;
	const size_t n_code = 7 * n;
	struct gomodule module;
	struct govars found;
	struct elffile *file;
	struct elfmake m;
	uint64_t before;
	size_t code;

	elfmake_init(&m, ET_EXEC, n_code + GO_BYTES + 8 * n);
	code = elfmake_bytes(&m, NULL, n_code);
	for (size_t i = 0; i < n; i++) {
		const int32_t distance = (int32_t)(data + 8 * i - (TEXT + 7 * i + 7));

		memcpy(m.data + code + 7 * i, "\x48\x8b\x05", 3); /* mov data(%rip), %rax */
		memcpy(m.data + code + 7 * i + 3, &distance, sizeof(distance));
	}
	elfmake_segment(&m, PT_LOAD, PF_R | PF_X, TEXT, code, n_code);
	put_gotable(&m, "runtime.allgadd", n_code);
	for (size_t i = n; i-- > 0;)
		elfmake_segment(&m, PT_LOAD, PF_R | PF_W, data + 8 * i, code, 8);
	file = open_made(&m);
	assert_int_equal(gomodule_find(file, &module), 0);
	before = count_now();
	assert_int_equal(govars_find(file, &module, &found), 0);
	before = count_now() - before;
	assert_true(!found.allgs); /* nothing is stored */
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* Go's names, none of which is wanted; all begin alike. */
static uint64_t gofuncs_names(size_t n)
{
	static const char wanted[] = "runtime.mProf_FlushLockee";
	const char *const names[] = {"runtime.mProf_FlushLocked", "runtime.mProf_Free"};
	struct gofuncs_one found[array_size(names)];
	struct gomodule module = {.cus = n * sizeof(wanted), .funcs = n * sizeof(wanted)};
	struct elffile *file;
	struct elfmake m;
	uint64_t before;

	elfmake_init(&m, ET_EXEC, n * sizeof(wanted));
	module.off = elfmake_bytes(&m, NULL, n * sizeof(wanted));
	module.size = n * sizeof(wanted);
	for (size_t i = 0; i < n; i++)
		memcpy(m.data + module.off + i * sizeof(wanted), wanted, sizeof(wanted));
	file = open_made(&m);
	before = count_now();
	(void)gofuncs_find(file, &module, names, array_size(names), found);
	before = count_now() - before;
	elffile_free(file);
	elfmake_deinit(&m);
	return before;
}

/* Each instruction has a reference. */
static uint64_t coderefs_all(size_t n)
{
	uint8_t *code = calloc(n, 7);
	struct coderef *refs = calloc(n, sizeof(*refs));
	uint64_t before;

	assert_true(code && refs);
	for (size_t i = 0; i < n; i++)
		memcpy(code + 7 * i, "\x48\x8b\x05", 3);
	before = count_now();
	assert_int_equal(coderefs_find(EM_X86_64, code, 7 * n, TEXT, refs, n), n);
	before = count_now() - before;
	free(code);
	free(refs);
	return before;
}

static const struct growth rows[] = {
	{"gopclntab: functions with one table", gopclntab_lines, 1024, GROWS},
	{"goruntime_file: words like a table's head", goruntime_words, 8192, GROWS},
	{"gosched: processors", gosched_procs, 128, GROWS},
	{"gounpacked: anonymous mappings", gounpacked_maps, 1024, GROWS},
	{"corefile: mappings", corefile_mappings_of, 2048, GROWS},
	{"gocore: files", gocore_files, 128, GROWS},
	{"buckets: PCs that differ in high bits", buckets_high_bits, 1024, GROWS},
	{"buckets: long stacks", buckets_long, 64, GROWS},
	{"gobss: words that point to one record", gobss_words, 2048, ENDS},
	{"goroutines: one description", goroutines_one, 1 << 15, ENDS},
	{"govars: references and segments", govars_refs, 64, GROWS},
	{"gofuncs: names that begin alike", gofuncs_names, 4096, GROWS},
	{"coderefs: references only", coderefs_all, 2048, GROWS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
