/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_OTLP_DICTIONARY_H
#define PODPROF_EXPORT_OTLP_DICTIONARY_H

/* The tables shared by the profiles of an OTLP request. Equal entries have the same number; number
 * 0 of each table is the empty entry. */

#include <stddef.h>
#include <stdint.h>

#include "otlp.pb-c.h"

struct arena;
struct otlp_dictionary;
struct pprof_tables;

/* @arena is borrowed and gets all memory that otlp_dictionary_message() refers to. 0 or -errno. */
int otlp_dictionary_new(struct arena *arena, struct otlp_dictionary **ret);
void otlp_dictionary_free(struct otlp_dictionary *d);

/* Each of the rest: 0, -ENOMEM, or -EBADMSG above a ceiling. */

int otlp_dictionary_string(struct otlp_dictionary *d, const char *s, int32_t *ret);

/**
 * otlp_dictionary_add() - enter a profile's stacks and labels
 * @ret_samples: for each sample of @t a message with stack and attributes, without a value; in the
 *               arena
 */
int otlp_dictionary_add(struct otlp_dictionary *d, const struct pprof_tables *t,
			Otlp__Sample **ret_samples);

/* The finished tables. Borrows from @d and its arena. */
int otlp_dictionary_message(struct otlp_dictionary *d, Otlp__Dictionary *ret);

#endif
