/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_SYMBOLIZE_DEBUGFILE_H
#define PODPROF_SYMBOLIZE_DEBUGFILE_H

/*
 * The separate debug file of a stripped program, where GDB looks for it, below the root directories
 * of the process, of the host and of podprof:
 *
 *	/usr/lib/debug/.build-id/NN/NNNN.debug
 *	DIR/LINK, DIR/.debug/LINK, /usr/lib/debug/DIR/LINK
 *
 * DIR is the program's directory and LINK the name in its section .gnu_debuglink. Documentation:
 * GDB, "Debugging Information in Separate Files".
 */

#include <stdbool.h>
#include <stdint.h>

struct elffile;
struct source_file;

enum debugfile_outcome {
	DEBUGFILE_OK = 0,
	DEBUGFILE_ABSENT,
	DEBUGFILE_OTHER, /* found, but of another build */
	DEBUGFILE_LATER, /* a server is asked */
};

/* The debug file of a program, opened once for all sources. Zeros at first. */
struct debugfile {
	bool on_disk_known; /* the roots were searched */
	bool known;	    /* @outcome is final */
	bool awaited;	    /* from a server */
	uint64_t news;	    /* debuginfod_news() when the servers were asked last */
	int outcome;
	struct elffile *file;
};
void debugfile_deinit(struct debugfile *debug);

/* The debug file out of @of->debug, searched for at the first call: below the roots, then at
 * @of->debuginfod. *@ret is borrowed from @of->debug; reads are charged to the budget of
 * @of->elf. 0, an outcome, -ENOMEM. */
int debugfile_find(const struct source_file *of, const struct elffile **ret);

/* The file with the parts of @debug's DWARF that other debug files have, too: by the build id or
 * the absolute path in .gnu_debugaltlink, below the same roots (DWARF 5, 7.3.6; dwz(1)). @debug may
 * be the program itself. Reads are charged to the budget of @of->elf. 0 with a file of the
 * caller's, an outcome, -ENOMEM. */
int debugfile_open_alternate(const struct source_file *of, const struct elffile *debug,
			     struct elffile **ret);

/* The file @path of split DWARF, an absolute path that the program's compiler has written, below
 * the same roots. libdw checks that the file belongs to the program. As above. */
int debugfile_open_split(const struct source_file *of, const char *path, struct elffile **ret);

/* The package of split DWARF, where GDB looks for it, below the same roots: PROGRAM.dwp,
 * /usr/lib/debug/PROGRAM.dwp, /usr/lib/debug/NAME.dwp. The ids of the units tell whether the
 * package belongs to the program. As above. */
int debugfile_open_package(const struct source_file *of, struct elffile **ret);

#endif
