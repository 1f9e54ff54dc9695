// SPDX-License-Identifier: Apache-2.0
/*
 * readelf --debug-dump=frames-interp prints the lines of each function's table: address, CFA and
 * the registers mentioned by the function. The oracle converts the three followed columns into the
 * expected rule. The rows of podprof must have this rule at all addresses of the line.
 *
 * The output lacks expressions (only "exp"), and does not separate undefined link registers from
 * unmentioned ones (both "u"). In these cases the oracle also reads the raw dump, and the rule must
 * follow from an expression of the function.
 *
 * A function whose program is all padding has no lines: the lines of the CIE apply. A function
 * partly covered by a later function is skipped and counted: readelf describes both.
 */
#include "support/rowsoracle.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/vec.h"
#include "elf/elffile.h"
#include "support/rowparse.h"
#include "unwind/ehframe.h"
#include "unwind/rowtext.h"
#include "unwindtable/table.h"

#define EVERYTHING  ((size_t)1 << 26) /* of anything */
#define KEY_SIZE    96
#define N_CFA	    8 /* different expressions of one function; the largest number seen is 6 */
#define N_FP	    4
#define N_COLUMNS   128
#define COMMAND_MAX 8192

DEFINE_CLEANUP(struct table *, table_freep, table_free);

/* The three columns of a line, as printed. */
struct want {
	char key[KEY_SIZE]; /* "cfa fp ra" */
	uint32_t id;
	bool signal;
	char cfa[32], fp[32], ra[32];
	UT_hash_handle hh;
};

struct line {
	uint64_t vaddr;
	uint32_t want;
};

/* A CIE or FDE. */
struct entry {
	uint64_t off;
	uint64_t start, end; /* of an FDE */
	uint64_t cie;
	size_t first, n; /* lines */
	bool is_cie;
	bool is_eh; /* or .debug_frame */
	bool signal;
	bool overlapped;
	/* from the raw dump */
	bool ra_undefined;
	struct expr cfa[N_CFA], fp[N_FP];
	unsigned int n_cfa, n_fp;
};

/* Where a CIE is among the entries. */
struct cie_at {
	uint64_t key;
	size_t index;
	UT_hash_handle hh;
};

struct oracle {
	const struct elffile *file;
	enum cfi_machine machine;
	const struct rows *rows;
	struct ehframe_stats stats;

	struct want *table;  /* by key */
	struct want **wants; /* by id */
	size_t n_wants, wants_cap;
	struct line *lines;
	size_t n_lines, lines_cap;
	struct entry *entries;
	size_t n_entries, entries_cap;
	struct cie_at *cies;
	bool is_eh;
	bool needs_raw;
	int fp_column, ra_column, sp_column, n_columns; /* of the next lines; -1 without */

	rowsoracle_told *told;
	void *ctx;
	struct rowsoracle_report *report;
};

uint64_t rowsoracle_unsupported(const struct rowsoracle_report *report)
{
	uint64_t n = 0;

	for (int i = 0; i < UNSUPPORTED_MAX; i++)
		n += report->unsupported[i];
	return n;
}

/* ---------------------------------------------------------------- lines of readelf */

static int find_want(struct oracle *o, const char *cfa, const char *fp, const char *ra, bool signal,
		     uint32_t *ret)
{
	bool hash_oom = false;
	struct want *want;
	char key[KEY_SIZE];
	int r;

	snprintf(key, sizeof(key), "%s %s %s %d", cfa, fp, ra, signal);
	HASH_FIND_STR(o->table, key, want);
	if (want) {
		*ret = want->id;
		return 0;
	}
	r = vec_grow(&o->wants, &o->wants_cap, o->n_wants + 1, sizeof(struct want *), EVERYTHING);
	if (r)
		return -ENOMEM;
	want = calloc(1, sizeof(*want));
	if (!want)
		return -ENOMEM;
	want->id = (uint32_t)o->n_wants;
	want->signal = signal;
	snprintf(want->key, sizeof(want->key), "%s", key);
	snprintf(want->cfa, sizeof(want->cfa), "%s", cfa);
	snprintf(want->fp, sizeof(want->fp), "%s", fp);
	snprintf(want->ra, sizeof(want->ra), "%s", ra);
	HASH_ADD_STR(o->table, key, want);
	if (hash_oom) {
		free(want);
		return -ENOMEM;
	}
	if (strcmp(cfa, "exp") == 0 || strcmp(fp, "exp") == 0 || strcmp(ra, "u") == 0)
		o->needs_raw = true;
	o->wants[o->n_wants++] = want;
	*ret = want->id;
	return 0;
}

static uint64_t cie_key(bool is_eh, uint64_t off)
{
	return off | (uint64_t)is_eh << 63;
}

static int add_cie(struct oracle *o, uint64_t off, size_t index)
{
	bool hash_oom = false;
	struct cie_at *at = calloc(1, sizeof(*at));

	if (!at)
		return -ENOMEM;
	at->key = cie_key(o->is_eh, off);
	at->index = index;
	HASH_ADD(hh, o->cies, key, sizeof(at->key), at);
	if (hash_oom)
		free(at);
	return hash_oom ? -ENOMEM : 0;
}

/* An FDE's, or NULL. */
static const struct entry *cie_of(const struct oracle *o, const struct entry *fde)
{
	uint64_t key = cie_key(fde->is_eh, fde->cie);
	const struct cie_at *at;

	HASH_FIND(hh, o->cies, &key, sizeof(key), at);
	return at ? &o->entries[at->index] : NULL;
}

static int add_entry(struct oracle *o, const struct entry *e)
{
	struct entry *added;

	if (vec_grow(&o->entries, &o->entries_cap, o->n_entries + 1, sizeof(*o->entries),
		     EVERYTHING))
		return -ENOMEM;
	added = &o->entries[o->n_entries];
	*added = *e;
	added->first = o->n_lines;
	added->is_eh = o->is_eh;
	if (e->is_cie)
		return add_cie(o, e->off, o->n_entries++);
	o->n_entries++;
	if (cie_of(o, added))
		added->signal = cie_of(o, added)->signal;
	return 0;
}

/* "000000a0 0000000000000034 00000074 FDE cie=00000030 pc=000000000000bfc0..000000000000c03d"
 * "00000030 0000000000000014 00000000 CIE "zR" cf=1 df=-8 ra=16" */
static bool parse_entry(const char *line, struct entry *ret)
{
	unsigned long long off, cie, start, end;
	char letters[32];

	*ret = (struct entry){0};
	// NOLINTBEGIN(cert-err34-c): readelf writes numbers
	if (sscanf(line, "%llx %*x %*x FDE cie=%llx pc=%llx..%llx", &off, &cie, &start, &end) ==
	    4) {
		ret->off = off;
		ret->cie = cie;
		ret->start = start;
		ret->end = end;
		return true;
	}
	if (sscanf(line, "%llx %*x %*x CIE \"%31[^\"]\"", &off, letters) == 2) {
		ret->off = off;
		ret->is_cie = true;
		ret->signal = strchr(letters, 'S') != NULL;
		return true;
	}
	if (strstr(line, " CIE \"\"") && sscanf(line, "%llx", &off) == 1) {
		ret->off = off;
		ret->is_cie = true;
		return true;
	}
	// NOLINTEND(cert-err34-c)
	return false;
}

/* The columns; "r1 (rdx)" is a single column, with the name as value. */
static int split(char *line, char *words[N_COLUMNS])
{
	int n = 0;
	char *save = NULL;

	for (char *w = strtok_r(line, " \n", &save); w && n < N_COLUMNS;
	     w = strtok_r(NULL, " \n", &save)) {
		if (w[0] == '(' && n > 0) {
			words[n - 1] = w + 1;
			w[strcspn(w, ")")] = '\0';
		} else {
			words[n++] = w;
		}
	}
	return n;
}

/* "   LOC           CFA      rbx   rbp   ra" */
static void parse_heading(struct oracle *o, char *line)
{
	const char *fp = o->machine == CFI_ARM64 ? "x29" : "rbp";
	const char *sp = o->machine == CFI_ARM64 ? "sp" : "rsp";
	char *words[N_COLUMNS];

	o->n_columns = split(line, words);
	o->fp_column = o->ra_column = o->sp_column = -1;
	for (int i = 2; i < o->n_columns; i++) {
		if (strcmp(words[i], fp) == 0)
			o->fp_column = i;
		if (strcmp(words[i], "ra") == 0)
			o->ra_column = i;
		if (strcmp(words[i], sp) == 0)
			o->sp_column = i;
	}
}

/* The return address's word; "sp" if the caller's stack pointer is not the CFA. */
static const char *ra_of(const struct oracle *o, char *const *words)
{
	const char *ra = o->ra_column < 0 ? "-" : words[o->ra_column];
	const char *sp = o->sp_column < 0 ? "u" : words[o->sp_column];

	if (strcmp(ra, "u") == 0 || strcmp(sp, "u") == 0 || strcmp(sp, "s") == 0 ||
	    strcmp(sp, "v+0") == 0)
		return ra;
	return "sp";
}

static int parse_line(struct oracle *o, char *line)
{
	struct entry *e = &o->entries[o->n_entries - 1];
	char *words[N_COLUMNS];
	struct line l;
	int n = split(line, words), r;

	if (n != o->n_columns || n < 2)
		return -EINVAL;
	l.vaddr = strtoull(words[0], NULL, 16);
	r = find_want(o, words[1], o->fp_column < 0 ? "u" : words[o->fp_column], ra_of(o, words),
		      e->signal, &l.want);
	if (!r && vec_grow(&o->lines, &o->lines_cap, o->n_lines + 1, sizeof(*o->lines), EVERYTHING))
		r = -ENOMEM;
	if (r)
		return r;
	o->lines[o->n_lines++] = l;
	e->n++;
	return 0;
}

static int parse_interpreted(struct oracle *o, char *line)
{
	struct entry e;

	if (strncmp(line, "Contents of", 11) == 0) {
		o->is_eh = strstr(line, "debug_frame") == NULL;
		return 0;
	}
	if (strncmp(line, "   LOC", 6) == 0) {
		parse_heading(o, line);
		return 0;
	}
	if (!strchr("0123456789abcdef", line[0]) || !line[0])
		return 0;
	if (parse_entry(line, &e))
		return add_entry(o, &e);
	/* a line's address has 16 digits, an entry's offset has 8 */
	return o->n_entries && strspn(line, "0123456789abcdef") == 16 ? parse_line(o, line) : 0;
}

/* ---------------------------------------------------------------- the raw dump */

/* "DW_OP_breg6 (rbp): -8; DW_OP_deref" and the other expressions with a rule. */
static struct expr parse_expression(const char *s)
{
	static const char plt[] = "DW_OP_breg7 (rsp): 8; DW_OP_breg16 (rip): 0; DW_OP_lit15; "
				  "DW_OP_and; DW_OP_lit%u; DW_OP_ge; DW_OP_lit3; DW_OP_shl; "
				  "DW_OP_plus)";
	struct expr ret = {.form = EXPR_OTHER};
	unsigned int reg, threshold;
	long long off, add;
	int n = 0;

	// NOLINTBEGIN(cert-err34-c): readelf writes numbers
	if (sscanf(s, plt, &threshold) == 1)
		return (struct expr){.form = EXPR_PLT, .off = threshold};
	if (sscanf(s, "DW_OP_breg%u (%*[^)]): %lld%n", &reg, &off, &n) != 2)
		return ret;
	s += n;
	ret = (struct expr){.form = EXPR_REG, .reg = (uint8_t)reg, .off = off};
	if (strcmp(s, ")\n") == 0)
		return ret;
	ret.form = EXPR_DEREF;
	if (strcmp(s, "; DW_OP_deref)\n") == 0)
		return ret;
	if (sscanf(s, "; DW_OP_deref; DW_OP_plus_uconst: %lld)", &add) == 1 ||
	    sscanf(s, "; DW_OP_deref; DW_OP_lit%lld; DW_OP_plus)", &add) == 1) {
		ret.add = add;
		return ret;
	}
	// NOLINTEND(cert-err34-c)
	return (struct expr){.form = EXPR_OTHER};
}

static void add_choice(struct expr *choices, unsigned int max, unsigned int *n, struct expr expr)
{
	for (unsigned int i = 0; i < *n; i++)
		if (choices[i].form == expr.form && choices[i].reg == expr.reg &&
		    choices[i].off == expr.off && choices[i].add == expr.add)
			return;
	if (*n < max)
		choices[(*n)++] = expr;
}

static void parse_instruction(const struct oracle *o, const char *line, struct entry *e)
{
	unsigned int fp = o->machine == CFI_ARM64 ? 29 : 6, ra = o->machine == CFI_ARM64 ? 30 : 16;
	unsigned int reg;
	int n = 0;

	// NOLINTBEGIN(cert-err34-c): readelf writes numbers
	if (sscanf(line, " DW_CFA_def_cfa_expression (%n", &n) == 0 && n > 0)
		add_choice(e->cfa, N_CFA, &e->n_cfa, parse_expression(line + n));
	else if (sscanf(line, " DW_CFA_expression: r%u (%*[^)]) (%n", &reg, &n) == 1 && n > 0 &&
		 reg == fp)
		add_choice(e->fp, N_FP, &e->n_fp, parse_expression(line + n));
	else if (sscanf(line, " DW_CFA_undefined: r%u", &reg) == 1 && reg == ra)
		e->ra_undefined = true;
	// NOLINTEND(cert-err34-c)
}

/* The entries come in the order of the other dump: @*at is the next one's number. */
static int parse_raw(struct oracle *o, char *line, size_t *at)
{
	unsigned long long off;

	if (line[0] == ' ') {
		if (*at > 0 && *at <= o->n_entries)
			parse_instruction(o, line, &o->entries[*at - 1]);
		return 0;
	}
	// NOLINTNEXTLINE(cert-err34-c): readelf writes numbers
	if ((!strstr(line, " CIE") && !strstr(line, " FDE ")) || sscanf(line, "%llx", &off) != 1)
		return 0;
	if (*at >= o->n_entries || o->entries[*at].off != off)
		return -EINVAL;
	++*at;
	return 0;
}

/* ---------------------------------------------------------------- running readelf */

static int run_readelf(struct oracle *o, const char *path, const char *what, bool raw)
{
	_cleanup_(freep) char *line = NULL;
	char command[COMMAND_MAX];
	size_t size = 0, at = 0;
	FILE *out;
	int r = 0;

	if (strchr(path, '\'') || strlen(path) > COMMAND_MAX - 256)
		return -EINVAL;
	snprintf(command, sizeof(command),
		 "LC_ALL=C readelf --debug-dump=%s,no-follow-links '%s' 2>/dev/null", what, path);
	out = popen(command, "re"); // NOLINT(bugprone-command-processor,cert-env33-c)
	if (!out)
		return -errno;
	while (!r && getline(&line, &size, out) > 0)
		r = raw ? parse_raw(o, line, &at) : parse_interpreted(o, line);
	pclose(out);
	return r;
}

/* ---------------------------------------------------------------- expected rules */

/* Into @ret's text; false if there is no such rule, with the reason set. */
static bool cfa_text(const struct oracle *o, const struct want *w, const struct expr *expr,
		     char text[ROWTEXT_MAX], int *why)
{
	struct unwind_rule rule = {0};
	char *space;

	if (strcmp(w->cfa, "exp") != 0) {
		snprintf(text, ROWTEXT_MAX, "cfa=%s", w->cfa);
		*why = UNSUPPORTED_CFA_REGISTER;
		return true;
	}
	*why = UNSUPPORTED_CFA_EXPRESSION;
	if (expr->form == EXPR_OTHER)
		return false;
	rule.cfa = expr->form == EXPR_PLT   ? UNWIND_CFA_PLT
		   : expr->form == EXPR_REG ? UNWIND_CFA_REG
					    : UNWIND_CFA_DEREF;
	rule.cfa_reg = expr->reg;
	rule.cfa_off = (int32_t)expr->off;
	rule.cfa_add = (int16_t)expr->add;
	rowtext_print(o->machine, &rule, text);
	space = strchr(text, ' ');
	if (space)
		*space = '\0';
	return true;
}

/* "u", "s", "c-16", "v-16", "exp", "vexp" or a register. */
static bool fp_text(const struct oracle *o, const struct want *w, const struct expr *expr,
		    char text[ROWTEXT_MAX], int *why)
{
	const char *fp = o->machine == CFI_ARM64 ? "x29" : "rbp";

	if (strcmp(w->fp, "u") == 0 || strcmp(w->fp, "s") == 0 || strcmp(w->fp, "n/a") == 0 ||
	    strcmp(w->fp, fp) == 0) {
		snprintf(text, ROWTEXT_MAX, "fp=same");
		return true;
	}
	if (w->fp[0] == 'c') {
		snprintf(text, ROWTEXT_MAX, "fp=cfa%s", w->fp + 1);
		return true;
	}
	*why = w->fp[0] == 'v' ? UNSUPPORTED_FP_VALUE : UNSUPPORTED_FP_REGISTER;
	if (strcmp(w->fp, "exp") != 0)
		return false;
	*why = UNSUPPORTED_FP_EXPRESSION;
	if (expr->form != EXPR_REG || expr->reg != (o->machine == CFI_ARM64 ? 29 : 6))
		return false;
	snprintf(text, ROWTEXT_MAX, "fp=deref(%s%+" PRId64 ")", fp, expr->off);
	return true;
}

static bool ra_text(const struct oracle *o, const struct want *w, char text[ROWTEXT_MAX], int *why)
{
	if (w->ra[0] == 'c') {
		long off = strtol(w->ra + 1, NULL, 10);

		/* AArch64 saves the link register at the bottom of the frame; a rule has 16 bits
		 * for the offset */
		*why = UNSUPPORTED_RA_OFFSET;
		snprintf(text, ROWTEXT_MAX, "ra=cfa%s", w->ra + 1);
		return off >= INT16_MIN && off <= INT16_MAX;
	}
	*why = UNSUPPORTED_RA_NONE;
	if (strcmp(w->ra, "u") == 0 || strcmp(w->ra, "s") == 0 || strcmp(w->ra, "-") == 0 ||
	    strcmp(w->ra, "n/a") == 0) {
		snprintf(text, ROWTEXT_MAX, "ra=x30");
		return o->machine == CFI_ARM64;
	}
	*why = UNSUPPORTED_SP;
	if (strcmp(w->ra, "sp") == 0)
		return false;
	*why = w->ra[0] == 'v' ? UNSUPPORTED_RA_VALUE : UNSUPPORTED_RA_EXPRESSION;
	if (w->ra[0] == 'v' || strcmp(w->ra, "exp") == 0)
		return false;
	snprintf(text, ROWTEXT_MAX, "ra=%s", w->ra);
	return true;
}

static struct unwind_rule should_be(const struct oracle *o, const struct want *w, bool stop,
				    const struct expr *cfa, const struct expr *fp)
{
	char text[3 * ROWTEXT_MAX], cfa_part[ROWTEXT_MAX], fp_part[ROWTEXT_MAX],
		ra_part[ROWTEXT_MAX];
	struct unwind_rule rule = {.cfa = UNWIND_CFA_STOP};
	int why = 0;

	if (w->signal)
		return (struct unwind_rule){.cfa = UNWIND_CFA_SIGNAL};
	if (stop)
		return rule;
	if (cfa_text(o, w, cfa, cfa_part, &why) && fp_text(o, w, fp, fp_part, &why) &&
	    ra_text(o, w, ra_part, &why)) {
		snprintf(text, sizeof(text), "%s %s %s", cfa_part, fp_part, ra_part);
		if (rowparse(o->machine, strview_of(text), &rule))
			return rule;
	}
	return (struct unwind_rule){.cfa = UNWIND_CFA_UNSUPPORTED, .cfa_off = why};
}

/* A CIE's rules also apply to its FDEs; an FDE without lines has all lines of its CIE. */
static void inherit(const struct oracle *o, struct entry *e)
{
	const struct entry *cie = cie_of(o, e);

	if (!cie)
		return;
	for (unsigned int i = 0; i < cie->n_cfa; i++)
		add_choice(e->cfa, N_CFA, &e->n_cfa, cie->cfa[i]);
	for (unsigned int i = 0; i < cie->n_fp; i++)
		add_choice(e->fp, N_FP, &e->n_fp, cie->fp[i]);
	e->ra_undefined |= cie->ra_undefined;
	if (!e->n) {
		e->first = cie->first;
		e->n = cie->n;
	}
}

static bool is_right(const struct oracle *o, const struct entry *e, const struct want *w,
		     const struct unwind_rule *ours)
{
	static const struct expr none = {.form = EXPR_OTHER};
	bool undefined = strcmp(w->ra, "u") == 0;

	for (unsigned int i = 0; i < (e->n_cfa ? e->n_cfa : 1); i++)
		for (unsigned int j = 0; j < (e->n_fp ? e->n_fp : 1); j++)
			for (int stop = 0; stop < 2; stop++) {
				struct unwind_rule rule;

				/* "u" of the link register may also mean: not mentioned */
				if (stop ? !undefined || !e->ra_undefined
					 : undefined && o->machine == CFI_X86_64)
					continue;
				rule = should_be(o, w, stop, e->n_cfa ? &e->cfa[i] : &none,
						 e->n_fp ? &e->fp[j] : &none);
				if (memcmp(&rule, ours, sizeof(rule)) == 0)
					return true;
			}
	return false;
}

/* ---------------------------------------------------------------- comparing */

static void tell(const struct oracle *o, uint64_t vaddr, const struct want *w, uint32_t rule)
{
	char ours[ROWTEXT_MAX];

	if (o->told)
		o->told(o->ctx, vaddr, w ? w->key : "gap",
			rowtext_print(o->machine, rows_rule(o->rows, rule), ours));
}

static void count(const struct oracle *o, const struct unwind_rule *rule)
{
	struct rowsoracle_report *report = o->report;

	report->stops += rule->cfa == UNWIND_CFA_STOP;
	report->signals += rule->cfa == UNWIND_CFA_SIGNAL;
	report->expressions += rule->cfa == UNWIND_CFA_PLT || rule->cfa == UNWIND_CFA_DEREF ||
			       rule->fp == UNWIND_FP_DEREF;
	if (rule->cfa == UNWIND_CFA_UNSUPPORTED)
		report->unsupported[rule->cfa_off]++;
	else
		report->equal++;
}

/* Pairs of line and rule already found right, because most repeat; not for results that depend on
 * the function. */
#define MEMO_SIZE 4096u

struct memo {
	uint64_t pairs[MEMO_SIZE];
};

static bool is_right_memo(const struct oracle *o, const struct entry *e, const struct want *w,
			  uint32_t rule, struct memo *memo)
{
	uint64_t pair = (uint64_t)(w->id + 1) << 32 | rule;
	uint64_t *slot = &memo->pairs[(w->id * 31 + rule) % MEMO_SIZE];
	bool plain = !e->n_cfa && !e->n_fp && !e->ra_undefined;

	if (plain && *slot == pair)
		return true;
	if (!is_right(o, e, w, rows_rule(o->rows, rule)))
		return false;
	if (plain)
		*slot = pair;
	return true;
}

static void compare_line(const struct oracle *o, const struct entry *e, uint64_t start,
			 uint64_t end, const struct want *w, struct memo *memo)
{
	size_t i = rows_find(o->rows, start);
	uint32_t rule = 0;

	o->report->rows++;
	do {
		rule = i == (size_t)-1 ? 0 : rows_at(o->rows, i).rule;
		if (!is_right_memo(o, e, w, rule, memo)) {
			o->report->different++;
			tell(o, start, w, rule);
			return;
		}
		i++;
	} while (i < rows_count(o->rows) && rows_at(o->rows, i).vaddr < end);
	count(o, rows_rule(o->rows, rule));
	if (rows_rule(o->rows, rule)->cfa == UNWIND_CFA_UNSUPPORTED)
		tell(o, start, w, rule);
}

static void compare_entry(const struct oracle *o, const struct entry *e, struct memo *memo)
{
	o->report->functions++;
	for (size_t i = 0; i < e->n; i++) {
		const struct line *l = &o->lines[e->first + i];
		uint64_t start = i ? l->vaddr : e->start;
		uint64_t end = i + 1 < e->n ? l[1].vaddr : e->end;

		if (end > e->end)
			end = e->end;
		if (start < end)
			compare_line(o, e, start, end, o->wants[l->want], memo);
	}
}

/* Between functions nothing is described. */
static void compare_gap(const struct oracle *o, uint64_t start, uint64_t end)
{
	size_t i = rows_find(o->rows, start);
	struct row row = rows_at(o->rows, i);

	if (row.rule == 0 && (i + 1 == rows_count(o->rows) || rows_at(o->rows, i + 1).vaddr >= end))
		return;
	o->report->different++;
	tell(o, start, NULL, row.rule);
}

/* The walker's lookup at one address of a row. */
static void compare_lookup(const struct oracle *o, const struct table *table, uint64_t vaddr,
			   const struct unwind_rule *row)
{
	char theirs[ROWTEXT_MAX], ours[ROWTEXT_MAX];
	struct unwind_rule rule = {0};

	o->report->packed++;
	if (table_lookup(table, vaddr, &rule) != TABLE_TORN &&
	    memcmp(&rule, row, sizeof(rule)) == 0)
		return;
	o->report->different++;
	if (o->told)
		o->told(o->ctx, vaddr, rowtext_print(o->machine, row, theirs),
			rowtext_print(o->machine, &rule, ours));
}

/* Nothing of the rows gets lost in the packed table. */
static int compare_packed(const struct oracle *o)
{
	_cleanup_(table_freep) struct table *table = NULL;
	size_t n = rows_count(o->rows);
	int r = table_pack(o->rows, &table);

	if (r)
		return r < 0 ? r : 0; /* none: there is nothing to look up */
	for (size_t i = 0; i < n; i++) {
		struct row row = rows_at(o->rows, i);
		const struct unwind_rule *rule = rows_rule(o->rows, row.rule);

		compare_lookup(o, table, row.vaddr, rule);
		if (i + 1 < n)
			compare_lookup(o, table, rows_at(o->rows, i + 1).vaddr - 1, rule);
	}
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct entry *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->end < right->end ? -1 : left->end > right->end;
}

/* Higher is later in the file, and .eh_frame above .debug_frame. */
static bool wins(const struct entry *a, const struct entry *b)
{
	return a->is_eh != b->is_eh ? a->is_eh : a->off > b->off;
}

/* The FDEs of code, sorted; to the front of a new array. */
static struct entry *arrange(struct oracle *o, uint64_t text_start, uint64_t text_end,
			     size_t *ret_n)
{
	struct entry *fdes = calloc(o->n_entries + 1, sizeof(*fdes));
	size_t n = 0;

	for (size_t i = 0; fdes && i < o->n_entries; i++) {
		const struct entry *e = &o->entries[i];

		if (e->is_cie || !e->start || e->end <= e->start || e->start < text_start ||
		    e->end > text_end)
			continue;
		fdes[n] = *e;
		inherit(o, &fdes[n++]);
	}
	if (fdes)
		qsort(fdes, n, sizeof(*fdes), by_start);
	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n && fdes[j].start < fdes[i].end; j++)
			fdes[wins(&fdes[i], &fdes[j]) ? j : i].overlapped = true;
	*ret_n = n;
	return fdes;
}

static int compare(struct oracle *o)
{
	_cleanup_(freep) struct memo *memo = calloc(1, sizeof(*memo));
	_cleanup_(freep) struct entry *fdes = NULL;
	uint64_t text_start = 0, text_end = 0, covered = 0;
	size_t n;

	if (!memo || ehframe_text(o->file, &text_start, &text_end))
		return -ENOMEM;
	fdes = arrange(o, text_start, text_end, &n);
	if (!fdes)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct entry *e = &fdes[i];
		uint64_t start = e->signal ? e->start - 1 : e->start;

		if (covered && start > covered && start - covered > ROWS_PADDING_MAX)
			compare_gap(o, covered, start);
		covered = e->end > covered ? e->end : covered;
		if (e->overlapped)
			o->report->overlapped++;
		else
			compare_entry(o, e, memo);
	}
	return compare_packed(o);
}

/* ---------------------------------------------------------------- the comparison */

static void oracle_deinit(struct oracle *o)
{
	struct cie_at *at, *next;

	HASH_CLEAR(hh, o->table);
	HASH_ITER(hh, o->cies, at, next) {
		HASH_DELETE(hh, o->cies, at);
		free(at);
	}
	for (size_t i = 0; i < o->n_wants; i++)
		free(o->wants[i]);
	free(o->wants);
	free(o->lines);
	free(o->entries);
}

static int open_elf(const char *path, struct elffile **ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;

	if (fd < 0)
		return -errno;
	r = elffile_open(fd, ret);
	if (r)
		close(fd);
	return r;
}

/* The rows from the file's tables alone, without podprof's other knowledge of the code. */
static int read_rows(struct oracle *o, struct rows **ret)
{
	_cleanup_(rows_freep) struct rows *rows = NULL;
	const struct described none = {0};
	uint64_t start, end;
	int r = ehframe_text(o->file, &start, &end);

	if (!r)
		r = rows_new(start, end, &rows);
	if (!r)
		r = ehframe_add(o->file, rows, &o->stats);
	if (!r)
		r = ehframe_add_debug(o->file, &none, rows, &o->stats);
	if (!r)
		r = rows_finish(rows);
	if (!r)
		*ret = take_ptr(rows);
	return r;
}

int rowsoracle_compare(const char *path, rowsoracle_told *told, void *ctx,
		       struct rowsoracle_report *report)
{
	_cleanup_(elffile_freep) struct elffile *file = NULL;
	_cleanup_(rows_freep) struct rows *rows = NULL;
	_cleanup_(oracle_deinit) struct oracle o = {.told = told, .ctx = ctx, .report = report};
	int r = open_elf(path, &file);

	o.file = file;
	if (!r)
		r = read_rows(&o, &rows);
	if (r)
		return r < 0 ? r : ROWSORACLE_NO_TABLES;
	o.rows = rows;
	o.machine = elffile_machine(file) == EM_AARCH64 ? CFI_ARM64 : CFI_X86_64;
	r = run_readelf(&o, path, "frames-interp", false);
	if (!r && o.needs_raw)
		r = run_readelf(&o, path, "frames", true);
	if (r)
		return r;
	if (!o.n_entries)
		return ROWSORACLE_NO_TABLES;
	report->bytes += o.stats.bytes;
	for (unsigned int i = 0; i < EHFRAME_SKIP_MAX; i++)
		report->skipped += i == EHFRAME_SKIP_NO_CODE ? 0 : o.stats.skipped[i];
	return compare(&o);
}
