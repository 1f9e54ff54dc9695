/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_CMD_INSPECT_H
#define PODPROF_CMD_INSPECT_H

/* 'podprof inspect WHAT': what podprof sees. One file each, found by name in the table of
 * inspect.c; argv[0] is the name. Returns the exit status (enum cmd_exit). */

int inspect_cgroup(int argc, char **argv);
int inspect_goruntime(int argc, char **argv);
int inspect_maps(int argc, char **argv);
int inspect_profile(int argc, char **argv);
int inspect_symbols(int argc, char **argv);
int inspect_unwind(int argc, char **argv);

#endif
