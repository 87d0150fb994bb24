/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * CHANGED frames that hydnsd has not consumed. If it is lost or hangs while they wait in a ring, the plugin suspends the
 * rules that they concern by itself.
 */
#include "plugin/link/thread.h"

/* hydnsd hangs when a CHANGED frame is still in the ring after this long. */
#define STUCK_MS 1000U

union waiting_frame {
	struct hydns_frame head;
	struct hydns_changed changed;
	uint8_t octet[offsetof(struct hydns_changed, data) + HYDNS_NAME_MAX];
};

static uint32_t tail_of(const struct hydns_thread *t)
{
	return __atomic_load_n(&t->ring.ring->tail, __ATOMIC_ACQUIRE);
}

/* Positions are modulo 2^32, so the question makes sense only of a frame that may be in the ring, or was a beat ago. */
static bool consumed(const struct hydns_thread *t, uint32_t position)
{
	return (int32_t)(position - tail_of(t)) <= 0;
}

/* While hydnsd is connected: true when a CHANGED frame has waited for too long. */
static bool change_stuck(struct hydns_unread *u, struct hydns_thread *t, uint64_t now_ms)
{
	uint32_t head = atomic_load(&t->changed_head);

	if (u->since_ms && !consumed(t, u->waiting))
		return now_ms - u->since_ms >= STUCK_MS;
	u->since_ms = 0;
	if (head != u->done && consumed(t, head)) {
		u->done = head;
	} else if (head != u->done) {
		u->waiting = head;
		u->since_ms = now_ms;
	}
	return false;
}

/* Marks the name in the frame of len octets, if it is a CHANGED frame. False: the frame is broken. */
static bool mark_named(struct hydns_plugin *p, const union waiting_frame *f, uint32_t len)
{
	const struct hydns_changed *c = &f->changed;

	if (f->head.type != HYDNS_FRAME_CHANGED)
		return true;
	if (len < offsetof(struct hydns_changed, data) + c->name_len || !c->name_len ||
	    hydns_name_length(c->data, c->name_len) != c->name_len)
		return false;
	hydns_plugin_mark(p, c->data, c->name_len);
	return true;
}

/* Marks the names of all CHANGED frames in the ring. False: the ring is broken. A hydnsd that still runs may consume a
 * frame while it is being copied, so the tail is read again after the copy. */
static bool mark_ring(struct hydns_plugin *p, const struct hydns_thread *t)
{
	uint32_t end = __atomic_load_n(&t->ring.ring->head, __ATOMIC_SEQ_CST), at = tail_of(t), len;
	union waiting_frame f;

	while ((int32_t)(end - at) > 0) {
		len = hydns_producer_peek(&t->ring, at, end, &f, sizeof(f));
		atomic_thread_fence(memory_order_acquire);
		if ((int32_t)(tail_of(t) - at) > 0) {
			at = tail_of(t);
			continue;
		}
		if (!len || !mark_named(p, &f, len))
			return false;
		at += len;
	}
	return true;
}

void hydns_link_mark_unread(struct hydns_link *l)
{
	for (uint32_t i = 0; i < l->p->o.threads; i++)
		if (!mark_ring(l->p, &l->p->thread[i]))
			hydns_plugin_suspend_rules(l->p);
}

bool hydns_link_check_unread(struct hydns_link *l)
{
	uint64_t now_ms = hydns_mono_coarse_ms();
	bool waits = false;

	for (uint32_t i = 0; i < l->p->o.threads; i++) {
		if (change_stuck(&l->unread[i], &l->p->thread[i], now_ms)) {
			hydns_link_mark_unread(l);
			return true;
		}
		waits |= l->unread[i].since_ms != 0;
	}
	return waits;
}
