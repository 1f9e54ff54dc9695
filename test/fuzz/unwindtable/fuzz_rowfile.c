// SPDX-License-Identifier: Apache-2.0
#include "fuzz/fuzz.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "unwindtable/rowfile.h"

#define TEXT	 0x1000
#define TEXT_END 0x100000

static void check(const struct rows *rows, const struct rowfile_report *report)
{
	for (size_t i = 0; i < rows_count(rows); i++)
		if (rows_at(rows, i).vaddr < TEXT || rows_at(rows, i).vaddr > TEXT_END)
			abort();
	if (rows_count(rows) && !report->n_rows)
		abort();
	for (size_t i = 0; i < report->n_bad && i < ROWFILE_BAD_MAX; i++)
		if (!report->bad[i].line || !*rowfile_line_text(report->bad[i].why))
			abort();
}

/* The first byte says for which machine. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rowfile_report report = {0};
	struct rows *rows;
	int fd;

	if (!size)
		return 0;
	fd = memfd_create("rows", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)size - 1 ||
	    lseek(fd, 0, SEEK_SET) || rows_new(TEXT, TEXT_END, &rows))
		abort();
	if (rowfile_read(fd, data[0] & 1 ? CFI_ARM64 : CFI_X86_64, rows, &report) == 0 &&
	    rows_finish(rows) == 0)
		check(rows, &report);
	rows_free(rows);
	close(fd);
	return 0;
}
