/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CONFIG_FILE_H
#define PODPROF_CONFIG_FILE_H

/* The configuration file: one JSON object whose keys are the flags' names. A number, a string or a
 * boolean is read as the flag's value would be; a repeatable flag takes an array of strings.
 * "relabel_configs" is an array of objects, as in Prometheus' configuration. */

#include "config/config.h"

/* A settings file is a few hundred bytes; what is longer is something else. Reached: an error says
 * so. */
#define FILE_BYTES_MAX (1u << 20)

/* 0, CONFIG_BAD with a sentence, -ENOMEM. */
int file_apply(const char *path, struct config *c, struct config_error *ret_error);

#endif
