// SPDX-License-Identifier: Apache-2.0
/*
 * Writes an ELF file that is the worst input of one parser, at the sizes of a real attack:
 *
 *	worstfile KIND FILE
 *
 * The first executable segment has room for code (attack.c puts some there).
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "support/elfworst.h"
#include "support/test.h"

/* More than a file has, so it is made larger: in holes, without disk space. */
#define ENDLESS (8ll << 40)

static void name(struct elfmake *m)
{
	elfworst_one_name(m, 699000); /* of 16 MiB */
}

static void labels(struct elfmake *m)
{
	elfworst_labels(m, 1 << 20);
}

static void segments(struct elfmake *m)
{
	elfworst_segments(m, 1169, 16 << 20);
}

static void nested(struct elfmake *m)
{
	elfworst_fdes(m, 400000, elfworst_fill_nested, 800000);
}

/* More code than a table is waited for. */
static void growing(struct elfmake *m)
{
	elfworst_fdes(m, 160000, elfworst_fill_growing, 32 * 160000);
	elfworst_index(m, 160000);
}

static void go(struct elfmake *m)
{
	elfworst_go(m, 300000, true);
}

/* Each word looks like the begin of Go's line table. Without sections all words are looked at. */
static void words(struct elfmake *m)
{
	static const uint8_t word[] = {0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8};
	const size_t n = 32 << 20;

	elfworst_segments(m, 1, n);
	for (size_t i = 0; i < n; i += sizeof(word))
		memcpy(m->data + m->n - n + i, word, sizeof(word));
	m->eh.e_shnum = m->eh.e_shstrndx = 0;
	m->eh.e_shoff = 0;
}

/* A page of code, and a segment of writable data of 8 TiB. */
static void sparse(struct elfmake *m)
{
	elfworst_segments(m, 1, 4096);
	m->ph[1].p_filesz = m->ph[1].p_memsz = ENDLESS - m->n;
}

/* One FDE, in a .debug_frame of 8 TiB. */
static void endless(struct elfmake *m)
{
	static const uint8_t frames[] = {20, 0,	   0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 1, 0x78,
					 16, 0x0c, 7, 8, 0x90, 1,    0,	   0,	 0, 0, 0, 0};
	size_t off;

	elfworst_segments(m, 1, 4096);
	off = m->n - sizeof(frames);
	memcpy(m->data + off, frames, sizeof(frames));
	elfmake_section(m, ".debug_frame", SHT_PROGBITS, 0, 0, off, ENDLESS - off);
}

/* Headers that promise more than any file has. */
static void lying(struct elfmake *m)
{
	elfworst_segments(m, 1, 4096);
	m->eh.e_shoff = ENDLESS / 2;
	m->eh.e_shnum = 0; /* "see the first section", which is zeros */
	m->eh.e_shstrndx = SHN_XINDEX;
}

static const struct {
	const char *kind;
	void (*make)(struct elfmake *m);
	bool is_endless;
} kinds[] = {
	{"name", name, false},	    {"labels", labels, false}, {"segments", segments, false},
	{"nested", nested, false},  {"go", go, false},	       {"sparse", sparse, true},
	{"endless", endless, true}, {"lying", lying, true},    {"growing", growing, false},
	{"words", words, false},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < array_size(kinds); i++) {
		struct elfmake m;
		ssize_t written;
		int fd;

		if (strcmp(argv[1], kinds[i].kind) != 0)
			continue;
		kinds[i].make(&m);
		elfmake_finish(&m);
		fd = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
		written = fd < 0 ? -1 : write(fd, m.data, m.n);
		if (written != (ssize_t)m.n ||
		    (kinds[i].is_endless && ftruncate(fd, ENDLESS) < 0)) {
			perror(argv[2]);
			return 1;
		}
		elfmake_deinit(&m);
		return 0;
	}
	fputs("usage: worstfile KIND FILE\n", stderr);
	return 2;
}
