// SPDX-License-Identifier: Apache-2.0
/*
 * The verifier can be asked for its statistics alone (BPF_LOG_STATS, since 5.2): a few lines, where
 * its full log is megabytes and costs as much time as the verifying.
 *
 *	verification time 23624 usec
 *	stack depth 88
 *	processed 13604 insns (limit 1000000) max_states_per_insn 4 total_states 184 ...
 *
 * The number of instructions it looked at is told elsewhere only since 5.16 (aba64c7da983). What it
 * refuses a program for stands before these lines.
 *
 * Before 6.4 (121664093803) a log that does not fit its buffer makes the loading fail; of this kind
 * none that we have seen has 500 bytes.
 */
#include "profile/verifier.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/strview.h"

#define VERIFIER_LOG_BYTES ((size_t)16 << 10)
/* include/linux/bpf_verifier.h; not in the user API's headers. */
#define BPF_LOG_STATS	   4

/* ---------------------------------------------------------------- the text */

uint32_t verifier_insns(const char *log)
{
	struct strview all = strview_of(log), line;
	uint64_t n;

	while (strview_line(&all, &line))
		if (strview_prefix(&line, "processed ") && strview_u64(&line, 10, &n) &&
		    strview_starts(&line, " insns") && n <= UINT32_MAX)
			return (uint32_t)n;
	return 0;
}

/* The last line before the statistics; may be empty. */
static struct strview complaint(const char *log)
{
	struct strview all = strview_of(log), line, last = strview_of("");

	while (strview_line(&all, &line)) {
		if (strview_starts(&line, "processed ") ||
		    strview_starts(&line, "verification time ") ||
		    strview_starts(&line, "stack depth "))
			break;
		if (!strview_empty(&line))
			last = line;
	}
	return last;
}

/* ---------------------------------------------------------------- an object */

static char *log_of(const struct verifier *v, size_t i)
{
	return v->logs + i * VERIFIER_LOG_BYTES;
}

static int listen_to(struct verifier *v, struct bpf_program *program)
{
	char *log = log_of(v, v->n);
	int r = bpf_program__set_log_buf(program, log, VERIFIER_LOG_BYTES);

	if (!r)
		r = bpf_program__set_log_level(program, BPF_LOG_STATS);
	if (!r)
		snprintf(v->programs[v->n++].name, VERIFIER_NAME_MAX, "%s",
			 bpf_program__name(program));
	return r;
}

int verifier_init(struct verifier *v, struct bpf_object *object)
{
	struct bpf_program *program;
	size_t n = 1; /* one more than needed, so that an empty list is no special case */
	int r = 0;

	bpf_object__for_each_program(program, object) n++;
	*v = (struct verifier){
		.programs = calloc(n, sizeof(*v->programs)),
		.logs = calloc(n, VERIFIER_LOG_BYTES),
	};
	if (!v->programs || !v->logs)
		r = -ENOMEM;
	bpf_object__for_each_program(program, object)
	{
		if (!r && bpf_program__autoload(program))
			r = listen_to(v, program);
	}
	if (r)
		verifier_deinit(v);
	return r;
}

void verifier_done(struct verifier *v)
{
	for (size_t i = 0; i < v->n; i++)
		v->programs[i].insns = verifier_insns(log_of(v, i));
	free(v->logs);
	v->logs = NULL;
}

void verifier_deinit(struct verifier *v)
{
	free(v->programs);
	free(v->logs);
	*v = (struct verifier){0};
}

void verifier_complaint(const struct verifier *v, char *ret, size_t n)
{
	ret[0] = 0;
	for (size_t i = 0; i < v->n && v->logs; i++) {
		struct strview line = complaint(log_of(v, i));

		if (!strview_empty(&line))
			snprintf(ret, n, "%s: %.*s", v->programs[i].name, (int)strview_len(&line),
				 line.p);
	}
}
