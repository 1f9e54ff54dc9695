// SPDX-License-Identifier: Apache-2.0
/*
 * The format (elf(5), core(5); fs/binfmt_elf.c of the kernel; gdb's gcore writes the same).
 *
 * A core has a PT_LOAD for each mapping: address, length, and the written bytes. Unchanged
 * mappings of files have no bytes, or only the first page, according to /proc/PID/coredump_filter.
 * One PT_NOTE has notes of the process; one is used here:
 *
 *  NT_FILE  count, page size, count x {start, end, offset in pages}, then the paths
 *
 * More than 65,534 program headers are counted in the first section header.
 *
 * A core shorter than the tables require is refused: a disk was full or a limit reached, so any
 * part of the memory may be missing. All input is untrusted. Nothing is mapped, so truncation of
 * the file during a read causes no signal.
 */
#include "goheap/corefile.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/cursor.h"
#include "elf/elffile.h"

/* Program headers, one for each mapping: the kernel's default for vm.max_map_count is 65530.
 * Reached: `too_large`. */
#define COREFILE_SEGMENTS_MAX 65600
/* Bytes of notes: for each thread a note of 700 bytes and the registers, and the list of mapped
 * files, at most 4 MiB from the kernel. Reached: `too_large`. */
#define COREFILE_NOTES_MAX    (64u << 20)

#define NT_FILE_NUMBERS 24 /* bytes of a mapping in NT_FILE */

/* A PT_LOAD. */
struct segment {
	uint64_t vaddr;
	uint64_t n_bytes; /* in the core */
	uint64_t off;
	uint64_t memsz;
	uint32_t flags;
};

struct corefile {
	struct memory memory;
	int fd;		     /* or -1: */
	const uint8_t *data; /* borrowed */
	uint64_t size;
	struct segment *segments;
	size_t n_segments;
	char *notes;
	size_t n_notes;
	struct corefile_mapping *mappings;
	const struct elffile **files; /* one for each mapping, or NULL */
	size_t n_mappings;
};

DEFINE_CLEANUP(struct corefile *, corefile_freep, corefile_free);

const char *corefile_outcome_name(int outcome)
{
	static const char *const names[COREFILE_OUTCOME_MAX] = {
		[COREFILE_OK] = "ok",
		[COREFILE_NOT_CORE] = "not_core",
		[COREFILE_UNSUPPORTED] = "unsupported",
		[COREFILE_MALFORMED] = "malformed",
		[COREFILE_TRUNCATED] = "truncated",
		[COREFILE_TOO_LARGE] = "too_large",
	};

	return outcome >= 0 && outcome < COREFILE_OUTCOME_MAX ? names[outcome] : "error";
}

void corefile_free(struct corefile *core)
{
	if (!core)
		return;
	if (core->fd >= 0)
		close(core->fd);
	free(core->segments);
	free(core->notes);
	free(core->mappings);
	free(core->files);
	free(core);
}

/* ---------------------------------------------------------------- the file */

/* 0, COREFILE_TRUNCATED, -errno. */
static int read_at(const struct corefile *core, uint64_t off, void *ret, size_t n)
{
	uint8_t *to = ret;

	if (off > core->size || n > core->size - off)
		return COREFILE_TRUNCATED;
	if (core->fd < 0) {
		memcpy(to, core->data + off, n);
		return 0;
	}
	while (n > 0) {
		ssize_t got = pread(core->fd, to, n, (off_t)off);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			return COREFILE_TRUNCATED;
		to += got;
		off += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static int count_headers(const struct corefile *core, const Elf64_Ehdr *eh, size_t *ret)
{
	Elf64_Shdr first;
	int r;

	*ret = eh->e_phnum;
	if (eh->e_phnum != PN_XNUM)
		return 0;
	r = read_at(core, eh->e_shoff, &first, sizeof(first));
	if (!r)
		*ret = first.sh_info;
	return r;
}

static int check_header(const Elf64_Ehdr *eh)
{
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0)
		return COREFILE_NOT_CORE;
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_ident[EI_DATA] != ELFDATA2LSB)
		return COREFILE_UNSUPPORTED;
	if (eh->e_type != ET_CORE)
		return COREFILE_NOT_CORE;
	return eh->e_phentsize == sizeof(Elf64_Phdr) ? 0 : COREFILE_MALFORMED;
}

/* Keeps the notes of the only PT_NOTE. */
static int add_notes(struct corefile *core, const Elf64_Phdr *ph)
{
	char *notes;
	int r;

	if (core->notes)
		return COREFILE_MALFORMED;
	if (ph->p_filesz > COREFILE_NOTES_MAX)
		return COREFILE_TOO_LARGE;
	if (ph->p_filesz > core->size)
		return COREFILE_TRUNCATED;
	notes = malloc(ph->p_filesz + 1);
	if (!notes)
		return -ENOMEM;
	core->notes = notes;
	core->n_notes = ph->p_filesz;
	r = read_at(core, ph->p_offset, notes, ph->p_filesz);
	notes[ph->p_filesz] = '\0';
	return r;
}

static int add_segment(struct corefile *core, const Elf64_Phdr *ph)
{
	uint64_t end;

	if (__builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &end) || ph->p_filesz > ph->p_memsz)
		return COREFILE_MALFORMED;
	if (ph->p_filesz && (ph->p_offset > core->size || ph->p_filesz > core->size - ph->p_offset))
		return COREFILE_TRUNCATED;
	core->segments[core->n_segments++] = (struct segment){
		.vaddr = ph->p_vaddr,
		.n_bytes = ph->p_filesz,
		.off = ph->p_offset,
		.memsz = ph->p_memsz,
		.flags = ph->p_flags,
	};
	return 0;
}

static int compare_segments(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int read_headers(struct corefile *core)
{
	Elf64_Ehdr eh;
	size_t n;
	int r = read_at(core, 0, &eh, sizeof(eh));

	if (r)
		return r < 0 ? r : COREFILE_NOT_CORE;
	r = check_header(&eh);
	if (!r)
		r = count_headers(core, &eh, &n);
	if (r)
		return r;
	if (n > COREFILE_SEGMENTS_MAX)
		return COREFILE_TOO_LARGE;
	core->segments = calloc(n + 1, sizeof(*core->segments));
	if (!core->segments)
		return -ENOMEM;
	for (size_t i = 0; !r && i < n; i++) {
		Elf64_Phdr ph;
		uint64_t off;

		if (__builtin_add_overflow(eh.e_phoff, i * sizeof(ph), &off))
			return COREFILE_MALFORMED;
		r = read_at(core, off, &ph, sizeof(ph));
		if (!r && ph.p_type == PT_NOTE)
			r = add_notes(core, &ph);
		if (!r && ph.p_type == PT_LOAD)
			r = add_segment(core, &ph);
	}
	if (r)
		return r;
	qsort(core->segments, core->n_segments, sizeof(*core->segments), compare_segments);
	for (size_t i = 1; i < core->n_segments; i++) {
		const struct segment *before = &core->segments[i - 1];

		if (core->segments[i].vaddr - before->vaddr < before->memsz)
			return COREFILE_MALFORMED; /* an overlap */
	}
	return 0;
}

/* ---------------------------------------------------------------- notes */

/* The segment that holds @addr, or NULL. */
static const struct segment *find_segment(const struct corefile *core, uint64_t addr)
{
	size_t low = 0, high = core->n_segments;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (core->segments[mid].vaddr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || addr - core->segments[low - 1].vaddr >= core->segments[low - 1].memsz)
		return NULL;
	return &core->segments[low - 1];
}

/* The numbers of a mapping, from @c, and its path, from @paths. */
static int take_mapping(struct corefile *core, struct cursor *c, struct cursor *paths,
			uint64_t page_bytes)
{
	struct corefile_mapping *m = &core->mappings[core->n_mappings];
	const struct segment *segment;
	uint64_t pages;

	if (!cursor_u64(c, &m->start) || !cursor_u64(c, &m->limit) || !cursor_u64(c, &pages) ||
	    !cursor_cstr(paths, &m->path) || m->limit <= m->start ||
	    __builtin_mul_overflow(pages, page_bytes, &m->offset))
		return COREFILE_MALFORMED;
	if (core->n_mappings && m->start < m[-1].limit)
		return COREFILE_MALFORMED;
	segment = find_segment(core, m->start);
	m->code = !segment || (segment->flags & PF_X);
	core->n_mappings++;
	return 0;
}

static int take_files(struct corefile *core, struct cursor *note)
{
	uint64_t n, page_bytes;
	struct cursor numbers;
	int r = 0;

	if (core->mappings || !cursor_u64(note, &n) || !cursor_u64(note, &page_bytes) ||
	    n > cursor_left(note) / NT_FILE_NUMBERS)
		return COREFILE_MALFORMED;
	if (n > COREFILE_SEGMENTS_MAX)
		return COREFILE_TOO_LARGE;
	if (!cursor_sub(note, (size_t)n * NT_FILE_NUMBERS, &numbers))
		return COREFILE_MALFORMED;
	core->mappings = calloc(n + 1, sizeof(*core->mappings));
	core->files = calloc(n + 1, sizeof(*core->files));
	if (!core->mappings || !core->files)
		return -ENOMEM;
	for (uint64_t i = 0; !r && i < n; i++)
		r = take_mapping(core, &numbers, note, page_bytes);
	return r;
}

static bool skip_padded(struct cursor *c, uint32_t n)
{
	size_t padded = ((size_t)n + 3) & ~(size_t)3;

	return cursor_skip(c, padded <= cursor_left(c) ? padded : cursor_left(c));
}

static int read_notes(struct corefile *core)
{
	struct cursor c;
	int r = 0;

	if (!core->notes)
		return COREFILE_UNSUPPORTED;
	cursor_init(&c, core->notes, core->n_notes);
	while (!r && cursor_left(&c) >= 12) {
		uint32_t n_name, n_desc, type;
		struct cursor name, desc;

		if (!cursor_u32(&c, &n_name) || !cursor_u32(&c, &n_desc) || !cursor_u32(&c, &type))
			return COREFILE_MALFORMED;
		name = c;
		if (n_name > cursor_left(&c) || !skip_padded(&c, n_name))
			return COREFILE_MALFORMED;
		desc = c;
		if (!cursor_sub(&desc, n_desc, &desc) || !skip_padded(&c, n_desc))
			return COREFILE_MALFORMED;
		if (n_name < 4 || memcmp(name.pos, "CORE", 4) != 0)
			continue;
		if (type == NT_FILE)
			r = take_files(core, &desc);
	}
	return r || core->mappings ? r : COREFILE_UNSUPPORTED;
}

/* ---------------------------------------------------------------- memory */

/* The mapping that holds @addr; n_mappings if there is none. */
static size_t find_mapping(const struct corefile *core, uint64_t addr)
{
	size_t low = 0, high = core->n_mappings;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (core->mappings[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || addr >= core->mappings[low - 1].limit)
		return core->n_mappings;
	return low - 1;
}

/* Copy bytes from the core itself, from @addr on: *@ret_n of @n bytes, 0 if the core has none
 * there. */
static int copy_segment(struct corefile *core, uint64_t addr, void *to, size_t n, size_t *ret_n)
{
	const struct segment *s = find_segment(core, addr);
	uint64_t skip;

	*ret_n = 0;
	if (!s || addr - s->vaddr >= s->n_bytes)
		return 0;
	skip = addr - s->vaddr;
	if (n > s->n_bytes - skip)
		n = (size_t)(s->n_bytes - skip);
	*ret_n = n;
	return read_at(core, s->off + skip, to, n);
}

/* Copy bytes from the file mapped there, up to the end of the mapping or of the file. */
static int copy_file(struct corefile *core, uint64_t addr, void *to, size_t n, size_t *ret_n)
{
	size_t i = find_mapping(core, addr);
	const struct corefile_mapping *m = &core->mappings[i];
	uint64_t off, size;

	*ret_n = 0;
	if (i == core->n_mappings || !core->files[i] ||
	    __builtin_add_overflow(m->offset, addr - m->start, &off))
		return 0;
	size = elffile_size(core->files[i]);
	if (off >= size)
		return 0;
	if (n > m->limit - addr)
		n = (size_t)(m->limit - addr);
	if (n > size - off)
		n = (size_t)(size - off);
	*ret_n = n;
	return elffile_read(core->files[i], off, to, n);
}

/* Copy bytes up to the first missing one. */
static int copy(struct corefile *core, const struct memory_range *range, size_t *ret)
{
	size_t done = 0;

	while (done < range->n) {
		uint64_t addr = range->addr + done;
		uint8_t *to = (uint8_t *)range->to + done;
		size_t n = 0;
		int r = copy_segment(core, addr, to, range->n - done, &n);

		if (!r && !n)
			r = copy_file(core, addr, to, range->n - done, &n);
		if (r < 0)
			return r;
		if (r || !n) /* missing, or truncated meanwhile */
			break;
		done += n;
	}
	*ret = done;
	return 0;
}

static int core_read(struct memory *m, const struct memory_range *ranges, size_t n_ranges,
		     size_t *ret)
{
	struct corefile *core = container_of(m, struct corefile, memory);
	size_t total = 0;

	for (size_t i = 0; i < n_ranges; i++) {
		size_t n = 0;
		int r = copy(core, &ranges[i], &n);

		if (r)
			return r;
		total += n;
		if (n < ranges[i].n)
			break;
	}
	*ret = total;
	return 0;
}

static int core_check(struct memory *m)
{
	(void)m;
	return 0;
}

struct memory *corefile_memory(struct corefile *core)
{
	return &core->memory;
}

/* ---------------------------------------------------------------- open */

static int open_any(int fd, const void *data, uint64_t size, struct corefile **ret)
{
	_cleanup_(corefile_freep) struct corefile *core = calloc(1, sizeof(*core));
	int r;

	if (!core)
		return -ENOMEM;
	core->memory = (struct memory){.read = core_read, .check = core_check};
	core->fd = fd;
	core->data = data;
	core->size = size;
	r = read_headers(core);
	if (!r)
		r = read_notes(core);
	if (r) {
		core->fd = -1; /* still the caller's */
		return r;
	}
	*ret = take_ptr(core);
	return 0;
}

int corefile_open(int fd, struct corefile **ret)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size < 0)
		return COREFILE_NOT_CORE;
	return open_any(fd, NULL, (uint64_t)st.st_size, ret);
}

int corefile_open_memory(const void *data, size_t n, struct corefile **ret)
{
	return open_any(-1, data, n, ret);
}

const struct corefile_mapping *corefile_mappings(const struct corefile *core, size_t *ret_n)
{
	*ret_n = core->n_mappings;
	return core->mappings;
}

void corefile_attach(struct corefile *core, size_t i, const struct elffile *file)
{
	core->files[i] = file;
}
