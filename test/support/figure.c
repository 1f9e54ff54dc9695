// SPDX-License-Identifier: Apache-2.0
#include "support/figure.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One JSON object a line. A figure that cannot be written ends the benchmark. */
static void write_figure(json_t *object)
{
	const char *path = getenv("PODPROF_FIGURES");
	FILE *to = path ? fopen(path, "ae") : NULL;

	if (path && (!to || !object || json_dumpf(object, to, JSON_COMPACT) ||
		     fputc('\n', to) == EOF || fclose(to))) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(1);
	}
	json_decref(object);
}

static json_t *make(double value, const char *unit, const char *format, va_list args)
{
	const char *program = program_invocation_short_name;
	char name[256];

	vsnprintf(name, sizeof(name), format, args);
	if (strncmp(program, "bench_", 6) == 0)
		program += 6;
	return json_pack("{s:s++, s:s, s:f}", "name", program, ": ", name, "unit", unit, "value",
			 value);
}

void figure(double value, const char *unit, const char *format, ...)
{
	va_list args;
	json_t *object;

	va_start(args, format);
	object = make(value, unit, format, args);
	va_end(args);
	write_figure(object);
}

void figure_beside(double value, double beside, const char *other, const char *unit,
		   const char *format, ...)
{
	va_list args;
	json_t *object;

	va_start(args, format);
	object = make(value, unit, format, args);
	va_end(args);
	json_object_set_new(object, "other", json_string(other));
	json_object_set_new(object, "beside", json_real(beside));
	write_figure(object);
}
