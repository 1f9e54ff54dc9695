// SPDX-License-Identifier: Apache-2.0
/* The bytes are a file's name as found on disk, and a label's value as a container has it. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strview.h"
#include "export/store_name.h"

static void check_file(const char *text)
{
	char file[STORE_NAME_MAX];
	struct store_name name;

	if (!store_name_parse(text, &name))
		return;
	store_name_file(&name, file);
	if (strcmp(file, text) != 0)
		abort();
}

static void check_folder(const char *text)
{
	_cleanup_(labels_deinit) struct labels labels = {0};
	char name[STORE_NAME_MAX];

	if (labels_set(&labels, "service_name", text) || labels_set(&labels, "pod", text + 1))
		return;
	store_name_folder(&labels, (uint32_t)strlen(text), name);
	if (!store_name_is_folder(name) || strchr(name, '/') || name[0] == '.')
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *text = strview_dup(strview_of_bytes((const char *)data, size));

	if (!text)
		return 0;
	check_file(text);
	if (*text)
		check_folder(text);
	return 0;
}
