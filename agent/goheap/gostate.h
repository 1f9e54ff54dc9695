/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOSTATE_H
#define PODPROF_GOHEAP_GOSTATE_H

/* Translate results of reads into the state of a Go runtime. 0 and -errno stay unchanged. */

int gostate_of_memory(int r);
int gostate_of_buckets(int r);
int gostate_of_maps(int r);

#endif
