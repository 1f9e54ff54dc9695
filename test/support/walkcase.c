// SPDX-License-Identifier: Apache-2.0
/* The files are podprof's own. The parser still checks all bounds, because people edit the files.
 */
#include "support/walkcase.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/line_reader.h"
#include "base/strview.h"
#include "base/vec.h"
#include "profile/sample.h"
#include "shared/sample.h"
#include "shared/settings.h"
#include "support/rowparse.h"
#include "unwind/rows.h"
#include "unwindtable/table.h"

DEFINE_CLEANUP(struct walkcase *, walkcase_freep, walkcase_free);
DEFINE_CLEANUP(struct table *, table_freep, table_free);

#define WORD 8

static const char *const outcome_names[WALKCASE_OUTCOME_MAX] = {
	[WALKCASE_OK] = "ok",		[WALKCASE_MACHINE] = "machine", [WALKCASE_WORD] = "word",
	[WALKCASE_NUMBER] = "number",	[WALKCASE_NAMED] = "named",	[WALKCASE_RULE] = "rule",
	[WALKCASE_ORDER] = "order",	[WALKCASE_FULL] = "full",	[WALKCASE_LONG] = "long",
	[WALKCASE_NOTHING] = "nothing", [WALKCASE_TABLE] = "table",
};

const char *walkcase_outcome_name(int outcome)
{
	return outcome >= 0 && outcome < WALKCASE_OUTCOME_MAX ? outcome_names[outcome] : "error";
}

/* ---------------------------------------------------------------- parts of a line */

static bool word_u64(struct strview *t, uint64_t *ret)
{
	struct strview word;

	return strview_word(t, &word) && strview_only_u64(word, 16, ret);
}

/* The last number of a line. */
static int only_u64(struct strview *t, uint64_t *ret)
{
	if (!word_u64(t, ret))
		return WALKCASE_NUMBER;
	strview_skip_blanks(t);
	return strview_empty(t) ? 0 : WALKCASE_NUMBER;
}

static void copy_name(struct strview word, char ret[WALKCASE_NAME])
{
	const size_t n =
		strview_len(&word) < WALKCASE_NAME ? strview_len(&word) : WALKCASE_NAME - 1;

	memcpy(ret, word.p, n);
	ret[n] = '\0';
}

/* An image's number, assigned at the first mention. 0 or an outcome. */
static int image_number(struct walkcase *c, struct strview *t, uint32_t *ret)
{
	char name[WALKCASE_NAME];
	struct strview word;

	if (!strview_word(t, &word))
		return WALKCASE_NAMED;
	copy_name(word, name);
	*ret = 0;
	if (strcmp(name, "-") == 0)
		return 0;
	for (uint32_t i = 1; i < c->n_images; i++)
		if (strcmp(c->images[i], name) == 0)
			*ret = i;
	if (*ret)
		return 0;
	if (c->n_images == WALKCASE_IMAGES)
		return WALKCASE_FULL;
	strcpy(c->images[c->n_images], name);
	*ret = c->n_images++;
	return 0;
}

static int full(int r)
{
	return r > 0 ? WALKCASE_FULL : r;
}

/* ---------------------------------------------------------------- lines */

static int read_machine(struct walkcase *c, struct strview *t)
{
	strview_skip_blanks(t);
	if (strview_is(t, "x86-64"))
		c->machine = CFI_X86_64;
	else if (strview_is(t, "aarch64"))
		c->machine = CFI_ARM64;
	else
		return WALKCASE_MACHINE;
	return 0;
}

static int read_mode(struct walkcase *c, struct strview *t)
{
	strview_skip_blanks(t);
	if (strview_is(t, "auto"))
		c->mode = SETTINGS_UNWIND_AUTO;
	else if (strview_is(t, "fp"))
		c->mode = SETTINGS_UNWIND_FP;
	else if (strview_is(t, "dwarf"))
		c->mode = SETTINGS_UNWIND_DWARF;
	else
		return WALKCASE_NAMED;
	return 0;
}

static int read_in_syscall(struct walkcase *c, struct strview *t)
{
	strview_skip_blanks(t);
	c->in_syscall = true;
	return strview_empty(t) ? 0 : WALKCASE_NUMBER;
}

/* Storage of the named register; NULL for an unknown name. */
static uint64_t *find_register(struct walkcase *c, struct strview name)
{
	static const char *const x86[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
					  "r8",	 "r9",	"r10", "r11", "r12", "r13", "r14", "r15"};
	uint64_t number;

	if (strview_is(&name, c->machine == CFI_ARM64 ? "pc" : "rip"))
		return &c->pc;
	if (c->machine == CFI_ARM64) {
		if (strview_is(&name, "sp"))
			return &c->regs[31];
		if (!strview_char(&name, 'x') || !strview_only_u64(name, 10, &number) ||
		    number > 30)
			return NULL;
		return &c->regs[number];
	}
	if (strview_is(&name, "fs_base"))
		return &c->thread_pointer;
	for (size_t i = 0; i < array_size(x86); i++)
		if (strview_is(&name, x86[i]))
			return &c->regs[i];
	return NULL;
}

static int read_register(struct walkcase *c, struct strview *t)
{
	uint64_t *reg;
	struct strview name;

	if (!strview_word(t, &name))
		return WALKCASE_NAMED;
	reg = find_register(c, name);
	return reg ? only_u64(t, reg) : WALKCASE_NAMED;
}

static int read_mapping(struct walkcase *c, struct strview *t)
{
	struct walkcase_mapping m;
	int r;

	if (!word_u64(t, &m.start) || !word_u64(t, &m.limit) || !word_u64(t, &m.bias))
		return WALKCASE_NUMBER;
	r = image_number(c, t, &m.image);
	if (r)
		return r;
	if (m.limit <= m.start || (c->n_mappings && m.start < c->mappings[c->n_mappings - 1].limit))
		return WALKCASE_ORDER;
	r = vec_grow(&c->mappings, &c->mappings_cap, c->n_mappings + 1, sizeof(m),
		     WALKCASE_MAPPINGS);
	if (!r)
		c->mappings[c->n_mappings++] = m;
	return full(r);
}

static int read_row(struct walkcase *c, struct strview *t)
{
	struct walkcase_row row = {0};
	int r = image_number(c, t, &row.image);

	if (r)
		return r;
	if (!word_u64(t, &row.start) || !word_u64(t, &row.end))
		return WALKCASE_NUMBER;
	if (row.end <= row.start)
		return WALKCASE_ORDER;
	strview_skip_blanks(t);
	if (!row.image || !rowparse(c->machine, *t, &row.rule))
		return WALKCASE_RULE;
	r = vec_grow(&c->rows, &c->rows_cap, c->n_rows + 1, sizeof(row), WALKCASE_ROWS);
	if (!r)
		c->rows[c->n_rows++] = row;
	return full(r);
}

static int add_word(struct walkcase *c, uint64_t address, uint64_t value)
{
	int r;

	if (address % WORD || (c->n_words && address <= c->words[c->n_words - 1].address))
		return WALKCASE_ORDER;
	r = vec_grow(&c->words, &c->words_cap, c->n_words + 1, sizeof(*c->words), WALKCASE_WORDS);
	if (!r)
		c->words[c->n_words++] = (struct walkcase_word){address, value};
	return full(r);
}

static int read_memory(struct walkcase *c, struct strview *t)
{
	uint64_t address, value;
	int r = 0;

	if (!word_u64(t, &address))
		return WALKCASE_NUMBER;
	for (strview_skip_blanks(t); !r && !strview_empty(t);
	     strview_skip_blanks(t), address += WORD) {
		if (!word_u64(t, &value))
			return WALKCASE_NUMBER;
		r = add_word(c, address, value);
	}
	return r;
}

static int read_frame(struct walkcase *c, struct strview *t)
{
	struct walkcase_frame frame;
	int r;

	if (!word_u64(t, &frame.pc))
		return WALKCASE_NUMBER;
	strview_skip_blanks(t);
	copy_name(*t, frame.name);
	r = vec_grow(&c->frames, &c->frames_cap, c->n_frames + 1, sizeof(frame), WALKCASE_FRAMES);
	if (!r)
		c->frames[c->n_frames++] = frame;
	return full(r);
}

static int read_end(struct walkcase *c, struct strview *t)
{
	strview_skip_blanks(t);
	for (unsigned int i = 0; i < SAMPLE_END_MAX; i++)
		if (strview_is(t, sample_stat_name(i)))
			c->end = i;
	return c->end == SAMPLE_END_MAX ? WALKCASE_NAMED : 0;
}

/* ---------------------------------------------------------------- the file */

struct reader {
	struct walkcase *c;
	size_t n_lines;
	size_t n_said; /* lines with content */
	size_t n_long;
};

static const struct {
	const char *word;
	int (*read)(struct walkcase *c, struct strview *t);
} readers[] = {
	{"machine", read_machine}, {"unwind", read_mode}, {"in_syscall", read_in_syscall},
	{"reg", read_register},	   {"map", read_mapping}, {"row", read_row},
	{"mem", read_memory},	   {"frame", read_frame}, {"end", read_end},
};

static int take_line(void *ctx, struct strview line)
{
	struct reader *rd = ctx;
	struct strview word, rest;

	rd->n_lines++;
	if (rd->n_long)
		return WALKCASE_LONG;
	if (!strview_until(&line, '#', &rest) || !strview_word(&rest, &word))
		return 0;
	for (size_t i = 0; i < array_size(readers); i++) {
		if (!strview_is(&word, readers[i].word))
			continue;
		if (!rd->n_said++ != (i == 0)) /* the machine comes first, and once */
			return WALKCASE_MACHINE;
		while (rest.end > rest.p && (rest.end[-1] == ' ' || rest.end[-1] == '\t'))
			rest.end--;
		return readers[i].read(rd->c, &rest);
	}
	return WALKCASE_WORD;
}

/* The executable's number of an image, 0 if there are no rows of it; -errno; an outcome in @why. */
static int add_image(struct walkcase *c, uint32_t image, int *why)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(table_freep) struct table *table = NULL;
	uint64_t start = UINT64_MAX, end = 0;
	int r;

	for (size_t i = 0; i < c->n_rows; i++) {
		if (c->rows[i].image != image)
			continue;
		start = c->rows[i].start < start ? c->rows[i].start : start;
		end = c->rows[i].end > end ? c->rows[i].end : end;
	}
	if (!end)
		return 0;
	r = rows_new(start, end, &rows);
	for (size_t i = 0; !r && i < c->n_rows; i++) {
		const struct walkcase_row *row = &c->rows[i];

		if (row->image != image)
			continue;
		r = rows_begin(rows, ROWS_EH_FRAME, row->start, row->end);
		if (!r)
			r = rows_add(rows, row->start, &row->rule);
		if (!r)
			r = rows_end(rows);
	}
	if (!r)
		r = rows_finish(rows);
	if (!r)
		r = table_pack(rows, &table);
	*why = r > 0 ? WALKCASE_TABLE : 0;
	return r ? (r < 0 ? r : 0) : hostspace_add_table(&c->space, table);
}

/* Build the kernel's form. */
static int build(struct walkcase *c)
{
	int exes[WALKCASE_IMAGES] = {0}, why = 0;
	int r = hostspace_init(&c->space, c->n_mappings);

	for (uint32_t i = 1; !r && i < c->n_images; i++) {
		exes[i] = add_image(c, i, &why);
		r = exes[i] < 0 ? exes[i] : why;
	}
	for (size_t i = 0; !r && i < c->n_mappings; i++) {
		const struct walkcase_mapping *m = &c->mappings[i];

		hostspace_map(&c->space, i,
			      &(struct process_mapping){
				      .start_pages = m->start >> PROCESS_PAGE_SHIFT,
				      .n_pages = (m->limit - m->start) >> PROCESS_PAGE_SHIFT,
				      .bias_pages = m->bias >> PROCESS_PAGE_SHIFT,
				      .exe = (uint16_t)exes[m->image],
			      });
	}
	return r;
}

int walkcase_read(int fd, struct walkcase **ret, size_t *ret_line)
{
	_cleanup_(walkcase_freep) struct walkcase *c = calloc(1, sizeof(*c));
	struct reader rd = {.c = c};
	int r;

	if (!c)
		return -ENOMEM;
	c->n_images = 1;
	c->end = SAMPLE_END_MAX;
	r = line_reader_read(fd, take_line, &rd, &rd.n_long);
	*ret_line = rd.n_lines;
	if (!r && rd.n_long)
		r = WALKCASE_LONG;
	if (r)
		return r;
	*ret_line = 0;
	if (!c->n_frames || c->end == SAMPLE_END_MAX)
		return WALKCASE_NOTHING;
	r = build(c);
	if (!r)
		*ret = take_ptr(c);
	return r;
}

int walkcase_load(const char *path, struct walkcase **ret, size_t *ret_line)
{
	_cleanup_(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	*ret_line = 0;
	return fd < 0 ? -errno : walkcase_read(fd, ret, ret_line);
}

void walkcase_free(struct walkcase *c)
{
	if (!c)
		return;
	hostspace_deinit(&c->space);
	free(c->mappings);
	free(c->rows);
	free(c->words);
	free(c->frames);
	free(c);
}

void walkcase_walk(struct walkcase *c, struct walkcase_stack *ret)
{
	if (c->machine == CFI_ARM64)
		walkcase_walk_arm64(c, ret);
	else
		walkcase_walk_x86(c, ret);
}
