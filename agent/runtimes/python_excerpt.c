// SPDX-License-Identifier: Apache-2.0
/*
 * Where a thread has the pointer to its state is a fact of the process: the number of a pthread
 * key, which the interpreter makes early. So the walker gets the places of the first keys of glibc
 * and, on x86-64, musl, and takes the one whose state names the thread. From 3.15 on the pointer is
 * a thread-local variable. Its place is learnt from a process that lived long enough, and is the
 * same in each process whose libraries were loaded in the same order.
 */
#include "runtimes/python_excerpt.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtimes/python_process.h"
#include "shared/stack_dump.h"

/* The first release without a key. */
#define NO_KEY_SINCE 0x030f
/* Of the words of a PYTHON_PART_FRAME. */
#define WORD_CODE    1
#define WORD_ENTRY   3
#define WORD_CHECK   4

/* From pthread_self(), the values of the first keys. glibc has each in struct pthread, 16 bytes
 * from the one before; musl has a pointer to their array there. */
static const struct python_way of_x86_keys[] = {
	{.at = 792},
	{.at = 808},
	{.at = 128, .in_array = 1, .slot = 0},
	{.at = 128, .in_array = 1, .slot = 8},
	{.at = 824},
};
static const struct python_way of_arm64_keys[] = {{.at = 280}, {.at = 296}, {.at = 312}};
_Static_assert(array_size(of_x86_keys) < PYTHON_WAYS_MAX, "and a known one");
_Static_assert(array_size(of_arm64_keys) < PYTHON_WAYS_MAX, "and a known one");

static void add_way(struct python_exe *exe, struct python_way way)
{
	for (size_t i = 0; i < PYTHON_WAYS_MAX; i++) {
		if (memcmp(&exe->ways[i], &way, sizeof(way)) == 0)
			return;
		if (!exe->ways[i].at) {
			exe->ways[i] = way;
			return;
		}
	}
}

static void add_keys(struct python_exe *exe, const struct python_way *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_way(exe, keys[i]);
}

bool python_excerpt_exe(const struct python_image *image, const struct python_target *known,
			struct python_exe *ret)
{
	const struct python_layout *layout = &image->layout;

	*ret = (struct python_exe){
		.process = layout->process,
		.thread_id = layout->thread_id,
		.string_length = layout->string_length,
		.string_state = layout->string_state,
		.string_data = layout->string_wide > layout->string_ascii ? layout->string_wide
									  : layout->string_ascii,
		.bytes_length = layout->bytes_length,
		.bytes_data = layout->bytes_data,
		.string_kind = layout->string_kind,
	};
	if (known) {
		add_way(ret, known->process.way);
		ret->n_known = 1;
	}
	if (layout->version < NO_KEY_SINCE && image->machine == EM_X86_64)
		add_keys(ret, of_x86_keys, array_size(of_x86_keys));
	if (layout->version < NO_KEY_SINCE && image->machine == EM_AARCH64)
		add_keys(ret, of_arm64_keys, array_size(of_arm64_keys));
	return ret->ways[0].at;
}

bool python_excerpt_target(const struct python_image *image, uint64_t bias, const uint8_t *bytes,
			   size_t n, struct python_target *ret)
{
	const struct stack_dump_part *part;
	__u64 at = 0;

	while ((part = stack_dump_next_part(bytes, n, &at)))
		if (part->what == PYTHON_PART_THREAD) {
			*ret = (struct python_target){.image = *image, .bias = bias};
			/* the excerpt has the frames: the way is not gone again */
			ret->process = python_process_of_image(
				image, bias, (struct python_way){.at = (int32_t)part->at});
			return true;
		}
	return false;
}

/* The interpreter's own frames have none. */
static bool has_function(const struct python_process *p, const uint64_t *words)
{
	return p->activation != PYTHON_OWNER ||
	       (words[WORD_ENTRY] >> (p->frame_entry & 7) * 8 & 0xff) < PYTHON_OWNER_LOOP;
}

bool python_excerpt_next(const struct python_target *target, const uint8_t *bytes, size_t n,
			 uint64_t *at, uint64_t ret_words[2])
{
	const struct stack_dump_part *part;
	__u64 next = *at;

	while ((part = stack_dump_next_part(bytes, n, &next))) {
		uint64_t words[PYTHON_FRAME_WORDS];

		*at = next;
		if (part->what != PYTHON_PART_FRAME || part->n != sizeof(words))
			continue;
		memcpy(words, part + 1, sizeof(words));
		if (!has_function(&target->process, words))
			continue;
		ret_words[0] = words[WORD_CODE] & (FRAME_FIRST_LIMIT - 1);
		ret_words[1] = words[WORD_CHECK] << 32;
		return true;
	}
	return false;
}
