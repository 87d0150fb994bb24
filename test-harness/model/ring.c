/* SPDX-License-Identifier: GPL-2.0-only */
/* A ring between its producer (plugin/offers/ring.c) and its consumer (hydnsd/resolvers/ring.c, rings.c), in all orders. */
#include <stdlib.h>
#include <string.h>

#include "hydnsd/resolvers/session_internal.h"
#include "plugin/offers/offers.h"
#include "test-harness/model/model.h"

#define LEN   32               /* octets of each frame here; they fill the ring exactly */
#define COUNT (HYDNS_RING_BYTES / LEN)

static struct hydns_producer producer;
static struct hydnsd_ring consumer;
static struct hydnsd_session session;

static struct hydns_frame *frame(uint32_t i)
{
	return (struct hydns_frame *)((uint8_t *)producer.ring + HYDNS_RING_DATA + i % COUNT * LEN);
}

static void write_frame(struct hydns_frame *f, uint8_t number)
{
	f->len = LEN;
	f->type = HYDNS_FRAME_OFFER;
	memset((uint8_t *)f + sizeof(*f), number, LEN - sizeof(*f));
}

/* The frames from tail to head are in the ring already, each with its number. */
static void begin_at(uint32_t tail, uint32_t head)
{
	if (!producer.ring && hydns_producer_open(&producer))
		abort();
	for (uint32_t i = 0; i < COUNT; i++)
		write_frame(frame(i), (uint8_t)i);
	producer.head = producer.ring->head = head * LEN;
	producer.ring->tail = tail * LEN;
	producer.ring->need_wakeup = 0;
	producer.ring->dropped = 0;
	consumer = (struct hydnsd_ring){ .shared = producer.ring, .tail = tail * LEN, .head = tail * LEN };
	memset(&session, 0, sizeof(session));
	hydnsd_progress_start(&consumer.progress, consumer.tail, &session.begun);
	session.rings = 1;
	session.ring[0] = consumer;
}

static void produce(uint8_t number)
{
	struct hydns_frame *f = hydns_producer_reserve(&producer, LEN, 0);

	if (!f)
		return;
	write_frame(f, number);
	hydns_producer_commit(&producer, LEN);
}

static void consume(uint32_t *next)
{
	static union hydnsd_frame f;

	switch (hydnsd_ring_take(&consumer, &f)) {
	case HYDNSD_TAKEN_NONE:
		return;
	case HYDNSD_TAKEN_BROKEN:
		model_require(false, "a frame is broken");
		return;
	case HYDNSD_TAKEN_FRAME:
		for (unsigned i = sizeof(f.head); i < LEN; i++)
			model_require(f.octet[i] == (uint8_t)*next, "a frame's octets differ from those written");
		++*next;
		hydnsd_ring_give_back(&consumer, &session.begun);
	}
}

/* -- what is written is what is read ------------------------------------------------------------------------------ */
static void begin_empty(void)
{
	begin_at(0, 0);
}

static void produce_two(void)
{
	produce(0);
	produce(1);
}

static void consume_two(void)
{
	uint32_t next = 0;

	consume(&next);
	consume(&next);
}

static const struct model contents = { "frames are read as they were written", begin_empty, { produce_two, consume_two },
				       NULL };

/* -- room is reused only after it was given back ------------------------------------------------------------------- */
static void begin_full(void)
{
	begin_at(0, COUNT - 1);
}

static void produce_more(void)
{
	produce((uint8_t)(COUNT - 1));
	produce((uint8_t)COUNT);       /* where the first one was */
}

static const struct model room = { "a frame's room is reused after it was given back", begin_full,
				   { produce_more, consume_two }, NULL };

/* -- no frame waits while hydnsd sleeps ------------------------------------------------------------------------------ */
static bool rung, sleeps;

static void begin_awake(void)
{
	begin_at(0, 0);
	rung = sleeps = false;
}

static void produce_and_ring(void)
{
	struct hydns_frame *f = hydns_producer_reserve(&producer, LEN, 0);

	write_frame(f, 0);
	f->type = HYDNS_FRAME_CHANGED;
	rung = hydns_producer_commit(&producer, LEN);
}

static void fall_asleep(void)
{
	hydnsd_rings_need_wakeup(&session, HYDNS_WAKEUP_ALL);
	sleeps = !hydnsd_rings_any_ready(&session);
}

static void wait_for_offers(void)
{
	hydnsd_rings_need_wakeup(&session, HYDNS_WAKEUP_CHANGES);
	sleeps = !hydnsd_rings_any_ready(&session);
}

static void somebody_woke(bool half)
{
	model_require(half || !sleeps || rung, "hydnsd sleeps, and the doorbell was not rung");
}

static const struct model doorbell = { "a frame rings, or is seen before the sleep", begin_awake,
				       { produce_and_ring, fall_asleep }, somebody_woke };
static const struct model patient = { "a change rings, or is seen before the wait for offers", begin_awake,
				      { produce_and_ring, wait_for_offers }, somebody_woke };

int main(void)
{
	static const struct model_case cases[] = {
		{ &contents, { MODEL_NO_RELEASE, MODEL_NO_ACQUIRE } },
		{ &room, { MODEL_NO_RELEASE, MODEL_NO_ACQUIRE } },
		{ &doorbell, { MODEL_NO_FENCE } },
		{ &patient, { MODEL_NO_FENCE } },
	};

	return model_main(cases, sizeof(cases) / sizeof(cases[0]));
}
