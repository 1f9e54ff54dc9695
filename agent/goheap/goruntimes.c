// SPDX-License-Identifier: Apache-2.0
/*
 * Each file mapped as code may contain a Go runtime. A cache holds the contents of files for all
 * processes (goimages.h); this file adds the facts of a process.
 *
 * The load bias comes from the executable mappings, by PT_LOAD. The address of the first mapping is
 * not the bias, because Go's own linker bases position-independent programs at 0x400000. The kernel
 * and the dynamic loader map all of a file with one bias. If the executable mappings disagree, the
 * file was mapped again, and the running copy is unknown.
 *
 * Plugins look like libraries and have a copy of all variables, but never use the copy: their code
 * runs in the runtime of the program that loaded them, and is in the list of modules. Plugins are
 * left out here. Their own file names their functions, as for any other file.
 *
 * A program that was never on a disk (memfd) appears as a mapping of shared memory with an inode.
 */
#include "goheap/goruntimes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/root.h"
#include "elf/elffile.h"
#include "goheap/goimages.h"
#include "goheap/goruntime.h"
#include "goheap/gounpacked.h"
#include "procmap/mapped.h"
#include "procmap/maps.h"

/* Files mapped as code and examined in a process; a browser has 300. Reached: the others are
 * not examined. */
#define GORUNTIMES_FILES_MAX 1024

/* State of the examination of a process. */
struct search {
	struct goimages *images;
	const struct root *proc;
	const struct pid_id *id;
	struct memory *memory;
	struct file_id exe;
	struct maps maps;
	size_t files[GORUNTIMES_FILES_MAX]; /* the first mapping of each */
	size_t n_files;
	bool has_exe; /* the executable is among the files */
	bool is_packed;
	bool is_too_large;	 /* a file takes too much work */
	bool is_late;		 /* a file is to be read in a later round */
	struct goruntime packed; /* the packed executable, without its content */
	struct goruntimes *ret;
};

/* ---------------------------------------------------------------- files */

static bool same_file(const struct maps_entry *a, const struct maps_entry *b)
{
	return a->inode == b->inode && a->device == b->device;
}

static void add_file(struct search *s, size_t entry)
{
	const struct maps_entry *e = &s->maps.items[entry];

	for (size_t i = s->n_files; i-- > 0;)
		if (same_file(&s->maps.items[s->files[i]], e))
			return;
	if (s->n_files < GORUNTIMES_FILES_MAX)
		s->files[s->n_files++] = entry;
}

/* Over the fields that identify a set of mappings. */
static uint64_t fingerprint(const struct maps *maps)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < maps->n; i++) {
		const struct maps_entry *e = &maps->items[i];
		const uint64_t words[] = {e->start, e->limit, e->offset, e->device, e->inode};

		hash = hash_words(hash, hash_bytes(words, sizeof(words)));
	}
	return hash ? hash : 1;
}

/* goimages_get(), where a file that cannot be read, or not now, is no failure. 0, 1 for such a
 * file, -errno. */
static int get_image(struct search *s, int fd, const struct goimage **ret)
{
	int r = goimages_get(s->images, fd, ret);

	s->is_late |= r == GORUNTIME_TOO_LARGE;
	s->is_too_large |= !r && (*ret)->state == GORUNTIME_TOO_LARGE;
	return r > 0 ? 1 : r;
}

/* ---------------------------------------------------------------- one runtime */

/* The bias by a mapping; false if no segment of the file has its offset. */
static bool bias_of(const struct goruntime_file *file, const struct maps_entry *e, uint64_t *ret)
{
	for (size_t i = 0; i < file->n_codes; i++) {
		const struct goruntime_code *code = &file->codes[i];
		uint64_t first = code->off & ~(uint64_t)4095; /* a mapping starts with a page */

		if (e->offset < first || e->offset - first >= code->n_bytes + (code->off - first))
			continue;
		*ret = e->start - (code->vaddr + (e->offset - code->off));
		return true;
	}
	return false;
}

static bool find_bias(const struct search *s, const struct maps_entry *first, struct goruntime *rt)
{
	bool found = false;

	for (size_t i = 0; i < s->maps.n; i++) {
		const struct maps_entry *e = &s->maps.items[i];
		uint64_t bias;

		if (!same_file(e, first))
			continue;
		if (!bias_of(&rt->file, e, &bias) || (found && bias != rt->bias))
			return false;
		rt->bias = bias;
		found = true;
	}
	return found && (!rt->file.fixed || rt->bias == 0);
}

/* Place a runtime in the process. 0 or -errno, GORUNTIME_GONE; anything else becomes the
 * runtime's state. */
static int place(const struct search *s, const struct maps_entry *first, struct goruntime *rt)
{
	int r;

	if (!find_bias(s, first, rt)) {
		rt->state = GORUNTIME_UNKNOWN_LAYOUT;
		return 0;
	}
	if (!s->memory)
		return 0;
	r = goruntime_check(rt, s->memory);
	if (r < 0 || r == GORUNTIME_GONE)
		return r;
	if (r != GORUNTIME_OK)
		rt->state = GORUNTIME_UNKNOWN_LAYOUT;
	return 0;
}

static bool is_exe(const struct search *s, const struct goruntime *rt)
{
	return file_id_same_inode(&rt->id, &s->exe);
}

static void keep(struct search *s, const struct goruntime *rt)
{
	struct goruntimes *list = s->ret;

	if (list->n == GORUNTIMES_MAX) {
		list->n_left_out++;
		return;
	}
	list->items[list->n++] = *rt;
	if (is_exe(s, rt) && list->n > 1) {
		list->items[list->n - 1] = list->items[0];
		list->items[0] = *rt;
	}
}

static void keep_name(const char *path, char ret[GORUNTIME_NAME_MAX])
{
	const char *slash = strrchr(path, '/');

	snprintf(ret, GORUNTIME_NAME_MAX, "%s", slash ? slash + 1 : path);
}

/* Remember the executable: it may be packed. */
static void note_exe(struct search *s, const struct goimage *image, const struct goruntime *rt)
{
	if (!is_exe(s, rt))
		return;
	s->has_exe = true;
	s->is_packed = image->is_bare;
	s->packed = *rt;
	s->packed.file.machine = image->machine;
}

static int add_runtime(struct search *s, const struct maps_entry *first)
{
	_cleanup_(close_fdp) int fd = -1;
	const struct goimage *image;
	struct goruntime rt = {0};
	int r;

	goimages_count(s->images);
	r = mapped_find(s->proc, s->maps.via_pid, first, &fd);
	if (!r)
		r = get_image(s, fd, &image);
	if (r)
		return r < 0 ? r : 0; /* not allowed to open it */
	rt.id = image->id;
	rt.state = image->state;
	keep_name(first->path, rt.name);
	note_exe(s, image, &rt);
	if (!image->file)
		return 0;
	rt.file = *image->file;
	r = place(s, first, &rt);
	if (!r)
		keep(s, &rt);
	return r;
}

/* ---------------------------------------------------------------- out of memory */

/* Look at the executable itself: the code that unpacked a program may have unmapped itself. */
static int look_at_exe(struct search *s)
{
	_cleanup_(close_fdp) int fd = -1;
	const struct goimage *image;
	struct goruntime rt = {.name = "[unpacked]"};
	char path[32];
	int r;

	snprintf(path, sizeof(path), "%" PRIu64 "/exe", s->id->pid);
	fd = openat(s->proc->fd, path, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return 0;
	r = get_image(s, fd, &image);
	if (r)
		return r < 0 ? r : 0;
	rt.id = image->id;
	note_exe(s, image, &rt);
	return 0;
}

/* Add the runtime that a packed executable has unpacked. */
static int add_unpacked(struct search *s)
{
	_cleanup_(elffile_freep) struct elffile *ef = NULL;
	struct goruntime *rt = &s->packed;
	int r = gounpacked_open(s->proc, s->id, rt->file.machine, &ef);

	if (!r)
		r = goimages_read(s->images, ef, &rt->file);
	s->is_late |= r == GORUNTIME_TOO_LARGE;
	if (r < 0 || r == GORUNTIME_GONE)
		return r;
	if (r != GORUNTIME_OK)
		return 0;
	rt->state = GORUNTIME_OK;
	rt->is_unpacked = true;
	r = goruntime_check(rt, s->memory);
	if (r != GORUNTIME_OK)
		return r < 0 || r == GORUNTIME_GONE ? r : 0;
	keep(s, rt);
	return 0;
}

/* ---------------------------------------------------------------- all */

static bool is_plugin(const struct search *s, const struct goruntime *rt)
{
	for (size_t i = 0; i < s->ret->n; i++)
		if (&s->ret->items[i] != rt &&
		    goruntime_has_plugin(&s->ret->items[i], s->memory, rt))
			return true;
	return false;
}

static void drop_plugins(struct search *s)
{
	bool plugins[GORUNTIMES_MAX];
	size_t n = 0;

	if (!s->memory)
		return;
	for (size_t i = 0; i < s->ret->n; i++)
		plugins[i] = is_plugin(s, &s->ret->items[i]);
	for (size_t i = 0; i < s->ret->n; i++)
		if (!plugins[i])
			s->ret->items[n++] = s->ret->items[i];
	s->ret->n = n;
}

static int look_at_files(struct search *s)
{
	for (size_t i = 0; i < s->maps.n; i++)
		if ((s->maps.items[i].kind == MAPS_FILE || s->maps.items[i].kind == MAPS_ANON) &&
		    s->maps.items[i].inode)
			add_file(s, i);
	for (size_t i = 0; i < s->n_files; i++) {
		int r = add_runtime(s, &s->maps.items[s->files[i]]);

		if (r)
			return r;
	}
	drop_plugins(s);
	if (!s->has_exe && s->exe.inode) {
		int r = look_at_exe(s);

		if (r)
			return r;
	}
	return s->is_packed && s->memory ? add_unpacked(s) : 0;
}

/* A process that ends during the examination shows only some of its mappings. Without the
 * necessary rights the mappings may be readable, but the executable is not. */
static int check_alive(const struct search *s)
{
	int r = pid_check(s->proc, s->id);

	if (!r && pid_read_exe(s->proc, s->id->pid).inode == 0)
		r = errno == EACCES || errno == EPERM ? PID_DENIED : PID_GONE;
	if (r)
		return r < 0 ? r : r == PID_DENIED ? GORUNTIME_DENIED : GORUNTIME_GONE;
	return 0;
}

static int search(struct search *s, uint64_t known)
{
	int r = gostate_of_maps(maps_read(s->proc, s->id, &s->maps));

	if (r)
		return r;
	s->ret->mappings = fingerprint(&s->maps);
	if (s->ret->mappings == known)
		return GORUNTIMES_UNCHANGED;
	s->exe = pid_read_exe(s->proc, s->id->pid);
	r = look_at_files(s);
	if (s->is_late)
		s->ret->mappings = 0; /* another look at the same mappings finds more */
	return r ? r : check_alive(s);
}

const struct goruntime *goruntimes_first(const struct goruntimes *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].state == GORUNTIME_OK)
			return &list->items[i];
	return list->n ? &list->items[0] : NULL;
}

int goruntimes_find(struct goimages *images, const struct root *proc, const struct pid_id *id,
		    struct memory *m, uint64_t known, struct goruntimes *ret)
{
	struct search s = {
		.images = images,
		.proc = proc,
		.id = id,
		.memory = m,
		.maps = {.only_prot = MAPS_X},
		.ret = ret,
	};
	const struct goruntime *first;
	int r;

	ret->n = ret->n_left_out = 0;
	r = search(&s, known);
	maps_deinit(&s.maps);
	if (r)
		return r;
	first = goruntimes_first(ret);
	if (!first)
		return s.is_too_large || s.is_late ? GORUNTIME_TOO_LARGE : GORUNTIME_NO_RUNTIME;
	return (int)first->state;
}
