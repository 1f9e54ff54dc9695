/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_EXPORT_UPLOAD_REPLY_H
#define PODPROF_EXPORT_UPLOAD_REPLY_H

/* Replies of Parca's DebuginfoService, as JSON. Foreign. Each parser returns false for a reply that
 * has not the expected form; the outputs are then untouched. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters of an upload's id, without the NUL; Parca's is a UUID of 36. Reached: the reply counts
 * as malformed. */
#define UPLOAD_ID_MAX 128

/* ShouldInitiateUploadResponse. @ret: the server wants the file. */
bool upload_reply_wanted(const char *bytes, size_t n, bool *ret);

/* Characters of a signed URL, without the NUL; those of object stores have some 500 to 1,500.
 * Reached: no URL. */
#define UPLOAD_URL_MAX 4096

/**
 * struct upload_ticket - UploadInstructions
 * @id:  only letters, digits and "-._"
 * @is_direct: the file goes to the server itself, and not to another address
 * @url: the other address, printable ASCII without blanks; "": none that podprof can use
 */
struct upload_ticket {
	char id[UPLOAD_ID_MAX + 1];
	bool is_direct;
	char url[UPLOAD_URL_MAX + 1];
};

/* InitiateUploadResponse. */
bool upload_reply_ticket(const char *bytes, size_t n, struct upload_ticket *ret);

/* UploadResponse. @ret: bytes of the file at the server. */
bool upload_reply_size(const char *bytes, size_t n, uint64_t *ret);

#endif
