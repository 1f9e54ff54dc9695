/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SUPPORT_FIGURE_H
#define PODPROF_SUPPORT_FIGURE_H

/*
 * A benchmark's figure for the table of `make bench` (test/bench/bench.py). The benchmark prints
 * its own text as well. Without PODPROF_FIGURES, the path of a file, nothing is written.
 */

/* The name consists of the program's name and the text of @format. */
void figure(double value, const char *unit, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* With the same figure of the other side, measured in the same run. @other: its name. */
void figure_beside(double value, double beside, const char *other, const char *unit,
		   const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
