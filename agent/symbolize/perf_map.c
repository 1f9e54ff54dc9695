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
 *
 * Ranges are kept sorted and disjoint. New lines collect behind them. settle() sorts the ends of
 * all ranges, and paints the ranges from the newest to the oldest onto the pieces between these
 * ends, each piece once. Painted pieces point to the next free piece, as in a union-find structure.
 * Names are copied with their ranges, so names of replaced functions take no memory.
 */
#include "symbolize/perf_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/strview.h"
#include "base/vec.h"
#include "base/work_budget.h"
#include "procmap/perf_map_file.h"
#include "symbolize/source.h"
#include "symbolize/symbolizer.h"

/* Work of a line besides the bytes, and of a range each time the ranges are sorted. */
#define PERF_MAP_LINE_COST  64u
#define PERF_MAP_RANGE_COST 256u

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

struct range {
	uint64_t start;
	uint32_t size;
	uint32_t name; /* offset into names */
};
_Static_assert(sizeof(struct range) == 16, "16 bytes a function");

struct perf_map {
	uint64_t *events;
	uint64_t off; /* so many bytes are read */
	uint64_t size;
	char tail[PERF_MAP_TAIL]; /* the last bytes before @off */
	bool in_long_line;
	struct range
		*ranges; /* the first @n_settled ascending and disjoint; then in the file's order */
	size_t n;
	size_t n_settled;
	size_t cap;
	struct buf names;
};

int perf_map_new(uint64_t *events, struct perf_map **ret)
{
	struct perf_map *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->events = events;
	buf_init(&m->names, PERF_MAP_NAMES_MAX);
	*ret = m;
	return 0;
}

void perf_map_free(struct perf_map *m)
{
	if (!m)
		return;
	free(m->ranges);
	buf_deinit(&m->names);
	free(m);
}

static void forget(struct perf_map *m)
{
	m->n = m->n_settled = 0;
	buf_reset(&m->names);
	m->off = 0;
	m->in_long_line = false;
}

/* ---------------------------------------------------------------- the newest wins */

/* A piece between two neighbouring ends of ranges. */
struct piece {
	uint64_t start;
	uint32_t next;	/* itself, or a piece before the next one without @range */
	uint32_t range; /* number plus one; 0: none */
};

static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* All ends, ascending, each once. */
static size_t cut(const struct perf_map *m, struct piece *pieces)
{
	size_t n = 0, kept = 0;

	for (size_t i = 0; i < m->n; i++) {
		pieces[n++].start = m->ranges[i].start;
		pieces[n++].start = m->ranges[i].start + m->ranges[i].size;
	}
	qsort(pieces, n, sizeof(*pieces), by_start);
	for (size_t i = 0; i < n; i++)
		if (!kept || pieces[i].start != pieces[kept - 1].start)
			pieces[kept++].start = pieces[i].start;
	for (size_t i = 0; i < kept; i++) {
		pieces[i].next = (uint32_t)i;
		pieces[i].range = 0;
	}
	return kept;
}

/* The first piece from @i on that is not painted; the last piece never is. */
static uint32_t first_free(struct piece *pieces, uint32_t i)
{
	while (pieces[i].next != i) {
		pieces[i].next = pieces[pieces[i].next].next;
		i = pieces[i].next;
	}
	return i;
}

static uint32_t piece_at(const struct piece *pieces, size_t n, uint64_t start)
{
	const struct piece key = {.start = start};
	const struct piece *at = bsearch(&key, pieces, n, sizeof(*pieces), by_start);

	return (uint32_t)(at - pieces); /* every start is there */
}

static void paint(const struct perf_map *m, struct piece *pieces, size_t n)
{
	for (size_t k = m->n; k-- > 0;) {
		const struct range *range = &m->ranges[k];
		const uint64_t limit = range->start + range->size;
		uint32_t i = first_free(pieces, piece_at(pieces, n, range->start));

		while (pieces[i].start < limit) {
			pieces[i].range = (uint32_t)k + 1;
			pieces[i].next = i + 1;
			i = first_free(pieces, i + 1);
		}
	}
}

/* A range for each run of pieces with the same colour. */
static int collect(const struct perf_map *m, const struct piece *pieces, size_t n,
		   struct perf_map *ret)
{
	int r = 0;

	for (size_t i = 0, end; i < n && !r; i = end) {
		const struct range *from;
		const char *name;
		struct range *to;

		for (end = i + 1; end < n && pieces[end].range == pieces[i].range;)
			end++;
		if (!pieces[i].range)
			continue;
		from = &m->ranges[pieces[i].range - 1];
		name = m->names.data + from->name;
		r = vec_grow(&ret->ranges, &ret->cap, ret->n + 1, sizeof(*to), PERF_MAP_RANGES_MAX);
		if (r)
			break;
		to = &ret->ranges[ret->n];
		to->start = pieces[i].start;
		to->size = (uint32_t)(pieces[end].start - pieces[i].start);
		to->name = (uint32_t)ret->names.len;
		r = buf_append(&ret->names, name, strlen(name) + 1);
		ret->n += !r;
	}
	if (r > 0)
		m->events[PERF_MAP_FULL]++;
	return r < 0 ? r : 0;
}

/* Makes all ranges ascending and disjoint. 0 or -ENOMEM. */
static int settle(struct perf_map *m, struct work_budget *work)
{
	_cleanup_(freep) struct piece *pieces = NULL;
	struct perf_map settled = {.names = BUF_INIT(PERF_MAP_NAMES_MAX)};
	size_t n;
	int r;

	if (m->n == m->n_settled)
		return 0;
	(void)work_budget_spend(work, m->n * PERF_MAP_RANGE_COST);
	pieces = calloc(2 * m->n, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	n = cut(m, pieces);
	paint(m, pieces, n);
	r = collect(m, pieces, n, &settled);
	if (r) {
		free(settled.ranges);
		buf_deinit(&settled.names);
		return r;
	}
	free(m->ranges);
	buf_deinit(&m->names);
	m->ranges = settled.ranges;
	m->names = settled.names;
	m->cap = settled.cap;
	m->n = m->n_settled = settled.n;
	return 0;
}

/* ---------------------------------------------------------------- lines */

static bool parse_number(struct strview *t, uint64_t *ret)
{
	strview_skip_blanks(t);
	return (!strview_starts(t, "0x") || strview_prefix(t, "0x")) && strview_u64(t, 16, ret);
}

/* Code outside of the user's half of the address space, or of 4 GiB, is nobody's function. */
static bool parse_line(struct strview line, struct range *ret, struct strview *ret_name)
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

static int append(struct perf_map *m, struct range range, const struct strview *name)
{
	const size_t at = m->names.len;
	size_t n = strview_len(name);
	int r;

	n = strnlen(name->p, n < PERF_MAP_NAME_MAX ? n : PERF_MAP_NAME_MAX);
	range.name = (uint32_t)at;
	r = buf_append(&m->names, name->p, n);
	if (!r)
		r = buf_append(&m->names, "", 1);
	if (!r)
		r = vec_grow(&m->ranges, &m->cap, m->n + 1, sizeof(range), PERF_MAP_RANGES_MAX);
	if (r)
		m->names.len = at;
	else
		m->ranges[m->n++] = range;
	return r;
}

/* A full map is settled once for each quarter of new ranges: the replaced ones make room. */
static int add_line(struct perf_map *m, struct strview line, struct work_budget *work)
{
	struct strview name;
	struct range range;
	int r;

	(void)work_budget_spend(work, PERF_MAP_LINE_COST);
	if (!parse_line(line, &range, &name)) {
		m->events[PERF_MAP_INVALID_LINE]++;
		return 0;
	}
	r = append(m, range, &name);
	if (r > 0 && m->n - m->n_settled >= PERF_MAP_RANGES_MAX / 4) {
		r = settle(m, work);
		if (!r)
			r = append(m, range, &name);
	}
	if (r > 0)
		m->events[PERF_MAP_FULL]++;
	return r < 0 ? r : 0;
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
	return r ? r : settle(m, work);
}

/* ---------------------------------------------------------------- find */

const char *perf_map_find(const struct perf_map *m, uint64_t pc)
{
	size_t low = 0, high = m->n_settled;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct range *range = &m->ranges[mid];

		if (pc < range->start)
			high = mid;
		else if (pc - range->start >= range->size)
			low = mid + 1;
		else
			return m->names.data + range->name;
	}
	return NULL;
}

size_t perf_map_n(const struct perf_map *m)
{
	return m->n;
}

size_t perf_map_bytes(const struct perf_map *m)
{
	return sizeof(*m) + m->cap * sizeof(*m->ranges) + m->names.cap;
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
	int r = file->proc ? perf_map_file_open(file->proc, &file->pid, &fd) : PERF_MAP_FILE_ABSENT;

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
