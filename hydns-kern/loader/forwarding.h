/* SPDX-License-Identifier: GPL-2.0-only */
/* Forwarding (hydns/forwarding.h): what the program is told of zones and upstream servers, requests and answers. */
#ifndef HYDNS_KERN_LOADER_FORWARDING_H
#define HYDNS_KERN_LOADER_FORWARDING_H

#include "hydns/forwarding.h"
#include "hydns/parking.h"
#include "hydns-kern/loader/open.h"

/* Of a resolver; mapped for writing, valid until hydns_kern_close(). */
struct hydns_forwarding *hydns_kern_forwarding(struct hydns_kern *k, __u32 resolver);
/* Adds a zone. name: wire format, lower case. *labels: how many it has; -E2BIG: more than HYDNS_FORWARD_LABELS. */
int hydns_kern_forward_zone(struct hydns_kern *k, __u32 resolver, __u32 number, const __u8 *name, __u8 name_len,
			    const struct hydns_forward_zone *zone, __u32 *labels);
/* Removes all zones of a resolver but those of this number; 0: all. */
int hydns_kern_forward_forget(struct hydns_kern *k, __u32 resolver, __u32 keep);

/* From now on hydns_kern_parked_drain() calls fn, with the query's record before its frame, for each query that was forwarded, instead
 * of the function that it gets. */
void hydns_kern_forwarded_to(struct hydns_kern *k, void (*fn)(const struct hydns_parked *p, const struct hydns_forwarded *f,
							     void *arg), void *arg);
/* Readable when answers have come; for epoll. */
int hydns_kern_answered_fd(const struct hydns_kern *k);
/* Calls fn for each answer; the message behind a is valid during the call. Returns how many, or a negative errno. */
int hydns_kern_answered_drain(struct hydns_kern *k, void (*fn)(const struct hydns_forward_answer *a, void *arg), void *arg);

/* Ends a request: its question may be sent again, and its port is free, if the answer has not freed it. */
void hydns_kern_forward_close(struct hydns_kern *k, __u32 resolver, __u64 key, __u32 port, __u64 word);
/* n questions may be sent again, whose ports are free, since their answers have come: in one call of the kernel. */
void hydns_kern_forward_may_ask(struct hydns_kern *k, const struct hydns_forward_question *q, __u32 n);
/* Ends all requests, of a former hydnsd too. Returns how many there were, or a negative errno. */
int hydns_kern_forward_close_all(struct hydns_kern *k);
/* Queries parked for an open request; 0 also if it is none. */
__u32 hydns_kern_forward_parked(struct hydns_kern *k, __u32 resolver, __u64 key);
/* Since the maps were made, summed over CPUs. */
int hydns_kern_forward_counts(struct hydns_kern *k, __u32 resolver, struct hydns_forward_count *sum);

#endif
