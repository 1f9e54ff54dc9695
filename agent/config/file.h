/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CONFIG_FILE_H
#define PODPROF_CONFIG_FILE_H

/* The configuration file: one JSON object with the flags' names as keys. A number, a string or a
 * boolean is parsed like the flag's value; a repeatable flag takes an array of strings.
 * "relabel_configs" is an array of objects, as in Prometheus' configuration. */

#include "config/config.h"

/* Bytes of a settings file, usually a few hundred; a larger file is something else. Reached: an
 * error says so. */
#define FILE_BYTES_MAX (1u << 20)

/* 0, CONFIG_BAD with a sentence, -ENOMEM. */
int file_apply(const char *path, struct config *c, struct config_error *ret_error);

#endif
