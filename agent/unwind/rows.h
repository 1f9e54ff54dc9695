/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_UNWIND_ROWS_H
#define PODPROF_UNWIND_ROWS_H

/*
 * The unwind rows of one image: for each place of its code, the rule that finds the caller. Sources
 * add ranges of code in any order, each with its rows. rows_finish() makes an ascending list of
 * them. Each row there reaches to the next row's address, and undescribed code is a gap.
 *
 *	rows_new(text_start, text_end, &rows)
 *	for each range (an FDE, a Go function, a synthetic one):
 *		rows_begin(rows, source, start, end)
 *		rows_add(rows, vaddr, &rule)...         ascending, the first one at start
 *		rows_end(rows), or rows_drop(rows) if the range is invalid
 *	rows_finish(rows)
 *	for (i = 0; i < rows_count(rows); i++)
 *		rows_at(rows, i), rows_rule(rows, id)
 *
 * Ranges may have any origin: this file knows neither ELF nor DWARF. All addresses are ELF virtual
 * addresses. One thread at a time; no global state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "shared/unwind.h"

/* Rows of one image: 32 MiB during the collection and as much again during the sort. The largest
 * program seen, of 200 MB, has 1.3 million. Above it, ROWS_FULL. Reached: `rows_full`: the image is
 * walked by frame pointers. */
#define ROWS_MAX (1u << 22)

/* Distinct rules of one image; the largest seen has 1,125. A row with a further rule is
 * UNWIND_CFA_UNSUPPORTED for UNSUPPORTED_TOO_MANY_RULES. Reached: the row says
 * `unsupported=too_many_rules`. */
#define ROWS_RULES_MAX (1u << 15)

/* Bytes between two ranges that count as padding of the first range; more are a gap. Reached: a row
 * for the gap. */
#define ROWS_PADDING_MAX 15

enum rows_outcome {
	ROWS_OK = 0,
	ROWS_FULL,    /* ROWS_MAX would be passed */
	ROWS_OUTSIDE, /* the range is empty or leaves the text */
	ROWS_OUTCOME_MAX,
};

/*
 * The source of a range. Where ranges overlap, the higher source wins; of the same source, the
 * later range.
 */
enum rows_source {
	ROWS_CODE = 0, /* scanned from the code itself (codescan.h) */
	ROWS_DEBUG_FRAME,
	ROWS_EH_FRAME,
	ROWS_GO,	/* Go's own tables (gorows.h) */
	ROWS_SYNTHETIC, /* better knowledge than the file's tables */
	ROWS_SOURCE_MAX,
};

/* The reason of UNWIND_CFA_UNSUPPORTED: in its cfa_off. */
enum rows_unsupported {
	UNSUPPORTED_CFA_EXPRESSION = 1,
	UNSUPPORTED_CFA_REGISTER, /* not a general register */
	UNSUPPORTED_CFA_OFFSET,	  /* does not fit the rule */
	UNSUPPORTED_CFA_NONE,	  /* no definition found */
	UNSUPPORTED_FP_REGISTER,  /* saved in another register */
	UNSUPPORTED_FP_EXPRESSION,
	UNSUPPORTED_FP_VALUE, /* computed, not saved */
	UNSUPPORTED_FP_OFFSET,
	UNSUPPORTED_RA_REGISTER,
	UNSUPPORTED_RA_EXPRESSION,
	UNSUPPORTED_RA_VALUE,
	UNSUPPORTED_RA_OFFSET,
	UNSUPPORTED_RA_NONE,
	UNSUPPORTED_SP,	    /* the caller's is not the CFA */
	UNSUPPORTED_SIGNAL, /* a signal frame of another form than the kernel's */
	UNSUPPORTED_TOO_MANY_RULES,
	UNSUPPORTED_MAX,
};

struct row {
	uint64_t vaddr;
	uint32_t rule; /* for rows_rule(); 0 is the gap */
};

struct rows;

/* For an image with its code in [@text_start, @text_end). Ranges outside are refused, and so are
 * addresses 2^40 and more above @text_start. 0 or -ENOMEM. */
int rows_new(uint64_t text_start, uint64_t text_end, struct rows **ret);
/* New rows with a range of source ROWS_EH_FRAME for each part of @known, which is finished, between
 * gaps; and with the rules of @known by the same numbers. 0 or -ENOMEM. */
int rows_copy(const struct rows *known, uint64_t text_end, struct rows **ret);
void rows_free(struct rows *rows);
DEFINE_CLEANUP(struct rows *, rows_freep, rows_free);

/* Makes room for some @n rows and ends of ranges, which the caller expects: growing would copy them
 * several times. 0 or -ENOMEM. */
int rows_reserve(struct rows *rows, size_t n);

/* Begin the range [@start, @end). 0; ROWS_OUTSIDE, and there is no range. */
int rows_begin(struct rows *rows, enum rows_source source, uint64_t start, uint64_t end);

/**
 * rows_add() - add the rule from one address of the range on
 * @vaddr: ascending; a second rule at the same address replaces the first, and an address at the
 *         range's end or after is left out
 * @rule:  copied; unused members must be 0
 *
 * The part of the range before its first row is a gap.
 *
 * Return: 0; ROWS_FULL or -ENOMEM, after which the range can only be dropped.
 */
int rows_add(struct rows *rows, uint64_t vaddr, const struct unwind_rule *rule);

/* The same in two steps, for callers that add the same rule many times: its number stays valid. */
int rows_intern(struct rows *rows, const struct unwind_rule *rule, uint32_t *ret);
int rows_add_interned(struct rows *rows, uint64_t vaddr, uint32_t rule);
/* Both steps at once. */
int rows_add_intern(struct rows *rows, uint64_t vaddr, const struct unwind_rule *rule,
		    uint32_t *ret);

/* Completes the range: 0, ROWS_FULL, -ENOMEM (the range is dropped). rows_drop() discards it. */
int rows_end(struct rows *rows);
void rows_drop(struct rows *rows);

/* Before rows_finish(): the ranges so far, those of a source joined where only padding lies between
 * successive ones. */
size_t rows_n_spans(const struct rows *rows);
void rows_span(const struct rows *rows, size_t i, uint64_t *ret_start, uint64_t *ret_end);

/* Watches one address, before any range is added; reports whether an added range contains it. */
void rows_watch(struct rows *rows, uint64_t vaddr);
bool rows_watched(const struct rows *rows);

/* Sorts, resolves overlaps, merges equal neighbours and makes gaps explicit. Nothing can be added
 * afterwards. 0; -ENOMEM, and there are no rows. */
int rows_finish(struct rows *rows);

/* After rows_finish(): ascending, neighbours with different rules; the last row is a gap. No rows
 * at all if nothing was added. */
size_t rows_count(const struct rows *rows);
struct row rows_at(const struct rows *rows, size_t i);
/* The first gap from row @i on. */
size_t rows_next_gap(const struct rows *rows, size_t i);
/* The row at @vaddr; (size_t)-1 below the first. */
size_t rows_find(const struct rows *rows, uint64_t vaddr);

/* The distinct rules, numbered from 0 (the gap); some may be in no row. Borrowed. */
size_t rows_n_rules(const struct rows *rows);
const struct unwind_rule *rows_rule(const struct rows *rows, uint32_t id);

/* "cfa_expression"; "unknown" for an invalid number. */
const char *rows_unsupported_name(int32_t why);

#endif
