// SPDX-License-Identifier: Apache-2.0
/*
 * A profile for people: what there is one of on top, then labels and mappings, then the functions
 * that used the most. Texts in a profile are whatever the profiled process called itself and its
 * functions, so that they lose their control characters before they reach a terminal. Values have
 * the units that google/pprof scales, in its steps.
 */
#include "cmd/inspect_profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/nsec.h"
#include "cmd/cmd.h"

/* Different values of one label that are shown; the number of all is shown, too. */
#define LABEL_VALUES_SHOWN 10

struct scale {
	const char *unit; /* of the profile */
	double factor;	  /* to the first step */
	double step;
	const char *names[6];
};

/* 12345678 nanoseconds as 12.35ms. */
static void format_value(int64_t value, const char *unit, char *ret, size_t n)
{
	static const struct scale scales[] = {
		{"nanoseconds", 1, 1000, {"ns", "us", "ms", "s"}},
		{"microseconds", 1, 1000, {"us", "ms", "s"}},
		{"milliseconds", 1, 1000, {"ms", "s"}},
		{"bytes", 1, 1024, {"B", "KiB", "MiB", "GiB", "TiB"}},
	};
	double scaled = (double)value;
	size_t at = 0;

	for (size_t i = 0; i < array_size(scales); i++) {
		if (strcmp(unit, scales[i].unit) != 0)
			continue;
		while (scales[i].names[at + 1] &&
		       (scaled >= scales[i].step || scaled <= -scales[i].step)) {
			scaled /= scales[i].step;
			at++;
		}
		snprintf(ret, n, at ? "%.2f%s" : "%.0f%s", scaled, scales[i].names[at]);
		return;
	}
	snprintf(ret, n, "%" PRId64, value);
}

static double percent(int64_t value, int64_t total)
{
	return total ? 100.0 * (double)value / (double)total : 0;
}

static void print_types(const struct pprof_tables *t)
{
	size_t shown = 0;

	(void)tables_type(t, NULL, &shown);
	for (size_t i = 0; i < t->n_types; i++) {
		const char *unit = t->strings[t->types[i].unit];
		char value[64];

		format_value(tables_total(t, i), unit, value, sizeof(value));
		fputs(i ? "            " : "types       ", stdout);
		cmd_print(t->strings[t->types[i].type]);
		putchar('/');
		cmd_print(unit);
		printf(" %s%s\n", value, i == shown ? " (default)" : "");
	}
}

static void print_time(const struct pprof_tables *t)
{
	time_t seconds = (time_t)(t->time_ns / (int64_t)NSEC_PER_SEC);
	char text[64], duration[64];
	struct tm tm;

	format_value(t->duration_ns, "nanoseconds", duration, sizeof(duration));
	if (t->time_ns > 0 && gmtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		printf("time        %s, for %s\n", text, duration);
	else
		printf("time        not set, for %s\n", duration);
}

static void print_head(const struct profile_view *v)
{
	const struct pprof_tables *t = v->t;

	print_time(t);
	printf("period      %" PRId64 " ", t->period);
	cmd_print(t->strings[t->period_type.type]);
	putchar('/');
	cmd_print(t->strings[t->period_type.unit]);
	putchar('\n');
	print_types(t);
	printf("samples     %zu, at %zu locations in %zu functions\n", t->n_samples, t->n_locations,
	       t->n_functions);
	for (size_t i = 0; i < t->n_comments; i++) {
		fputs("comment     ", stdout);
		cmd_print(t->strings[t->comments[i]]);
		putchar('\n');
	}
}

/* Labels of the same key that follow each other from @i. */
static size_t same_key(const struct profile_view *v, size_t i)
{
	size_t n = 1;

	while (i + n < v->n_labels &&
	       strcmp(v->t->strings[v->labels[i + n].key], v->t->strings[v->labels[i].key]) == 0)
		n++;
	return n;
}

static void print_label(const struct profile_view *v, const struct profile_label *pair)
{
	putchar(' ');
	if (pair->str)
		cmd_print(v->t->strings[pair->str]);
	else
		printf("%" PRId64, pair->num);
	if (pair->unit)
		cmd_print(v->t->strings[pair->unit]);
	printf(" (%zu)", pair->n_samples);
}

static void print_labels(const struct profile_view *v)
{
	for (size_t i = 0, n; i < v->n_labels; i += n) {
		n = same_key(v, i);
		fputs(i ? "            " : "labels      ", stdout);
		cmd_print(v->t->strings[v->labels[i].key]);
		putchar(':');
		for (size_t j = 0; j < n && j < LABEL_VALUES_SHOWN; j++)
			print_label(v, &v->labels[i + j]);
		if (n > LABEL_VALUES_SHOWN)
			printf(" and %zu more", n - LABEL_VALUES_SHOWN);
		putchar('\n');
	}
}

static void print_mappings(const struct pprof_tables *t)
{
	for (size_t i = 0; i < t->n_mappings; i++) {
		const struct pprof_mapping_row *m = &t->mappings[i];

		fputs(i ? "            " : "mappings    ", stdout);
		printf("0x%" PRIx64 "-0x%" PRIx64 " offset 0x%" PRIx64 " ", m->start, m->limit,
		       m->offset);
		cmd_print(t->strings[m->path]);
		if (m->build_id) {
			fputs(" build-id ", stdout);
			cmd_print(t->strings[m->build_id]);
		}
		printf("%s\n", m->has_functions ? "" : " (no functions)");
	}
}

static void print_top(const struct profile_view *v, const char *order,
		      const struct flame_function *list)
{
	int64_t total = flame_total(v->flame);
	const char *unit = flame_unit(v->flame);
	char flat[64], cum[64];

	putchar('\n');
	cmd_print(flame_type(v->flame));
	printf(" by %s value\n%12s %7s %12s %7s  function\n", order, "flat", "", "cum", "");
	for (size_t i = 0; i < v->n_functions; i++) {
		format_value(list[i].flat, unit, flat, sizeof(flat));
		format_value(list[i].cum, unit, cum, sizeof(cum));
		printf("%12s %6.2f%% %12s %6.2f%%  ", flat, percent(list[i].flat, total), cum,
		       percent(list[i].cum, total));
		cmd_print(list[i].name);
		putchar('\n');
	}
}

void inspect_profile_text(const struct profile_view *v)
{
	print_head(v);
	print_labels(v);
	print_mappings(v->t);
	if (!v->n_functions)
		return;
	print_top(v, "flat", v->flat);
	print_top(v, "cumulative", v->cum);
}
