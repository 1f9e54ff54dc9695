/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_RUNTIMES_HOTSPOT_NAME_H
#define PODPROF_RUNTIMES_HOTSPOT_NAME_H

/* Names of Java methods for people, from the virtual machine's. */

#include <stddef.h>

/* Texts are NUL-terminated and may have any other bytes. */

/**
 * hotspot_name() - "java.util.HashMap.put(Object, Object)"
 * @class:     "java/util/HashMap"
 * @method:    "put"
 * @signature: "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;"; parameters are shown by
 *             their types without packages. One that is not understood ends the list with "..."
 * @source:    "HashMap.java"; with .scala and .clj, operators are signs: "List.$colon$plus" is
 * "List.:+"
 * @ret:       @n bytes, cut if it does not fit
 *
 * A class made at run time has its address or a number in its name
 * ("A$$Lambda$14/0x0000000800c03000", "GeneratedMethodAccessor7"). These are left out, so that
 * names do not differ from run to run.
 */
void hotspot_name(const char *class, const char *method, const char *signature, const char *source,
		  char *ret, size_t n);

/* "java/util/HashMap.java": the file @source in the package of @class; "" without a source. */
void hotspot_file(const char *class, const char *source, char *ret, size_t n);

#endif
