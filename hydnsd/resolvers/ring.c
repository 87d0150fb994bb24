/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define RING_MAP        HYDNS_RING_SIZE

int hydnsd_ring_open(struct hydnsd_ring *r, int fd, const struct hydnsd_begun *begun, char *why, size_t room)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int seals = fcntl(fd, F_GET_SEALS);
	struct hydns_ring *shared;
	struct stat st;

	if (seals < 0 || (seals & needed) != needed || fstat(fd, &st) || st.st_size != RING_MAP) {
		snprintf(why, room, "a ring is not a sealed memfd of %d octets: use a plugin of this "
			 "hydnsd's version", (int)RING_MAP);
		return -EINVAL;
	}
	shared = mmap(NULL, RING_MAP, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED) {
		int rc = -errno;

		snprintf(why, room, "cannot map a ring: %s", strerror(-rc));
		return rc;
	}
	r->shared = shared;
	/* From here on a former hydnsd has not acted upon the frames. */
	r->head = r->tail = __atomic_load_n(&shared->tail, __ATOMIC_RELAXED);
	hydnsd_progress_start(&r->progress, r->tail, begun);
	return 0;
}

void hydnsd_ring_close(struct hydnsd_ring *r)
{
	if (r->shared)
		munmap(r->shared, RING_MAP);
	r->shared = NULL;
}

/* -- frames -------------------------------------------------------------------------------------------- */
/* Only frames that have been acted upon: a hydnsd that follows a crash must find the others. The shared tail is in a cache
 * line that the plugin uses, so it is written when it changes only. */
void hydnsd_ring_give_back(struct hydnsd_ring *r, const struct hydnsd_begun *begun)
{
	if (hydnsd_progress_advance(&r->progress, r->tail, begun))
		__atomic_store_n(&r->shared->tail, r->progress.given, __ATOMIC_RELEASE);
}

enum hydnsd_taken hydnsd_ring_take(struct hydnsd_ring *r, union hydnsd_frame *out)
{
	const uint8_t *data = (const uint8_t *)r->shared + HYDNS_RING_DATA;

	for (;;) {
		uint32_t ready, at = r->tail & (HYDNS_RING_BYTES - 1);
		struct hydns_frame head;

		if (r->head == r->tail)
			r->head = __atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE);
		ready = r->head - r->tail;
		if (ready == 0)
			return HYDNSD_TAKEN_NONE;
		if (ready > HYDNS_RING_BYTES || ready % 8 || at % 8)
			return HYDNSD_TAKEN_BROKEN;
		memcpy(&head, data + at, sizeof(head));
		if (head.len < sizeof(head) || head.len % 8 || head.len > ready ||
		    head.len > HYDNS_RING_BYTES - at)
			return HYDNSD_TAKEN_BROKEN;
		if (head.type != HYDNS_FRAME_PAD) {
			if (head.len > sizeof(*out))
				return HYDNSD_TAKEN_BROKEN;
			memcpy(out, data + at, head.len);
			out->head = head; /* the plugin may have changed it since the check */
		}
		r->tail += head.len;
		if (head.type != HYDNS_FRAME_PAD)
			return HYDNSD_TAKEN_FRAME;
	}
}

/* -- what the plugin has written for operators --------------------------------------------------------------- */
/* Adds n words that the plugin may be writing. */
static void add_words(void *sum, const void *words, size_t n)
{
	__u64 *to = sum;
	const __u64 *from = words;

	for (size_t i = 0; i < n; i++)
		to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

void hydnsd_ring_count(const struct hydnsd_ring *r, struct hydnsd_ring_counts *out)
{
	const struct hydns_ring *ring = r->shared;

	out->queries += __atomic_load_n(&ring->queries, __ATOMIC_RELAXED);
	out->offered += __atomic_load_n(&ring->offered, __ATOMIC_RELAXED);
	out->dropped += __atomic_load_n(&ring->dropped, __ATOMIC_RELAXED);
	add_words(&out->packet_rings, &ring->packet_rings, sizeof(out->packet_rings) / sizeof(__u64));
}

void hydnsd_ring_level(const struct hydnsd_ring *r, uint32_t lane, struct hydns_lane_level *out)
{
	for (const struct hydns_lane_level *l = r->shared->lane; l < r->shared->lane + HYDNS_LANES_MOST; l++) {
		if (__atomic_load_n(&l->lane, __ATOMIC_RELAXED) != lane + 1)
			continue;
		out->waiting += __atomic_load_n(&l->waiting, __ATOMIC_RELAXED);
		out->unsent += __atomic_load_n(&l->unsent, __ATOMIC_RELAXED);
		out->free = __atomic_load_n(&l->free, __ATOMIC_RELAXED);     /* each thread says it of the whole lane */
		out->dropped += __atomic_load_n(&l->dropped, __ATOMIC_RELAXED);
	}
}

void hydnsd_ring_log_level(const struct hydnsd_ring *r, struct hydns_tap_level *out)
{
	const struct hydns_tap_level *l = &r->shared->log;

	out->written = __atomic_load_n(&l->written, __ATOMIC_RELAXED);
	out->own = __atomic_load_n(&l->own, __ATOMIC_RELAXED);
	out->failures = __atomic_load_n(&l->failures, __ATOMIC_RELAXED);
	out->connected = __atomic_load_n(&l->connected, __ATOMIC_RELAXED);
}

/* The plugin may be writing there: the entry counts if it has the same key before and after reading. */
bool hydnsd_ring_not_offered(const struct hydnsd_ring *r, uint64_t key, struct hydns_not_offered *out)
{
	const uint8_t *table = (const uint8_t *)r->shared + HYDNS_RING_DATA + HYDNS_RING_BYTES;
	const struct hydns_not_offered *k = (const struct hydns_not_offered *)table + HYDNS_NOT_OFFERED_PLACE(key);

	out->key = __atomic_load_n(&k->key, __ATOMIC_ACQUIRE);
	out->at_ms = __atomic_load_n(&k->at_ms, __ATOMIC_RELAXED);
	out->what = __atomic_load_n(&k->what, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return key && out->key == key && __atomic_load_n(&k->key, __ATOMIC_RELAXED) == key;
}
