/* SPDX-License-Identifier: GPL-2.0-only */
/* A resolver that may park, for tests. Failures end the test, by cmocka. */
#ifndef HYDNS_TEST_PARKING_H
#define HYDNS_TEST_PARKING_H

#include "expect.h"
#include "hydns/parking.h"

#define PARKED_HERE 1            /* the loopback interface, where test runs come from unless another is chosen */

struct parking {
	struct kernel *k;
	struct hydns_parking *bounds;     /* of RESOLVER */
	struct hydns_replays *replays;
	volatile struct hydns_under_way_bucket *buckets;
	struct ring_buffer *buffer;
	struct hydns_parked last;         /* what parking_drain() has read last, ... */
	__u8 frame[HYDNS_PARKED_FRAME];   /* ... and its frame */
};

/* Makes k park on the loopback interface, with room for 100 queries, and no question under way. */
void parking_open(struct parking *p, struct kernel *k);
void parking_close(struct parking *p);       /* k stays open */
/* The key of the query's question, as the plugin has it. */
__u64 parking_key(const struct query *q);
/* Puts the question into place n of its bucket, as of this time, and counts it on the page. */
void parking_begin(struct parking *p, const struct query *q, unsigned n, __u64 at_ns);
/* Takes it away again. */
void parking_end(struct parking *p, const struct query *q, unsigned n);
/* Reads the ring buffer; returns how many records it had. */
int parking_drain(struct parking *p);
/* Queries that were parked, and those that a bound has left to the resolver. */
struct hydns_parking_count parking_counts(struct parking *p);
/* What becomes of the query, which must be counted under this reason. */
int parking_action(struct parking *p, const struct query *q, int reason);

#endif
