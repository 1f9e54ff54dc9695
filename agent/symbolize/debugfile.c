// SPDX-License-Identifier: Apache-2.0
#include "symbolize/debugfile.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/root.h"
#include "elf/elffile.h"
#include "symbolize/debuginfod.h"
#include "symbolize/source.h"

/* Bytes of .gnu_debuglink: a file name, padding, a checksum. Reached: no name. */
#define DEBUGLINK_MAX  (NAME_MAX + 8u)
/* Bytes of a file whose checksum is computed: 4 GiB/s where the CPU has the instruction. Files of
 * today have build ids. Reached: no name. */
#define CHECKSUM_MAX   ((uint64_t)256 << 20)
/* Bytes of .gnu_debugaltlink: a path and a build id. Reached: no alternate file. */
#define ALTLINK_MAX    (PATH_MAX + ELFFILE_BUILD_ID_MAX)
#define CHECKSUM_PIECE ((size_t)128 << 10)

static const char debug_dir[] = "/usr/lib/debug";

struct link {
	char name[NAME_MAX + 1]; /* "": the program has none */
	uint32_t checksum;
};

/* ---------------------------------------------------------------- the right file? */

static bool has_build_id(const struct elffile *file, const char *build_id)
{
	char text[ELFFILE_BUILD_ID_TEXT];

	elffile_build_id_text(file, text);
	return strcmp(text, build_id) == 0;
}

/* @of's budget pays for the bytes. 0, DEBUGFILE_OTHER or -ENOMEM. */
static int check_checksum(const struct source_file *of, const struct elffile *file,
			  uint32_t checksum)
{
	_cleanup_(freep) uint8_t *piece = malloc(CHECKSUM_PIECE);
	uint64_t size = elffile_size(file);
	uLong sum = crc32(0, NULL, 0);

	if (!piece)
		return -ENOMEM;
	if (size > CHECKSUM_MAX)
		return DEBUGFILE_OTHER;
	for (uint64_t off = 0; off < size; off += CHECKSUM_PIECE) {
		size_t n = size - off < CHECKSUM_PIECE ? (size_t)(size - off) : CHECKSUM_PIECE;

		if (!elffile_spend(of->elf, n) || elffile_read(file, off, piece, n))
			return DEBUGFILE_OTHER;
		sum = crc32(sum, piece, (uInt)n);
	}
	return sum == checksum ? 0 : DEBUGFILE_OTHER;
}

static int check(const struct source_file *of, const struct link *link, const struct elffile *file)
{
	if (elffile_machine(file) != elffile_machine(of->elf))
		return DEBUGFILE_OTHER;
	if (of->build_id[0])
		return has_build_id(file, of->build_id) ? 0 : DEBUGFILE_OTHER;
	return check_checksum(of, file, link->checksum);
}

/* Takes @fd. */
static int open_checked(const struct source_file *of, const struct link *link, int fd,
			struct elffile **ret)
{
	struct elffile *file;
	int r = elffile_open(fd, &file);

	if (r) {
		close(fd);
		return r == -ENOMEM ? r : DEBUGFILE_OTHER;
	}
	r = check(of, link, file);
	if (r)
		elffile_free(file);
	else
		*ret = file;
	return r;
}

/* ---------------------------------------------------------------- the places */

static int try_path(const struct source_file *of, const struct root *root, const struct link *link,
		    const char *path, struct elffile **ret)
{
	int fd;

	if (root_open_inside(root, path + 1, &fd))
		return DEBUGFILE_ABSENT;
	return open_checked(of, link, fd, ret);
}

static int try_build_id(const struct source_file *of, const struct root *root,
			const struct link *link, struct elffile **ret)
{
	char path[sizeof(debug_dir) + sizeof("/.build-id//.debug") + 2ul * ELFFILE_BUILD_ID_MAX];

	if (strlen(of->build_id) < 4)
		return DEBUGFILE_ABSENT;
	snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", debug_dir, of->build_id,
		 of->build_id + 2);
	return try_path(of, root, link, path, ret);
}

static int try_link(const struct source_file *of, const struct root *root, const struct link *link,
		    struct elffile **ret)
{
	static const char *const formats[] = {"%s%.*s/%s", "%s%.*s/.debug/%s", "%s%.*s/%s"};
	const char *slash = strrchr(of->path, '/');
	int result = DEBUGFILE_ABSENT;

	if (!link->name[0] || of->path[0] != '/')
		return DEBUGFILE_ABSENT;
	for (size_t i = 0; i < array_size(formats); i++) {
		const char *top = i == array_size(formats) - 1 ? debug_dir : "";
		char path[PATH_MAX];
		int r, n = snprintf(path, sizeof(path), formats[i], top, (int)(slash - of->path),
				    of->path, link->name);

		if (n < 0 || (size_t)n >= sizeof(path))
			continue;
		r = try_path(of, root, link, path, ret);
		if (!r || r < 0)
			return r;
		if (r == DEBUGFILE_OTHER)
			result = r;
	}
	return result;
}

/* Below the root of process @pid. @alternate: its path; NULL: the debug file. */
static int try_root(const struct source_file *of, uint64_t pid, const struct link *link,
		    const char *alternate, struct elffile **ret)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	int by_id, by_link;

	if (pid_open_root(of->proc, pid, &root))
		return DEBUGFILE_ABSENT;
	by_id = try_build_id(of, &root, link, ret);
	if (by_id <= 0)
		return by_id;
	by_link = alternate ? try_path(of, &root, link, alternate, ret)
			    : try_link(of, &root, link, ret);
	return by_link == DEBUGFILE_ABSENT ? by_id : by_link;
}

/* ---------------------------------------------------------------- the file */

/* A name without a directory, zeros to a multiple of four bytes, the checksum. */
static void read_link(const struct elffile *file, struct link *ret)
{
	struct elffile_section section;
	char bytes[DEBUGLINK_MAX];
	size_t n, end;

	ret->name[0] = '\0';
	if (elffile_section(file, ".gnu_debuglink", &section) || section.size > sizeof(bytes) ||
	    elffile_read(file, section.off, bytes, (size_t)section.size))
		return;
	n = strnlen(bytes, (size_t)section.size);
	end = (n + 4) & ~(size_t)3;
	if (!n || n > NAME_MAX || end + sizeof(ret->checksum) > section.size ||
	    memchr(bytes, '/', n))
		return;
	memcpy(&ret->checksum, bytes + end, sizeof(ret->checksum));
	memcpy(ret->name, bytes, n + 1);
}

static int try_roots(const struct source_file *of, const struct link *link, const char *alternate,
		     struct elffile **ret)
{
	/* the last is the agent's, and the host's, too, for an agent that is no container */
	const uint64_t pids[] = {of->pid.pid, 1, 0};
	const bool lives = of->pid.pid && pid_check(of->proc, &of->pid) == 0;
	int result = DEBUGFILE_ABSENT;

	for (size_t i = lives ? 0 : 1; i < array_size(pids); i++) {
		int r = try_root(of, pids[i], link, alternate, ret);

		if (r <= 0)
			return r;
		if (r == DEBUGFILE_OTHER)
			result = r;
	}
	return result;
}

/* Below the roots. */
static int open_on_disk(const struct source_file *of, struct elffile **ret)
{
	struct link link;

	if (!of->proc)
		return DEBUGFILE_ABSENT;
	read_link(of->elf, &link);
	if (!of->build_id[0] && !link.name[0])
		return DEBUGFILE_ABSENT;
	return try_roots(of, &link, NULL, ret);
}

void debugfile_deinit(struct debugfile *debug)
{
	elffile_free(debug->file);
	*debug = (struct debugfile){0};
}

/* Go's own table has all that a debug file has, so nothing is asked for Go programs. */
static bool may_ask(const struct source_file *of)
{
	struct elffile_section section;

	return of->debuginfod && of->build_id[0] &&
	       elffile_section(of->elf, ".gopclntab", &section) != 0;
}

/* From the servers. */
static int open_downloaded(const struct source_file *of, struct elffile **ret)
{
	static const struct link none = {.name = ""};
	int fd, r = debuginfod_get(of->debuginfod, of->build_id, &fd);

	if (r)
		return r == DEBUGINFOD_NOT_FOUND ? DEBUGFILE_ABSENT
		       : r == DEBUGINFOD_LATER	 ? DEBUGFILE_LATER
						 : r;
	return open_checked(of, &none, fd, ret);
}

/* DEBUGFILE_LATER is not final. */
static int search(const struct source_file *of)
{
	struct debugfile *debug = of->debug;
	int r;

	if (!debug->on_disk_known) {
		debug->outcome = open_on_disk(of, &debug->file);
		if (debug->outcome < 0)
			return debug->outcome;
		debug->on_disk_known = true;
	}
	if (!debug->outcome || !may_ask(of))
		return debug->outcome;
	r = open_downloaded(of, &debug->file);
	/* a file of another build beside the program tells more than its absence elsewhere */
	return r == DEBUGFILE_ABSENT ? debug->outcome : r;
}

int debugfile_find(const struct source_file *of, const struct elffile **ret)
{
	struct debugfile *debug = of->debug;

	/* each source asks with each batch of addresses; a request costs system calls and a lock */
	if (debug->awaited && debuginfod_news(of->debuginfod) == debug->news)
		return DEBUGFILE_LATER;
	if (!debug->known) {
		int r;

		debug->news = of->debuginfod ? debuginfod_news(of->debuginfod) : 0;
		r = search(of);

		debug->awaited = r == DEBUGFILE_LATER;
		if (r < 0 || debug->awaited)
			return r;
		debug->outcome = r;
		debug->known = true;
		if (!r)
			elffile_charge(debug->file, of->elf);
	}
	*ret = debug->file;
	return debug->outcome;
}

/* A path, and behind its NUL a build id. */
int debugfile_open_alternate(const struct source_file *of, const struct elffile *debug,
			     struct elffile **ret)
{
	char bytes[ALTLINK_MAX], build_id[ELFFILE_BUILD_ID_TEXT];
	struct source_file alternate = *of;
	const struct link none = {.name = ""};
	struct elffile_section section;
	size_t n, n_id;

	if (!of->proc || elffile_section(debug, ".gnu_debugaltlink", &section) ||
	    section.size > sizeof(bytes) ||
	    elffile_read(debug, section.off, bytes, (size_t)section.size))
		return DEBUGFILE_ABSENT;
	n = strnlen(bytes, (size_t)section.size) + 1;
	if (n >= section.size || section.size - n > ELFFILE_BUILD_ID_MAX || bytes[0] != '/')
		return DEBUGFILE_ABSENT;
	n_id = (size_t)section.size - n;
	for (size_t i = 0; i < n_id; i++)
		snprintf(build_id + 2 * i, 3, "%02x", (uint8_t)bytes[n + i]);
	alternate.build_id = build_id;
	return try_roots(&alternate, &none, bytes, ret);
}

/* A file with the section @section, below the root of process @pid. */
static int try_split(const struct source_file *of, uint64_t pid, const char *path,
		     const char *section, struct elffile **ret)
{
	_cleanup_(root_deinit) struct root root = ROOT_INIT;
	struct elffile_section found;
	struct elffile *file;
	int fd, r;

	if (pid_open_root(of->proc, pid, &root) || root_open_inside(&root, path + 1, &fd))
		return DEBUGFILE_ABSENT;
	r = elffile_open(fd, &file);
	if (r) {
		close(fd);
		return r == -ENOMEM ? r : DEBUGFILE_OTHER;
	}
	/* the path is from a process that a file may have taken over: nothing else is given */
	if (elffile_machine(file) != elffile_machine(of->elf) ||
	    elffile_section(file, section, &found)) {
		elffile_free(file);
		return DEBUGFILE_OTHER;
	}
	*ret = file;
	return 0;
}

static int open_split(const struct source_file *of, const char *path, const char *section,
		      struct elffile **ret)
{
	const uint64_t pids[] = {of->pid.pid, 1, 0}; /* as try_roots() */
	int result = DEBUGFILE_ABSENT;

	if (!of->proc)
		return DEBUGFILE_ABSENT;
	for (size_t i = of->pid.pid && !pid_check(of->proc, &of->pid) ? 0 : 1; i < array_size(pids);
	     i++) {
		int r = try_split(of, pids[i], path, section, ret);

		if (r <= 0)
			return r;
		if (r == DEBUGFILE_OTHER)
			result = r;
	}
	return result;
}

int debugfile_open_split(const struct source_file *of, const char *path, struct elffile **ret)
{
	return open_split(of, path, ".debug_info.dwo", ret);
}

int debugfile_open_package(const struct source_file *of, struct elffile **ret)
{
	int result = DEBUGFILE_ABSENT;

	if (of->path[0] != '/')
		return DEBUGFILE_ABSENT;
	for (size_t i = 0; i < 3; i++) {
		const char *name = i == 2 ? strrchr(of->path, '/') : of->path;
		char path[PATH_MAX];
		int r, n = snprintf(path, sizeof(path), "%s%s.dwp", i ? debug_dir : "", name);

		if (n < 0 || (size_t)n >= sizeof(path))
			continue;
		r = open_split(of, path, ".debug_cu_index", ret);
		if (r <= 0)
			return r;
		if (r == DEBUGFILE_OTHER)
			result = r;
	}
	return result;
}
