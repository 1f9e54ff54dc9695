/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_BASE_OPEN_FILES_H
#define PODPROF_BASE_OPEN_FILES_H

/* Sets this process's limit of open descriptors to the number that podprof can use, or to the hard
 * limit if that is lower. After a failure the old limit stays. */
void open_files_raise(void);

#endif
