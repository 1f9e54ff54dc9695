// SPDX-License-Identifier: Apache-2.0
/*
 * The format is in tools/perf/Documentation/jitdump-specification.txt of the kernel: a header, then
 * records with a kind, a length and a time, in the byte order of the machine. A runtime appends
 *
 *	load        a function: address, size, name, and a copy of the code
 *	move        the address of a function changes
 *	debug info  lines of the function in the next load record
 *	close, unwinding info
 *
 * No record says that a function is gone: the next function at these addresses is the successor. So
 * the newest record wins, and times do not matter. If one function replaces another within a
 * window, all samples of the window have the name of the second.
 *
 * The lengths lead over the code, which is not read. A length of 0 is what a writer has not filled
 * in yet; any other length below that of the record's head leads nowhere, and ends the reading. The
 * last record may be incomplete, and is read the next time.
 *
 * An entry of debug info has the file and the line from an address on. With inlined code the file
 * may be another function's, whose name the dump lacks. So only the entries with the file of the
 * first entry are kept, in these details of the function in the table:
 *
 *	address (8 bytes)   the function's; a later function may have replaced its first bytes
 *	file, NUL
 *	entries             differences of the address (ULEB128) and of the line (SLEB128)
 *
 * perf makes an ELF file of each function, and V8 adds the 64 bytes of that file's header to the
 * addresses of its lines (kElfHeaderSize in src/diagnostics/perf-jit.cc). In such a dump no line is
 * in the first 64 bytes of its function.
 *
 * V8 11.3 also writes the file names of scripts from memory that is already freed: the first
 * 16 bytes are the allocator's. A record with such a name, or with addresses outside of the
 * function, counts as invalid. CPython 3.13 leaves the processor at 0.
 */
#include "symbolize/jitdump.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/work_budget.h"
#include "symbolize/codetable.h"
#include "symbolize/source.h"
#include "symbolize/symbolizer.h"

#define JITDUMP_MAGIC	      0x4a695444u
#define JITDUMP_MAGIC_SWAPPED 0x4454694au
#define JITDUMP_VERSION	      1u
#define JITDUMP_HEADER_SIZE   40u
#define JITDUMP_HEAD_SIZE     16u /* of a record */
#define JITDUMP_LOAD_SIZE     56u /* of a load record up to the name */
#define JITDUMP_LINES_SHIFT   64u /* V8's */
/* The name of a debug entry that is the one before. */
#define JITDUMP_SAME_FILE     "\xff"

/* Bytes of allowed reading that a sorted function takes. */
#define JITDUMP_SORT_COST   32u
/* Bytes read after a long record. */
#define JITDUMP_PAGE	    4096u
/* Work of a record besides the bytes. */
#define JITDUMP_RECORD_COST 64u

#ifdef __x86_64__
#define JITDUMP_MACHINE EM_X86_64
#else
#define JITDUMP_MACHINE EM_AARCH64
#endif

const char *const jitdump_event_names[JITDUMP_EVENT_MAX] = {
	[JITDUMP_READ] = "read",
	[JITDUMP_REPLACED] = "replaced",
	[JITDUMP_CUT] = "cut",
	[JITDUMP_NO_DUMP] = "not_a_jitdump",
	[JITDUMP_OTHER_MACHINE] = "other_machine",
	[JITDUMP_INVALID_RECORD] = "invalid_record",
	[JITDUMP_BROKEN] = "broken",
	[JITDUMP_FULL] = "full",
};

enum record_kind { RECORD_LOAD, RECORD_MOVE, RECORD_DEBUG_INFO };

struct record_head {
	uint32_t kind;
	uint32_t size;
	uint64_t time;
};
_Static_assert(sizeof(struct record_head) == JITDUMP_HEAD_SIZE, "as in the file");

/**
 * struct jitdump - what was read
 * @off:        of the next record; 0: the header is not read
 * @header:     with the time of the file's creation: recognises the file
 * @last, @last_off: the last record's head; the same, if @last_off is not 0
 * @is_refused: nothing more is read
 * @lines_of:   address of the next function, whose lines are in @lines
 * @lines:      details
 * @lines_end:  the largest distance of a line from its function
 * @first_line: the smallest distance of a line from its function
 */
struct jitdump {
	uint64_t *events;
	uint64_t off;
	uint8_t header[JITDUMP_HEADER_SIZE];
	struct record_head last;
	uint64_t last_off;
	bool is_refused;
	struct code_table functions;
	uint64_t lines_of;
	struct buf lines;
	uint64_t lines_end;
	uint64_t first_line;
};

/* A part of the file in memory, for one call. */
struct jit_reader {
	struct jitdump *j;
	int fd;
	struct work_budget *work;
	uint64_t size;
	uint64_t allowed; /* bytes of JITDUMP_READ_MAX left */
	uint64_t off;	  /* of the @n bytes */
	size_t n;
	uint8_t bytes[JITDUMP_RECORD_MAX];
};

int jitdump_new(uint64_t *events, struct jitdump **ret)
{
	struct jitdump *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->events = events;
	j->first_line = UINT64_MAX;
	code_table_init(&j->functions, true);
	buf_init(&j->lines, JITDUMP_RECORD_MAX);
	*ret = j;
	return 0;
}

void jitdump_free(struct jitdump *j)
{
	if (!j)
		return;
	code_table_deinit(&j->functions);
	buf_deinit(&j->lines);
	free(j);
}

static void forget(struct jitdump *j)
{
	code_table_clear(&j->functions);
	buf_reset(&j->lines);
	j->off = j->last_off = 0;
	j->first_line = UINT64_MAX;
	j->is_refused = false;
}

/* ---------------------------------------------------------------- bytes */

/* Up to @n bytes at @off; fewer at the end of the file. */
static size_t read_at(struct jit_reader *r, uint64_t off, void *to, size_t n)
{
	ssize_t got;

	if (!work_budget_spend(r->work, WORK_READ_COST + n))
		return 0;
	do
		got = pread(r->fd, to, n, (off_t)off);
	while (got < 0 && errno == EINTR);
	return got > 0 ? (size_t)got : 0;
}

static bool allow(struct jit_reader *r, uint64_t n)
{
	if (n > r->allowed)
		return false;
	r->allowed -= n;
	return true;
}

/* Reads at least @n bytes at @off: many if the records before were short. */
static bool fill(struct jit_reader *r, uint64_t off, size_t n)
{
	size_t n_read = sizeof(r->bytes);

	if (n < JITDUMP_PAGE && off > r->off + r->n)
		n_read = JITDUMP_PAGE;
	if (!allow(r, n_read)) {
		r->j->events[JITDUMP_CUT]++;
		return false;
	}
	r->off = off;
	r->n = read_at(r, off, r->bytes, n_read);
	return n <= r->n;
}

/* The @n bytes from @off on, at most JITDUMP_RECORD_MAX; borrowed until the next call. False: not
 * there, not allowed or unreadable. */
static bool look(struct jit_reader *r, uint64_t off, size_t n, struct cursor *ret)
{
	const bool is_here = off >= r->off && off + n <= r->off + r->n;

	if (!is_here && !fill(r, off, n))
		return false;
	cursor_init(ret, r->bytes + (off - r->off), n);
	return true;
}

/* ---------------------------------------------------------------- header */

static bool refuse(struct jitdump *j, enum jitdump_event event)
{
	j->events[event]++;
	j->is_refused = true;
	return false;
}

/* False: no records to be read. */
static bool read_header(struct jitdump *j)
{
	uint32_t magic = 0, version = 0, size = 0, machine = 0;
	struct cursor c;

	cursor_init(&c, j->header, sizeof(j->header));
	if (!cursor_u32(&c, &magic) || !cursor_u32(&c, &version) || !cursor_u32(&c, &size) ||
	    !cursor_u32(&c, &machine))
		return false; /* never: the header is complete */
	if (magic == JITDUMP_MAGIC_SWAPPED)
		return refuse(j, JITDUMP_OTHER_MACHINE);
	if (magic != JITDUMP_MAGIC || version != JITDUMP_VERSION || size < JITDUMP_HEADER_SIZE)
		return refuse(j, JITDUMP_NO_DUMP);
	if (machine && machine != JITDUMP_MACHINE)
		return refuse(j, JITDUMP_OTHER_MACHINE);
	j->off = size;
	return true;
}

/* Whether the file begins as the one before, and has its last record. A runtime that starts anew in
 * the same process truncates its dump, and an inode may be reused. */
static bool is_continuation(struct jit_reader *r, const uint8_t *header)
{
	const struct jitdump *j = r->j;
	struct record_head last;

	if (memcmp(header, j->header, sizeof(j->header)) != 0)
		return false;
	/* without a record, @off is only the header's word, and may be beyond the end */
	return !j->last_off ||
	       (r->size >= j->off && read_at(r, j->last_off, &last, sizeof(last)) == sizeof(last) &&
		memcmp(&last, &j->last, sizeof(last)) == 0);
}

/* Finds the place where reading goes on. False: there is nothing to read. */
static bool find_place(struct jit_reader *r)
{
	struct jitdump *j = r->j;
	uint8_t header[JITDUMP_HEADER_SIZE];
	const bool is_known = j->off || j->is_refused;

	if (r->size < sizeof(header))
		memset(header, 0, sizeof(header));
	else if (read_at(r, 0, header, sizeof(header)) != sizeof(header))
		return false; /* unreadable now: the names so far stay */
	if (is_known && is_continuation(r, header))
		return !j->is_refused && j->off < r->size;
	if (is_known) {
		j->events[JITDUMP_REPLACED]++;
		forget(j);
	}
	memcpy(j->header, header, sizeof(header));
	/* a file without its header yet, or without any byte */
	return r->size >= sizeof(header) && read_header(j) && j->off < r->size;
}

/* ---------------------------------------------------------------- records */

/* The outcome of the table: what has no room is counted. 0 or -ENOMEM. */
static int count_full(struct jitdump *j, int r)
{
	if (r > 0)
		j->events[JITDUMP_FULL]++;
	return r < 0 ? r : 0;
}

static bool is_function(uint64_t start, uint64_t size)
{
	return size && size <= UINT32_MAX && start < UINT64_MAX / 2;
}

static int invalid(struct jitdump *j)
{
	j->events[JITDUMP_INVALID_RECORD]++;
	return 0;
}

/* The debug info of the next function is not usable. */
static void drop_lines(struct jitdump *j)
{
	buf_reset(&j->lines);
	j->events[JITDUMP_INVALID_RECORD]++;
}

/* pid, tid and the virtual address in front of a function's own numbers. */
static bool skip_process(struct cursor *c)
{
	return cursor_skip(c, 4 + 4 + 8);
}

static int add_load(struct jit_reader *r, struct cursor *c)
{
	struct code_function f = {.details = ""};
	struct jitdump *j = r->j;
	uint64_t size;

	if (!skip_process(c) || !cursor_u64(c, &f.start) || !cursor_u64(c, &size) ||
	    !cursor_skip(c, 8) || !is_function(f.start, size) || !cursor_left(c) || !*c->pos)
		return invalid(j);
	f.size = (uint32_t)size;
	if (j->lines.len && j->lines_end > size + JITDUMP_LINES_SHIFT)
		drop_lines(j);
	if (j->lines.len && j->lines_of == f.start) {
		f.details = j->lines.data;
		f.n_details = j->lines.len;
	}
	return count_full(j, code_table_add(&j->functions, &f, (const char *)c->pos, cursor_left(c),
					    r->work));
}

/* Sorts all functions, so that few remain to be searched one after the other. */
static int settle_many(struct jit_reader *r)
{
	struct code_table *t = &r->j->functions;

	if (t->n - t->n_settled < JITDUMP_RECENT_MAX)
		return 0;
	if (!allow(r, t->n * JITDUMP_SORT_COST))
		r->allowed = 0;
	return count_full(r->j, code_table_settle(t, r->work));
}

/* A copy with the details of the new address: the table's own strings move when it grows. */
static int add_moved(struct jit_reader *r, const struct code_function *old, uint64_t from,
		     struct code_function *f)
{
	_cleanup_(freep) char *name = strdup(old->name);
	_cleanup_(freep) char *details = malloc(old->n_details + 1);
	uint64_t start;

	if (!name || !details)
		return -ENOMEM;
	memcpy(details, old->details, old->n_details);
	if (old->n_details) {
		memcpy(&start, details, sizeof(start));
		start += f->start - from;
		memcpy(details, &start, sizeof(start));
	}
	f->details = details;
	f->n_details = old->n_details;
	return count_full(r->j,
			  code_table_add(&r->j->functions, f, name, CODE_TABLE_NAME_MAX, r->work));
}

static int add_move(struct jit_reader *r, struct cursor *c)
{
	struct code_function f = {0}, old;
	uint64_t from, size;
	int e;

	if (!skip_process(c) || !cursor_u64(c, &from) || !cursor_u64(c, &f.start) ||
	    !cursor_u64(c, &size) || !is_function(f.start, size))
		return invalid(r->j);
	f.size = (uint32_t)size;
	e = settle_many(r);
	if (e)
		return e;
	(void)work_budget_spend(r->work, JITDUMP_RECENT_MAX);
	if (!code_table_newest(&r->j->functions, from, &old))
		return invalid(r->j);
	return add_moved(r, &old, from, &f);
}

/* ---------------------------------------------------------------- lines */

static int put_uleb(struct buf *b, uint64_t value)
{
	int r;

	for (; value >= 0x80; value >>= 7) {
		r = buf_putc(b, (char)(0x80 | (value & 0x7f)));
		if (r)
			return r;
	}
	return buf_putc(b, (char)value);
}

/* Differences of two lines have 33 bits. */
static int put_sleb(struct buf *b, int64_t value)
{
	while (value < -0x40 || value > 0x3f) {
		int r = buf_putc(b, (char)(0x80 | (value & 0x7f)));

		if (r)
			return r;
		value >>= 7;
	}
	return buf_putc(b, (char)(value & 0x7f));
}

struct line_entry {
	uint64_t address;
	uint32_t line;
	const char *file;
};

static bool read_line(struct cursor *c, struct line_entry *ret)
{
	return cursor_u64(c, &ret->address) && cursor_u32(c, &ret->line) && cursor_skip(c, 4) &&
	       cursor_cstr(c, &ret->file);
}

static bool is_path(const char *name)
{
	for (; (unsigned char)*name >= ' '; name++)
		if (*name == 0x7f)
			return false;
	return !*name;
}

/* Appends the entries in the file of the first entry, in the order of their addresses. A line
 * without room is left out. */
static int add_lines(struct jitdump *j, struct cursor *c, uint64_t n)
{
	struct line_entry entry, last = {.address = j->lines_of};
	const char *file = NULL;
	bool same = true;
	int r = 0;

	for (uint64_t i = 0; i < n && !r && read_line(c, &entry); i++) {
		if (entry.address < last.address)
			continue;
		if (entry.address - j->lines_of > j->lines_end)
			j->lines_end = entry.address - j->lines_of;
		if (!file) {
			file = entry.file;
			r = buf_append(&j->lines, file, strlen(file) + 1);
		} else if (strcmp(entry.file, JITDUMP_SAME_FILE) != 0) {
			same = strcmp(entry.file, file) == 0;
		}
		if (entry.address - j->lines_of < j->first_line)
			j->first_line = entry.address - j->lines_of;
		if (!same || r)
			continue;
		r = put_uleb(&j->lines, entry.address - last.address);
		if (!r)
			r = put_sleb(&j->lines, (int64_t)entry.line - (int64_t)last.line);
		last = entry;
	}
	return r < 0 ? r : 0;
}

static int add_debug_info(struct jit_reader *r, struct cursor *c)
{
	struct jitdump *j = r->j;
	uint64_t address, n;
	int e;

	buf_reset(&j->lines);
	if (!cursor_u64(c, &address) || !cursor_u64(c, &n))
		return invalid(j);
	j->lines_of = address;
	j->lines_end = 0;
	e = buf_append(&j->lines, &address, sizeof(address));
	if (!e)
		e = add_lines(j, c, n);
	if (e < 0 || j->lines.len <= sizeof(address))
		buf_reset(&j->lines);
	else if (!is_path(j->lines.data + sizeof(address)))
		drop_lines(j);
	return e < 0 ? e : 0;
}

/* The line at @pc from a function's details, which are in the form of add_debug_info(). */
static void find_line(const struct jitdump *j, const struct code_function *f, uint64_t pc,
		      struct jitdump_place *ret)
{
	uint64_t at = 0, step = 0;
	int64_t line = 0, more = 0;
	struct cursor c;

	cursor_init(&c, f->details, f->n_details);
	if (!cursor_u64(&c, &at) || !cursor_cstr(&c, &ret->file))
		return;
	if (j->first_line >= JITDUMP_LINES_SHIFT)
		pc += JITDUMP_LINES_SHIFT;
	while (cursor_uleb(&c, &step) && cursor_sleb(&c, &more) && step <= pc - at) {
		at += step;
		line += more;
	}
	ret->line = (uint32_t)line;
}

/* ---------------------------------------------------------------- the file */

static int add_record(struct jit_reader *r, const struct record_head *head, struct cursor *c)
{
	int e = 0;

	switch (head->kind) {
	case RECORD_LOAD:
		e = add_load(r, c);
		break;
	case RECORD_MOVE:
		e = add_move(r, c);
		break;
	case RECORD_DEBUG_INFO:
		return add_debug_info(r, c);
	default:
		return 0;
	}
	buf_reset(&r->j->lines);
	return e;
}

/* The bytes of a record that are looked at: not the code in a load record. */
static size_t looked_at(const struct record_head *head)
{
	const size_t max = head->kind == RECORD_LOAD ? JITDUMP_LOAD_SIZE + CODE_TABLE_NAME_MAX
						     : JITDUMP_RECORD_MAX;

	return head->size < max ? head->size : max;
}

/* The next complete record's head, and its bytes as far as they are looked at. */
static bool next_record(struct jit_reader *r, struct record_head *head, struct cursor *ret)
{
	struct jitdump *j = r->j;
	struct cursor c;

	if (j->off + sizeof(*head) > r->size || !look(r, j->off, sizeof(*head), &c))
		return false;
	memcpy(head, c.pos, sizeof(*head));
	if (!head->size || head->size > r->size - j->off)
		return false;
	if (head->size < sizeof(*head))
		return refuse(j, JITDUMP_BROKEN);
	return look(r, j->off, looked_at(head), ret) && cursor_skip(ret, sizeof(*head));
}

static int read_records(struct jit_reader *r)
{
	struct jitdump *j = r->j;
	struct record_head head;
	struct cursor c;
	int e = 0;

	while (!e && next_record(r, &head, &c) && work_budget_spend(r->work, JITDUMP_RECORD_COST)) {
		e = add_record(r, &head, &c);
		j->last = head;
		j->last_off = j->off;
		j->off += head.size;
	}
	return e;
}

int jitdump_read(struct jitdump *j, int fd, struct work_budget *work)
{
	_cleanup_(freep) struct jit_reader *r = NULL;
	struct stat st;
	int e;

	if (fstat(fd, &st) < 0 || st.st_size < 0)
		return 0;
	r = malloc(sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->j = j;
	r->fd = fd;
	r->work = work;
	r->size = (uint64_t)st.st_size;
	r->allowed = JITDUMP_READ_MAX;
	r->off = r->n = 0;
	if (!find_place(r))
		return 0;
	j->events[JITDUMP_READ]++;
	e = read_records(r);
	return e ? e : count_full(j, code_table_settle(&j->functions, work));
}

bool jitdump_find(const struct jitdump *j, uint64_t pc, struct jitdump_place *ret)
{
	struct code_function f;

	if (!code_table_find(&j->functions, pc, &f))
		return false;
	*ret = (struct jitdump_place){.function = f.name, .file = ""};
	find_line(j, &f, pc, ret);
	return true;
}

size_t jitdump_n(const struct jitdump *j)
{
	return j->functions.n;
}

size_t jitdump_bytes(const struct jitdump *j)
{
	return sizeof(*j) - sizeof(j->functions) + code_table_bytes(&j->functions) + j->lines.cap;
}

/* ---------------------------------------------------------------- the source */

static int source_refresh(void *opened, const struct source_file *file)
{
	return file->jitdump >= 0 ? jitdump_read(opened, file->jitdump, file->work) : 0;
}

static int source_open(const struct source_file *file, void **ret)
{
	struct jitdump *j;
	int r = jitdump_new(file->jitdump_events, &j);

	if (!r)
		*ret = j;
	return r;
}

static int source_find(void *opened, uint64_t vaddr, struct symbol_lines *lines)
{
	struct symbol_line line = {0};
	struct jitdump_place place;

	if (!jitdump_find(opened, vaddr, &place))
		return SOURCE_NONE;
	line.function = line.system_name = place.function;
	line.file = place.file;
	line.line = place.line;
	return symbol_lines_add(lines, &line);
}

static size_t source_bytes(const void *opened)
{
	return jitdump_bytes(opened);
}

static bool source_any(const void *opened)
{
	return jitdump_n(opened) != 0;
}

static void source_free(void *opened)
{
	jitdump_free(opened);
}

const struct symbol_source source_jitdump = {
	.name = "jitdump",
	.open = source_open,
	.refresh = source_refresh,
	.find = source_find,
	.bytes = source_bytes,
	.any = source_any,
	.free = source_free,
};
