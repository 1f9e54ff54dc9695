/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_UPLOAD_BODY_H
#define PODPROF_EXPORT_UPLOAD_BODY_H

/* The body of Parca's Upload call, made piece by piece from a file:
 *
 *	{"info":{"buildId":"ID","uploadId":"ID"}}
 *	{"chunkData":"BASE64"}
 *	...
 *
 * or, for a signed URL, the bytes of the file.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/* Bytes of the file in one object: with its base64 450 KiB of memory. Reached: the next object. */
#define UPLOAD_CHUNK (192u << 10)

/**
 * struct upload_body - the state
 * @fd:    borrowed; reads block as long as the file system does
 * @size:  of the file, as announced
 * @off:   bytes read so far
 * @text:  the object under way, sent up to @at
 * @chunk: NULL: the body is the file
 * @read_ns: what is left of the time for reading the file
 * @is_cut: the file has fewer bytes than @size, or cannot be read
 * @is_slow: @read_ns is over
 */
struct upload_body {
	int fd;
	uint64_t size;
	uint64_t off;
	struct buf text;
	size_t at;
	char *chunk;
	uint64_t read_ns;
	bool is_cut;
	bool is_slow;
};

/* @build_id and @upload_id need no escapes in JSON. 0 or -ENOMEM. */
int upload_body_init(struct upload_body *b, int fd, uint64_t size, uint64_t read_ns,
		     const char *build_id, const char *upload_id);
void upload_body_deinit(struct upload_body *b);
/* The bytes of the file as they are. */
void upload_body_init_plain(struct upload_body *b, int fd, uint64_t size, uint64_t read_ns);
/* Bytes of the whole body; call before upload_body_next(). */
uint64_t upload_body_len(const struct upload_body *b);
/* The next bytes, as http_send_fn wants. 0 at the end; -EIO if @is_cut or @is_slow; -ENOMEM. */
ssize_t upload_body_next(struct upload_body *b, char *ret, size_t n);

#endif
