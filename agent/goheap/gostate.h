/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PODPROF_GOHEAP_GOSTATE_H
#define PODPROF_GOHEAP_GOSTATE_H

/* What reading a process came to, as the state of its Go runtime. 0 and -errno stay what they are.
 */

int gostate_of_memory(int r);
int gostate_of_buckets(int r);
int gostate_of_maps(int r);

#endif
