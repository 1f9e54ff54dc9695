// SPDX-License-Identifier: Apache-2.0
/*
 * RE2 needs time that grows with the text alone, PCRE2 goes back and tries again: (a*)*b takes ages
 * to not match "aaaa...". Rules come from the node's admin, but what they are matched with is
 * written by whoever may start a container. So each match has a budget: of steps, of nested steps
 * and of memory for them. When one of them is used up, the outcome is PATTERN_LIMIT, and the rule's
 * user decides what that means.
 *
 * Not compiled to machine code (PCRE2's JIT): a pattern is matched once for each new container and
 * label, a few microseconds each, which is less than compiling takes. It would need memory that is
 * writable and executable, which SELinux and systemd's MemoryDenyWriteExecute= refuse, and it
 * counts the steps of the budget in another way.
 *
 * Memory comes from our own functions, so that tests can let it run out.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "relabel/pattern.h"

#include <errno.h>
#include <pcre2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "relabel/plain.h"
#include "relabel/re2.h"

/* Steps of one match, 15 to 27 milliseconds of them (bench_relabel). Patterns that people write
 * need a few for each byte of a text. Two ".*" may need half the square of their number, which for
 * the values of a pod's labels and annotations (1,024 bytes) is within this. Reached:
 * `podprof_relabel_timeouts_total`: the entity is left out. */
#define STEPS_MAX    1000000
/* Kilobytes of memory for them: (?:ab|c)* takes 250 bytes for each round. */
#define HEAP_MAX_KIB 8192

struct pattern {
	char *text;
	pcre2_general_context *memory;
	pcre2_match_context *limits;
	pcre2_code *code;
	struct plain plain; /* where it is one, @code is not run */
	size_t n_groups;
	struct re2_group groups[PATTERN_GROUPS_MAX + 1]; /* names are in text */
};

static void *allocate(size_t n, void *ctx)
{
	(void)ctx;
	return malloc(n);
}

static void release(void *p, void *ctx)
{
	(void)ctx;
	free(p);
}

DEFINE_CLEANUP(pcre2_compile_context *, compile_context_freep, pcre2_compile_context_free);

static int compile(struct pattern *p, const struct re2 *re, struct pattern_error *error)
{
	const uint32_t options =
		PCRE2_UTF | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;
	_cleanup_(compile_context_freep) pcre2_compile_context *context = NULL;
	PCRE2_SIZE at;
	int r;

	context = pcre2_compile_context_create(p->memory);
	if (!context)
		return -ENOMEM;
	pcre2_set_parens_nest_limit(context, RE2_DEPTH_MAX + 8);
	p->code =
		pcre2_compile((PCRE2_SPTR)re->pcre2.data, re->pcre2.len, options, &r, &at, context);
	if (p->code)
		return 0;
	if (r == PCRE2_ERROR_HEAP_FAILED)
		return -ENOMEM;
	pcre2_get_error_message(r, (PCRE2_UCHAR *)error->text, sizeof(error->text));
	return PATTERN_REFUSED;
}

static int make_limits(struct pattern *p)
{
	p->limits = pcre2_match_context_create(p->memory);
	if (!p->limits)
		return -ENOMEM;
	pcre2_set_match_limit(p->limits, STEPS_MAX);
	pcre2_set_depth_limit(p->limits, STEPS_MAX);
	pcre2_set_heap_limit(p->limits, HEAP_MAX_KIB);
	return 0;
}

DEFINE_CLEANUP(struct pattern *, pattern_freep, pattern_free);

int pattern_new(const char *text, struct pattern **ret, struct pattern_error *ret_error)
{
	_cleanup_(pattern_freep) struct pattern *p = calloc(1, sizeof(*p));
	_cleanup_(re2_deinit) struct re2 re = {0};
	int r;

	if (!p)
		return -ENOMEM;
	p->text = strdup(text);
	p->memory = pcre2_general_context_create(allocate, release, NULL);
	if (!p->text || !p->memory)
		return -ENOMEM;
	r = re2_translate(p->text, &re, ret_error);
	if (!r)
		r = compile(p, &re, ret_error);
	if (!r)
		r = make_limits(p);
	if (r)
		return r;
	plain_read(p->text, &p->plain);
	p->n_groups = re.n_groups;
	memcpy(p->groups, re.groups, sizeof(p->groups));
	*ret = take_ptr(p);
	return 0;
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	pcre2_code_free(p->code);
	pcre2_match_context_free(p->limits);
	pcre2_general_context_free(p->memory);
	free(p->text);
	free(p);
}

const char *pattern_text(const struct pattern *p)
{
	return p->text;
}

void pattern_match_deinit(struct pattern_match *m)
{
	pcre2_match_data_free(m->data);
	*m = (struct pattern_match){0};
}

static int outcome_of(int pcre2)
{
	switch (pcre2) {
	case PCRE2_ERROR_NOMATCH:
		return PATTERN_NO_MATCH;
	case PCRE2_ERROR_MATCHLIMIT:
	case PCRE2_ERROR_DEPTHLIMIT:
	case PCRE2_ERROR_HEAPLIMIT:
		return PATTERN_LIMIT;
	case PCRE2_ERROR_NOMEMORY:
		return -ENOMEM;
	default:
		return pcre2 > 0 ? 0 : -EILSEQ;
	}
}

static int match_engine(const struct pattern *p, const char *text, size_t n,
			struct pattern_match *ret)
{
	_cleanup_(pattern_match_deinit) struct pattern_match m = {.text = text};
	int r;

	/* new each time: it keeps the memory of the largest match that it was used for */
	m.data = pcre2_match_data_create_from_pattern(p->code, p->memory);
	if (!m.data)
		return -ENOMEM;
	r = outcome_of(pcre2_match(p->code, (PCRE2_SPTR)text, n, 0, 0, m.data, p->limits));
	if (r || !ret)
		return r;
	pattern_match_deinit(ret);
	*ret = (struct pattern_match){.data = take_ptr(m.data), .text = text};
	return 0;
}

static int match_plain(const struct pattern *p, const char *text, size_t n,
		       struct pattern_match *ret)
{
	struct pattern_match m = {.text = text, .plain[0] = {text, text + n}, .n_plain = 1};

	if (!plain_match(&p->plain, m.plain[0], &m.plain[1]))
		return PATTERN_NO_MATCH;
	m.n_plain += p->plain.group;
	if (!ret)
		return 0;
	pattern_match_deinit(ret);
	*ret = m;
	return 0;
}

int pattern_match(const struct pattern *p, const char *text, size_t n, struct pattern_match *ret)
{
	if (p->plain.n)
		return match_plain(p, text, n, ret);
	return match_engine(p, text, n, ret);
}

bool pattern_match_group(const struct pattern_match *m, size_t i, struct strview *ret)
{
	const PCRE2_SIZE *places;

	if (m->n_plain) {
		if (i < m->n_plain)
			*ret = m->plain[i];
		return i < m->n_plain;
	}
	places = pcre2_get_ovector_pointer(m->data);
	if (i >= pcre2_get_ovector_count(m->data) || places[2 * i] == PCRE2_UNSET)
		return false;
	*ret = (struct strview){m->text + places[2 * i], m->text + places[2 * i + 1]};
	return true;
}

size_t pattern_n_groups(const struct pattern *p)
{
	return p->n_groups;
}

size_t pattern_find_group(const struct pattern *p, struct strview name)
{
	for (size_t i = 1; i <= p->n_groups; i++) {
		const struct strview *n = &p->groups[i].name;

		if (!strview_empty(n) && strview_len(n) == strview_len(&name) &&
		    !memcmp(n->p, name.p, strview_len(n)))
			return i;
	}
	return 0;
}

bool pattern_group_is_vague(const struct pattern *p, size_t i)
{
	return i <= p->n_groups && p->groups[i].vague;
}
