// SPDX-License-Identifier: Apache-2.0
#include "support/corewrite.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "procmap/maps.h"
#include "support/test.h"

#define PAGE_BYTES    4096u
#define PRPSINFO_PID  24
#define PRPSINFO_SIZE 136

struct note {
	char *bytes;
	size_t n;
};

static void put(struct note *note, const void *bytes, size_t n)
{
	note->bytes = realloc(note->bytes, note->n + n + 4);
	assert_non_null(note->bytes);
	if (n)
		memcpy(note->bytes + note->n, bytes, n);
	note->n += n;
}

static void put_u64(struct note *note, uint64_t value)
{
	put(note, &value, sizeof(value));
}

static void pad(struct note *note)
{
	put(note, "\0\0\0", (4 - note->n % 4) % 4);
}

static void put_note(struct note *to, uint32_t type, const struct note *desc)
{
	const uint32_t head[] = {5, (uint32_t)desc->n, type};

	put(to, head, sizeof(head));
	put(to, "CORE\0\0\0", 8);
	put(to, desc->bytes, desc->n);
	pad(to);
}

static void put_process(struct note *to, uint64_t pid)
{
	char info[PRPSINFO_SIZE] = {0};
	uint32_t number = (uint32_t)pid;
	struct note desc = {info, sizeof(info)};

	memcpy(info + PRPSINFO_PID, &number, sizeof(number));
	memcpy(info + 40, "recorded", 8);
	put_note(to, NT_PRPSINFO, &desc);
}

static void put_files(struct note *to, const struct maps *maps)
{
	struct note desc = {0};
	uint64_t n = 0;

	for (size_t i = 0; i < maps->n; i++)
		n += maps->items[i].kind == MAPS_FILE;
	put_u64(&desc, n);
	put_u64(&desc, PAGE_BYTES);
	for (size_t i = 0; i < maps->n; i++) {
		if (maps->items[i].kind != MAPS_FILE)
			continue;
		put_u64(&desc, maps->items[i].start);
		put_u64(&desc, maps->items[i].limit);
		put_u64(&desc, maps->items[i].offset / PAGE_BYTES);
	}
	for (size_t i = 0; i < maps->n; i++)
		if (maps->items[i].kind == MAPS_FILE)
			put(&desc, maps->items[i].path, strlen(maps->items[i].path) + 1);
	put_note(to, NT_FILE, &desc);
	free(desc.bytes);
}

/* Bytes of a mapping in the core. */
static uint64_t bytes_of(const struct maps_entry *e)
{
	if (!(e->prot & MAPS_R) || e->kind == MAPS_OTHER)
		return 0;
	if (e->kind != MAPS_FILE || (e->prot & MAPS_W))
		return e->limit - e->start;
	return e->offset == 0 ? PAGE_BYTES : 0;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Pages of zeros are holes in the file. */
static void copy_memory(int mem, int out, uint64_t addr, uint64_t n, uint64_t off)
{
	uint8_t page[PAGE_BYTES];

	for (uint64_t i = 0; i < n; i += sizeof(page)) {
		ssize_t got = pread(mem, page, sizeof(page), (off_t)(addr + i));

		if (got == (ssize_t)sizeof(page) && !is_zero(page, sizeof(page)))
			assert_int_equal(pwrite(out, page, sizeof(page), (off_t)(off + i)),
					 sizeof(page));
	}
}

static void write_headers(int out, const struct maps *maps, const struct note *notes,
			  uint64_t *ret_end, uint64_t *offs)
{
	size_t n = maps->n + 1;
	uint64_t off = sizeof(Elf64_Ehdr) + n * sizeof(Elf64_Phdr);
	Elf64_Ehdr eh = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_CORE,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(eh),
		.e_ehsize = sizeof(eh),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (uint16_t)n,
	};
	Elf64_Phdr ph = {.p_type = PT_NOTE, .p_offset = off, .p_filesz = notes->n};

	assert_true(n < PN_XNUM);
	assert_int_equal(pwrite(out, &eh, sizeof(eh), 0), sizeof(eh));
	assert_int_equal(pwrite(out, &ph, sizeof(ph), sizeof(eh)), sizeof(ph));
	assert_int_equal(pwrite(out, notes->bytes, notes->n, (off_t)off), (ssize_t)notes->n);
	off = (off + notes->n + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
	for (size_t i = 0; i < maps->n; i++) {
		const struct maps_entry *e = &maps->items[i];

		ph = (Elf64_Phdr){
			.p_type = PT_LOAD,
			.p_flags = (e->prot & MAPS_R ? PF_R : 0u) | (e->prot & MAPS_W ? PF_W : 0u) |
				   (e->prot & MAPS_X ? PF_X : 0u),
			.p_offset = off,
			.p_vaddr = e->start,
			.p_filesz = bytes_of(e),
			.p_memsz = e->limit - e->start,
		};
		assert_int_equal(
			pwrite(out, &ph, sizeof(ph), (off_t)(sizeof(eh) + (i + 1) * sizeof(ph))),
			sizeof(ph));
		offs[i] = off;
		off += ph.p_filesz;
	}
	*ret_end = off;
}

void corewrite(const struct root *proc, const struct pid_id *id, const char *path)
{
	_cleanup_(maps_deinit) struct maps maps = {0};
	_cleanup_(close_fdp) int mem = -1, out = -1;
	struct note notes = {0};
	uint64_t *offs, end;
	char name[32];

	assert_int_equal(maps_read(proc, id, &maps), 0);
	snprintf(name, sizeof(name), "%llu/mem", (unsigned long long)id->pid);
	mem = openat(proc->fd, name, O_RDONLY | O_CLOEXEC);
	out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	offs = calloc(maps.n + 1, sizeof(*offs));
	assert_true(mem >= 0 && out >= 0 && offs);
	put_process(&notes, id->pid);
	put_files(&notes, &maps);
	write_headers(out, &maps, &notes, &end, offs);
	for (size_t i = 0; i < maps.n; i++)
		copy_memory(mem, out, maps.items[i].start, bytes_of(&maps.items[i]), offs[i]);
	assert_int_equal(ftruncate(out, (off_t)end), 0);
	free(offs);
	free(notes.bytes);
}
