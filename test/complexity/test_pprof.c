// SPDX-License-Identifier: Apache-2.0
/* Profiles: agent/cpu and agent/pprof. */
#include "support/test.h"

#include <string.h>

#include "base/buf.h"
#include "complexity/count.h"
#include "complexity/growth.h"
#include "cpu/fold.h"
#include "pprof/flame.h"
#include "pprof/reader.h"
#include "procmap/image.h"
#include "profile.pb-c.h"

/* All bits of an address count, but a multiplication moves them up only. */
static uint64_t fold_high_bits(size_t n)
{
	struct image image = {.refs = 1};
	struct fold *fold;
	uint64_t before;

	assert_int_equal(fold_new(&fold), 0);
	before = count_now();
	for (size_t i = 0; i < n; i++) {
		const struct frame frame = {&image, i << 50};
		const struct fold_sample sample = {
			.frames = &frame, .return_address = &(uint8_t){0}, .n_frames = 1};

		assert_int_equal(fold_add(fold, &sample, 1, 1), 0);
	}
	before = count_now() - before;
	assert_int_equal(fold_n(fold), n);
	fold_free(fold);
	return before;
}

/* A profile with two functions, and with these numbers of locations, of lines in the first
 * location, of samples, and of locations in a sample. */
struct profile_shape {
	size_t locations, lines, samples, depth;
};

static void put(struct buf *to, const ProtobufCMessage *m)
{
	char *at;

	assert_int_equal(buf_reserve(to, protobuf_c_message_get_packed_size(m), &at), 0);
	to->len += protobuf_c_message_pack(m, (uint8_t *)at);
}

static void make_profile(const struct profile_shape *s, struct buf *ret)
{
	char *strings[] = {"", "cpu", "f", "g"};
	Perftools__Profiles__ValueType type = PERFTOOLS__PROFILES__VALUE_TYPE__INIT;
	Perftools__Profiles__ValueType *types[] = {&type};
	Perftools__Profiles__Function f = PERFTOOLS__PROFILES__FUNCTION__INIT, g = f;
	Perftools__Profiles__Function *functions[] = {&f, &g};
	Perftools__Profiles__Line *lines = calloc(s->lines + 1, sizeof(*lines));
	Perftools__Profiles__Line **line_at = calloc(s->lines + 1, sizeof(*line_at));
	Perftools__Profiles__Location *locations = calloc(s->locations, sizeof(*locations));
	Perftools__Profiles__Location **location_at = calloc(s->locations, sizeof(*location_at));
	Perftools__Profiles__Sample *samples = calloc(s->samples, sizeof(*samples));
	Perftools__Profiles__Sample **sample_at = calloc(s->samples, sizeof(*sample_at));
	uint64_t *ids = calloc(s->samples + s->depth, sizeof(*ids));
	Perftools__Profiles__Profile profile = PERFTOOLS__PROFILES__PROFILE__INIT;
	int64_t value = 1;

	type.type = type.unit = 1;
	f.id = 1;
	f.name = 2;
	g.id = 2;
	g.name = 3;
	for (size_t i = 0; i < s->lines; i++) {
		perftools__profiles__line__init(&lines[i]);
		lines[i].function_id = 1 + i % 2;
		line_at[i] = &lines[i];
	}
	for (size_t i = 0; i < s->locations; i++) {
		perftools__profiles__location__init(&locations[i]);
		locations[i].id = s->locations - i;
		locations[i].address = i;
		location_at[i] = &locations[i];
	}
	locations[0].line = line_at;
	locations[0].n_line = s->lines;
	for (size_t i = 0; i < s->samples + s->depth; i++)
		ids[i] = s->locations - i % s->locations;
	for (size_t i = 0; i < s->samples; i++) {
		perftools__profiles__sample__init(&samples[i]);
		samples[i].location_id = ids + i;
		samples[i].n_location_id = s->depth;
		samples[i].value = &value;
		samples[i].n_value = 1;
		sample_at[i] = &samples[i];
	}
	profile.sample_type = types;
	profile.n_sample_type = 1;
	profile.sample = sample_at;
	profile.n_sample = s->samples;
	profile.location = location_at;
	profile.n_location = s->locations;
	profile.function = functions;
	profile.n_function = array_size(functions);
	profile.string_table = strings;
	profile.n_string_table = array_size(strings);
	put(ret, &profile.base);
	free(lines);
	free(line_at);
	free(locations);
	free(location_at);
	free(samples);
	free(sample_at);
	free(ids);
}

static uint64_t run_profile(struct profile_shape shape, bool flame)
{
	struct buf bytes = BUF_INIT((size_t)1 << 30);
	const char *why = "";
	struct reader *reader;
	struct flame *f;
	json_t *json;
	uint64_t before;

	make_profile(&shape, &bytes);
	assert_int_equal(flame_new(&f), 0);
	before = count_now();
	assert_int_equal(reader_new(bytes.data, bytes.len, (size_t)64 << 20, &reader, &why), 0);
	if (flame) {
		assert_true(flame_add(f, reader_tables(reader), NULL) >= 0);
		assert_int_equal(flame_json(f, FLAME_SHOWN_MAX, &json), 0);
		json_decref(json);
	}
	before = count_now() - before;
	flame_free(f);
	reader_free(reader);
	buf_deinit(&bytes);
	return before;
}

static uint64_t reader_ids(size_t n)
{
	return run_profile((struct profile_shape){n, 2, n, 2}, false);
}

static uint64_t flame_inlined(size_t n)
{
	return run_profile((struct profile_shape){1, n, n, 1}, true);
}

static uint64_t flame_deep(size_t n)
{
	return run_profile((struct profile_shape){n, 2, 2, n}, true);
}

static uint64_t flame_wide(size_t n)
{
	return run_profile((struct profile_shape){n, 2, n, 1}, true);
}

static const struct growth rows[] = {
	{"fold: addresses that differ in high bits", fold_high_bits, 1024, GROWS},
	{"reader: ids from the end", reader_ids, 4096, GROWS},
	{"flame: samples of one long location", flame_inlined, 4096, GROWS},
	{"flame: one long stack", flame_deep, 4096, GROWS},
	{"flame: children of one node", flame_wide, 4096, GROWS},
};

int main(void)
{
	return growth_main(rows, array_size(rows));
}
