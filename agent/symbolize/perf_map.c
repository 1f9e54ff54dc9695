// SPDX-License-Identifier: Apache-2.0
/*
 * A line of a perf map (tools/perf/Documentation/jit-interface.txt of the kernel) is
 *
 *	START SIZE NAME
 *
 * with both numbers in base 16; some runtimes write "0x" in front. The name reaches to the end of
 * the line and may have blanks. A runtime appends a line for each function that it compiles, and no
 * line says that a function is gone: the next function at these addresses is the successor. So the
 * newest line wins. If one function replaces another within a window, all samples of the window
 * have the name of the second.
 */
#include "symbolize/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strview.h"
#include "base/work_budget.h"
#include "procmap/perf_map_file.h"
#include "symbolize/codetable.h"
#include "symbolize/source.h"
#include "symbolize/symbolizer.h"

/* Work of a line besides the bytes. */
#define PERF_MAP_LINE_COST 64u

/* Bytes by which a file is recognised: the bytes before the place where reading goes on. */
#define PERF_MAP_TAIL 64u

const char *const perf_map_event_names[PERF_MAP_EVENT_MAX] = {
	[PERF_MAP_READ] = "read",
	[PERF_MAP_ABSENT] = "absent",
	[PERF_MAP_DENIED] = "denied",
	[PERF_MAP_ODD] = "not_a_file",
	[PERF_MAP_FOREIGN] = "other_user",
	[PERF_MAP_OLD] = "older_than_process",
	[PERF_MAP_REPLACED] = "replaced",
	[PERF_MAP_CUT] = "cut",
	[PERF_MAP_INVALID_LINE] = "invalid_line",
	[PERF_MAP_FULL] = "full",
};

struct perf_map {
	uint64_t *events;
	uint64_t off; /* so many bytes are read */
	uint64_t size;
	char tail[PERF_MAP_TAIL]; /* the last bytes before @off */
	bool in_long_line;
	struct code_table functions;
};

int perf_map_new(uint64_t *events, struct perf_map **ret)
{
	struct perf_map *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->events = events;
	code_table_init(&m->functions, false);
	*ret = m;
	return 0;
}

void perf_map_free(struct perf_map *m)
{
	if (!m)
		return;
	code_table_deinit(&m->functions);
	free(m);
}

static void forget(struct perf_map *m)
{
	code_table_clear(&m->functions);
	m->off = 0;
	m->in_long_line = false;
}

/* ---------------------------------------------------------------- lines */

static bool parse_number(struct strview *t, uint64_t *ret)
{
	strview_skip_blanks(t);
	return (!strview_starts(t, "0x") || strview_prefix(t, "0x")) && strview_u64(t, 16, ret);
}

/* Code outside of the user's half of the address space, or of 4 GiB, is nobody's function. */
static bool parse_line(struct strview line, struct code_function *ret, struct strview *ret_name)
{
	uint64_t start, size;

	if (!parse_number(&line, &start) || !parse_number(&line, &size) ||
	    !strview_char(&line, ' ') || !size || size > UINT32_MAX || start >= UINT64_MAX / 2)
		return false;
	strview_skip_blanks(&line);
	if (strview_empty(&line))
		return false;
	ret->start = start;
	ret->size = (uint32_t)size;
	*ret_name = line;
	return true;
}

/* The outcome of the table: what has no room is counted. 0 or -ENOMEM. */
static int count_full(struct perf_map *m, int r)
{
	if (r > 0)
		m->events[PERF_MAP_FULL]++;
	return r < 0 ? r : 0;
}

static int add_line(struct perf_map *m, struct strview line, struct work_budget *work)
{
	struct code_function function = {0};
	struct strview name;

	(void)work_budget_spend(work, PERF_MAP_LINE_COST);
	if (!parse_line(line, &function, &name)) {
		m->events[PERF_MAP_INVALID_LINE]++;
		return 0;
	}
	return count_full(
		m, code_table_add(&m->functions, &function, name.p, strview_len(&name), work));
}

/* The complete lines of @bytes; bytes of a longer line than PERF_MAP_LINE_MAX are skipped. Sets the
 * number of bytes that are done with. */
static int add_lines(struct perf_map *m, const char *bytes, size_t n, struct work_budget *work,
		     size_t *ret_used)
{
	const char *at = bytes, *end;
	int r = 0;

	while (!r && (end = memchr(at, '\n', (size_t)(bytes + n - at)))) {
		if (!m->in_long_line)
			r = add_line(m, (struct strview){at, end}, work);
		m->in_long_line = false;
		at = end + 1;
	}
	if (at == bytes && n == PERF_MAP_LINE_MAX) {
		m->events[PERF_MAP_INVALID_LINE] += !m->in_long_line;
		m->in_long_line = true;
		at = bytes + n;
	}
	*ret_used = (size_t)(at - bytes);
	return r;
}

/* ---------------------------------------------------------------- the file */

static size_t read_at(int fd, uint64_t off, char *bytes, size_t n)
{
	ssize_t got;

	do
		got = pread(fd, bytes, n, (off_t)off);
	while (got < 0 && errno == EINTR);
	return got > 0 ? (size_t)got : 0;
}

static size_t tail_length(uint64_t off)
{
	return off < PERF_MAP_TAIL ? (size_t)off : PERF_MAP_TAIL;
}

/* Whether the bytes before @off are those that were read. A runtime that starts anew in the same
 * process truncates its map, and an inode may be reused. */
static bool is_continuation(const struct perf_map *m, int fd)
{
	const size_t n = tail_length(m->off);
	char tail[PERF_MAP_TAIL];

	return m->size >= m->off && read_at(fd, m->off - n, tail, n) == n &&
	       memcmp(tail, m->tail + PERF_MAP_TAIL - n, n) == 0;
}

/* Where to go on reading in @fd. */
static void find_place(struct perf_map *m, int fd)
{
	if (!is_continuation(m, fd)) {
		m->events[PERF_MAP_REPLACED]++;
		forget(m);
	}
	if (m->size - m->off <= PERF_MAP_READ_MAX)
		return;
	/* the newest lines decide */
	m->off = m->size - PERF_MAP_READ_MAX;
	m->in_long_line = true;
	m->events[PERF_MAP_CUT]++;
}

static int read_new(struct perf_map *m, int fd, struct work_budget *work)
{
	_cleanup_(freep) char *bytes = malloc(PERF_MAP_LINE_MAX);
	int r = bytes ? 0 : -ENOMEM;

	while (!r && m->off < m->size && work_budget_spend(work, WORK_READ_COST)) {
		size_t n = read_at(fd, m->off, bytes, PERF_MAP_LINE_MAX), used = 0, n_tail;

		if (work_budget_spend(work, n))
			r = add_lines(m, bytes, n, work, &used);
		if (!used)
			break;
		m->off += used;
		n_tail = tail_length(used);
		memmove(m->tail, m->tail + n_tail, PERF_MAP_TAIL - n_tail);
		memcpy(m->tail + PERF_MAP_TAIL - n_tail, bytes + used - n_tail, n_tail);
	}
	return r;
}

int perf_map_read(struct perf_map *m, int fd, struct work_budget *work)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return 0;
	m->size = (uint64_t)st.st_size;
	find_place(m, fd);
	if (m->off == m->size)
		return 0;
	m->events[PERF_MAP_READ]++;
	r = read_new(m, fd, work);
	return r ? r : count_full(m, code_table_settle(&m->functions, work));
}

/* ---------------------------------------------------------------- find */

const char *perf_map_find(const struct perf_map *m, uint64_t pc)
{
	struct code_function function;

	return code_table_find(&m->functions, pc, &function) ? function.name : NULL;
}

size_t perf_map_n(const struct perf_map *m)
{
	return m->functions.n;
}

size_t perf_map_bytes(const struct perf_map *m)
{
	return sizeof(*m) - sizeof(m->functions) + code_table_bytes(&m->functions);
}

/* ---------------------------------------------------------------- the source */

/* The map by the path, as long as the process lives; then the map that was found before. */
static int source_refresh(void *opened, const struct source_file *file)
{
	static const enum perf_map_event events[PERF_MAP_FILE_OUTCOME_MAX] = {
		[PERF_MAP_FILE_ABSENT] = PERF_MAP_ABSENT,
		[PERF_MAP_FILE_DENIED] = PERF_MAP_DENIED,
		[PERF_MAP_FILE_ODD] = PERF_MAP_ODD,
		[PERF_MAP_FILE_FOREIGN] = PERF_MAP_FOREIGN,
		[PERF_MAP_FILE_OLD] = PERF_MAP_OLD,
	};
	_cleanup_(close_fdp) int fd = -1;
	struct perf_map *m = opened;
	int r = PERF_MAP_FILE_ABSENT;

	if (file->proc)
		r = perf_map_file_open(file->proc, &file->pid, file->began_ns,
				       file->wall_at_boot_ns, &fd);

	if (!r || file->perf_map >= 0)
		return perf_map_read(m, r ? file->perf_map : fd, file->work);
	if (r == -ENOMEM)
		return r;
	m->events[r > 0 ? events[r] : PERF_MAP_DENIED]++;
	return 0;
}

static int source_open(const struct source_file *file, void **ret)
{
	struct perf_map *m;
	int r = perf_map_new(file->perf_map_events, &m);

	if (!r)
		*ret = m;
	return r;
}

static int source_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	const char *name = perf_map_find(opened, vaddr);
	const struct symbol_line line = {.function = name, .system_name = name, .file = ""};

	return name ? symbol_lines_add(lines, &line) : SOURCE_NONE;
}

static size_t source_bytes(const void *opened)
{
	return perf_map_bytes(opened);
}

static bool source_any(const void *opened)
{
	return perf_map_n(opened) != 0;
}

static void source_free(void *opened)
{
	perf_map_free(opened);
}

const struct symbol_source source_perf_map = {
	.name = "perf_map",
	.open = source_open,
	.refresh = source_refresh,
	.find = source_find,
	.bytes = source_bytes,
	.any = source_any,
	.free = source_free,
};
