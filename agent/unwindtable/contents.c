// SPDX-License-Identifier: Apache-2.0
/*
 * Why not by the build id alone: it is what a file says of itself. One that was changed afterwards
 * (its sections moved, its tables taken out) has the build id that it had before, some have none,
 * and one in a hostile container can have that of everybody's C library. So the bytes that rows are
 * made of are what tells files apart, the build id is a few bytes more.
 *
 * Which bytes those are: everything that is mapped (code, .eh_frame, Go's tables), and of the rest
 * the sections that rows are made of. It is more than most images' rows need; but that code is
 * looked at depends on what is found in it.
 */
#include "unwindtable/contents.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

/* Read at a time. */
#define PIECE ((size_t)256 << 10)

struct reading {
	const struct elffile *file;
	struct digest digest;
	uint8_t *buf; /* PIECE bytes */
};

/* What lies behind the file's end is not there for those who make rows, either. */
static int add_bytes(struct reading *r, uint64_t off, uint64_t size)
{
	uint64_t end = elffile_size(r->file);
	int err = 0;

	off = off < end ? off : end;
	size = size < end - off ? size : end - off;
	while (!err && size) {
		size_t n = size < PIECE ? (size_t)size : PIECE;

		err = elffile_read(r->file, off, r->buf, n);
		if (!err)
			digest_add(&r->digest, r->buf, n);
		off += n;
		size -= n;
	}
	return err;
}

static void add_headers(struct reading *r)
{
	const struct elffile_segment *segments;
	uint8_t build_id[ELFFILE_BUILD_ID_MAX];
	struct elffile_segment hdr = {0};
	size_t n, n_id = 0;

	digest_u64(&r->digest, elffile_machine(r->file));
	digest_u64(&r->digest, elffile_type(r->file));
	digest_u64(&r->digest, elffile_entry(r->file));
	digest_u64(&r->digest, elffile_size(r->file));
	segments = elffile_segments(r->file, &n);
	digest_u64(&r->digest, n);
	for (size_t i = 0; i < n; i++) {
		const struct elffile_segment *s = &segments[i];

		digest_u64(&r->digest, s->vaddr);
		digest_u64(&r->digest, s->memsz);
		digest_u64(&r->digest, s->off);
		digest_u64(&r->digest, s->filesz);
		digest_u64(&r->digest, s->flags);
	}
	(void)elffile_eh_frame_hdr(r->file, &hdr);
	digest_u64(&r->digest, hdr.vaddr);
	if (!elffile_build_id(r->file, build_id, &n_id))
		digest_add(&r->digest, build_id, n_id);
}

/* Where it is, and what is in it: a section need not be where it is mapped. */
static int add_section(struct reading *r, const char *name)
{
	struct elffile_section s;

	if (elffile_section(r->file, name, &s)) {
		digest_u64(&r->digest, 0);
		return 0;
	}
	digest_u64(&r->digest, s.type);
	digest_u64(&r->digest, s.flags);
	digest_u64(&r->digest, s.vaddr);
	digest_u64(&r->digest, s.off);
	digest_u64(&r->digest, s.size);
	return s.type == SHT_NOBITS ? 0 : add_bytes(r, s.off, s.size);
}

/* Those that are looked for by name. */
static int add_sections(struct reading *r)
{
	static const char *const names[] = {
		".eh_frame",	 ".debug_frame", ".symtab",
		".strtab",	 ".dynsym",	 ".rela.dyn",
		".interp",	 ".gopclntab",	 ".data.rel.ro.gopclntab",
		".go.buildinfo",
	};
	int err = 0;

	for (size_t i = 0; !err && i < array_size(names); i++)
		err = add_section(r, names[i]);
	return err;
}

static int add_mapped(struct reading *r)
{
	const struct elffile_segment *segments;
	int err = 0;
	size_t n;

	segments = elffile_segments(r->file, &n);
	for (size_t i = 0; i < n && !err; i++)
		err = add_bytes(r, segments[i].off, segments[i].filesz);
	return err;
}

int contents_digest(const struct elffile *file, const struct digest_key *key, uint64_t *ret)
{
	_cleanup_(freep) uint8_t *buf = malloc(PIECE);
	struct reading r = {.file = file, .buf = buf};
	int err;

	if (!buf)
		return -ENOMEM;
	digest_init(&r.digest, key);
	add_headers(&r);
	err = add_sections(&r);
	if (!err)
		err = add_mapped(&r);
	if (!err)
		*ret = digest_end(&r.digest);
	return err;
}
