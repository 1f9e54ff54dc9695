// SPDX-License-Identifier: Apache-2.0
/*
 * One line of /proc/PID/maps is
 *
 *	START-LIMIT PERMS OFFSET MAJOR:MINOR INODE      PATH
 *
 * with all numbers but the inode in hex (show_map_vma() in fs/proc/task_mmu.c). The path is all
 * text after the padding, blanks included. The kernel escapes only the newline, as "\012". A
 * backslash is not escaped, so nothing else may be undone. The name of an unlinked file ends in "
 * (deleted)". A file may really have such a name; the line does not distinguish the two.
 *
 * The text is read in pieces and parsed on arrival, so its size does not matter (a process may have
 * a million mappings of files with names of 4 KiB). The kernel also writes piece by piece. A
 * process that maps and unmaps meanwhile gives overlapping entries, and the parser skips these.
 *
 * If the first thread of a process has ended while others run, the maps file and every other file
 * in /proc/PID is empty. The files of the other threads are intact.
 */
#include "procmap/maps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/line_reader.h"
#include "base/nsec.h"
#include "base/root.h"
#include "base/strview.h"
#include "base/vec.h"

/* Threads tried if the leader is dead; the first is nearly always alive. After these, the process
 * counts as gone. Reached: `podprof_resolved_pcs_total{outcome="gone"}`. */
#define MAPS_THREADS_MAX 64

const char *maps_outcome_name(int outcome)
{
	static const char *const names[MAPS_OUTCOME_MAX] = {
		[MAPS_OK] = "ok",	  [MAPS_GONE] = "gone",
		[MAPS_DENIED] = "denied", [MAPS_TOO_LARGE] = "too_large",
		[MAPS_SLOW] = "slow",
	};

	return outcome >= 0 && outcome < MAPS_OUTCOME_MAX ? names[outcome] : "error";
}

/* ---------------------------------------------------------------- a line */

static bool parse_prot(struct strview *t, uint32_t *ret)
{
	static const char letters[] = "rwx";
	uint32_t prot = 0;

	for (unsigned int i = 0; i < 3; i++) {
		if (strview_char(t, letters[i]))
			prot |= 1u << i;
		else if (!strview_char(t, '-'))
			return false;
	}
	if (strview_char(t, 's'))
		prot |= MAPS_SHARED;
	else if (!strview_char(t, 'p'))
		return false;
	*ret = prot;
	return true;
}

static bool parse_device(struct strview *t, uint64_t *ret)
{
	uint64_t major, minor;

	if (!strview_u64(t, 16, &major) || !strview_char(t, ':') || !strview_u64(t, 16, &minor) ||
	    major > UINT32_MAX || minor > UINT32_MAX)
		return false;
	*ret = makedev((unsigned int)major, (unsigned int)minor);
	return true;
}

static bool parse_numbers(struct strview *t, struct maps_entry *e)
{
	return strview_u64(t, 16, &e->start) && strview_char(t, '-') &&
	       strview_u64(t, 16, &e->limit) && strview_char(t, ' ') && parse_prot(t, &e->prot) &&
	       strview_char(t, ' ') && strview_u64(t, 16, &e->offset) && strview_char(t, ' ') &&
	       parse_device(t, &e->device) && strview_char(t, ' ') &&
	       strview_u64(t, 10, &e->inode) && e->start < e->limit;
}

/* Shared memory has an inode on the kernel's internal tmpfs and a name that is no path. The kernel
 * always shows such a name as deleted. */
static bool is_shared_memory(const struct strview *path)
{
	return strview_starts(path, "/memfd:") || strview_starts(path, "/SYSV") ||
	       strview_is(path, "/dev/zero") || strview_is(path, "/anon_hugepage") ||
	       strview_starts(path, "//anon");
}

static uint32_t kind_of(const struct strview *path, bool deleted)
{
	if (strview_empty(path))
		return MAPS_ANON;
	if (strview_starts(path, "/"))
		return deleted && is_shared_memory(path) ? MAPS_ANON : MAPS_FILE;
	if (strview_is(path, "[vdso]"))
		return MAPS_VDSO;
	if (strview_is(path, "[heap]") || strview_starts(path, "[stack") ||
	    strview_starts(path, "[anon"))
		return MAPS_ANON;
	return MAPS_OTHER;
}

/* In place: the result is not longer. */
static void unescape_newlines(char *s)
{
	char *to = s;

	while (*s) {
		if (strncmp(s, "\\012", 4) == 0) {
			*to++ = '\n';
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

struct strview maps_classify(struct strview name, struct maps_entry *e)
{
	e->deleted = strview_starts(&name, "/") && strview_suffix(&name, " (deleted)");
	e->kind = kind_of(&name, e->deleted);
	return name;
}

static bool parse_line(struct strview line, struct maps_entry *ret, struct strview *ret_path)
{
	struct maps_entry e = {0};

	if (!parse_numbers(&line, &e))
		return false;
	strview_skip_blanks(&line);
	*ret_path = maps_classify(line, &e);
	*ret = e;
	return true;
}

static int add_line(void *ctx, struct strview line)
{
	struct maps *m = ctx;
	uint64_t behind = m->n ? m->items[m->n - 1].limit : 0;
	struct maps_entry e;
	struct strview path;
	int r;

	if (!parse_line(line, &e, &path) || e.start < behind) {
		m->n_skipped++;
		return 0;
	}
	if (m->only_prot && !(e.prot & m->only_prot))
		return 0;
	r = vec_grow(&m->items, &m->cap, m->n + 1, sizeof(*m->items), MAPS_ENTRIES_MAX);
	if (r < 0)
		return r;
	if (r > 0 || strview_len(&path) > MAPS_PATHS_MAX - m->n_path_bytes) {
		m->n_skipped++;
		return 0;
	}
	e.path = strview_dup(path);
	if (!e.path)
		return -ENOMEM;
	unescape_newlines(e.path);
	m->n_path_bytes += strview_len(&path);
	m->items[m->n++] = e;
	return 0;
}

int maps_parse(const char *text, size_t n, struct maps *m)
{
	struct strview t = strview_of_bytes(text, n), line;
	int r = 0;

	while (!r && strview_until(&t, '\n', &line))
		r = add_line(m, line);
	return r;
}

/* ---------------------------------------------------------------- the file */

static int outcome_of_root(int r)
{
	switch (r) {
	case ROOT_GONE:
	case ROOT_NOT_FILE:
		return MAPS_GONE;
	case ROOT_DENIED:
		return MAPS_DENIED;
	case ROOT_TOO_LARGE:
		return MAPS_TOO_LARGE;
	default:
		return r;
	}
}

static void clear_entries(struct maps *m)
{
	for (size_t i = 0; i < m->n; i++)
		free(m->items[i].path);
	m->n = 0;
	m->n_path_bytes = 0;
	m->n_skipped = 0;
}

static int read_via(const struct root *proc, uint64_t pid, struct maps *m)
{
	_cleanup_(close_fdp) int fd = -1;
	size_t n_too_long = 0;
	char name[48];
	int r;

	snprintf(name, sizeof(name), "%" PRIu64 "/maps", pid);
	r = root_open_file(proc, name, &fd);
	if (!r)
		r = line_reader_read(fd, add_line, m, &n_too_long);
	r = outcome_of_root(r);
	m->n_skipped += n_too_long;
	if (r)
		clear_entries(m);
	else
		m->via_pid = pid;
	return r;
}

/* Reads the maps through a thread of a dead leader; @m stays empty if all threads are gone. */
static int read_via_threads(const struct root *proc, uint64_t pid, struct maps *m)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	struct dirent *entry;
	uint64_t tid;
	char name[48];
	int fd, r;

	snprintf(name, sizeof(name), "%" PRIu64 "/task", pid);
	fd = openat(proc->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return outcome_of_root(root_outcome(errno));
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return -ENOMEM;
	}
	for (int tries = 0; tries < MAPS_THREADS_MAX && !m->n && (entry = readdir(dir));) {
		if (!strview_only_u64(strview_of(entry->d_name), 10, &tid) || tid == pid)
			continue;
		tries++;
		r = read_via(proc, tid, m);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_identity(const struct root *proc, const struct pid_id *id, uint64_t *inode)
{
	int r = pid_check_inode(proc, id, inode);

	if (r <= 0)
		return r;
	return r == PID_DENIED ? MAPS_DENIED : MAPS_GONE;
}

int maps_read(const struct root *proc, const struct pid_id *id, struct maps *ret)
{
	uint64_t begin_cpu_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID);
	int r;

	ret->begin_ns = nsec_boot();
	r = read_via(proc, id->pid, ret);
	if (!r && !ret->n)
		r = read_via_threads(proc, id->pid, ret);
	if (!r)
		r = check_identity(proc, id, &ret->inode);
	ret->cpu_ns = nsec_read(CLOCK_THREAD_CPUTIME_ID) - begin_cpu_ns;
	if (r)
		maps_deinit(ret);
	return r;
}

void maps_deinit(struct maps *m)
{
	clear_entries(m);
	free(m->items);
	m->items = NULL;
	m->cap = 0;
	m->via_pid = 0;
}

/* ---------------------------------------------------------------- putting together */

static void remove_entry(struct maps *m, size_t i)
{
	m->n_path_bytes -= strlen(m->items[i].path);
	free(m->items[i].path);
	memmove(&m->items[i], &m->items[i + 1], (m->n - i - 1) * sizeof(*m->items));
	m->n--;
}

static int insert_entry(struct maps *m, size_t i, const struct maps_entry *e)
{
	char *path;
	int r = vec_grow(&m->items, &m->cap, m->n + 1, sizeof(*m->items), MAPS_ENTRIES_MAX);

	if (r)
		return r < 0 ? r : MAPS_TOO_LARGE;
	path = strdup(e->path);
	if (!path)
		return -ENOMEM;
	memmove(&m->items[i + 1], &m->items[i], (m->n - i) * sizeof(*m->items));
	m->items[i] = *e;
	m->items[i].path = path;
	m->n_path_bytes += strlen(path);
	m->n++;
	return 0;
}

static void cut_front(struct maps_entry *e, uint64_t start)
{
	e->offset += start - e->start;
	e->start = start;
}

/* Splits the entry around @at in two. */
static int split(struct maps *m, size_t i, uint64_t at)
{
	struct maps_entry behind = m->items[i];
	int r;

	cut_front(&behind, at);
	r = insert_entry(m, i + 1, &behind);
	if (!r)
		m->items[i].limit = at;
	return r;
}

int maps_cover(struct maps *m, const struct maps_entry *entry)
{
	size_t i = 0;
	int r = 0;

	while (i < m->n && m->items[i].limit <= entry->start)
		i++;
	if (i < m->n && m->items[i].start < entry->start)
		r = split(m, i++, entry->start);
	if (r)
		return r;
	while (i < m->n && m->items[i].limit <= entry->limit)
		remove_entry(m, i);
	if (i < m->n && m->items[i].start < entry->limit)
		cut_front(&m->items[i], entry->limit);
	return insert_entry(m, i, entry);
}

const struct maps_entry *maps_find(const struct maps *m, uint64_t pc)
{
	size_t low = 0, high = m->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (pc < m->items[mid].start)
			high = mid;
		else if (pc >= m->items[mid].limit)
			low = mid + 1;
		else
			return &m->items[mid];
	}
	return NULL;
}
