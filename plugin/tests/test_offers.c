/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which answers are offered, when, and what an offer says; and why others are not offered. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "hydns/hash.h"
#include "plugin/tests/world.h"

#define TYPE_A     1
#define CHANGED_LEN 48   /* octets of the CHANGED frame of www */

/* Found as hydnsd finds it: by its own hash of the question. */
static struct hydns_not_offered not_offered(struct world *w, const struct hydns_question *q)
{
	const struct hydns_not_offered *table = (const void *)((uint8_t *)w->peer.ring[0] + HYDNS_RING_DATA + HYDNS_RING_BYTES);
	uint8_t lower[HYDNS_NAME_MAX];
	uint64_t key;

	hydns_name_lower(lower, q->name, q->name_len);
	key = hydns_key_hash(lower, (uint8_t)q->name_len, htons(q->qtype), q->variant, 0, w->peer.hello.seed);
	return table[HYDNS_NOT_OFFERED_PLACE(key)].key == key ? table[HYDNS_NOT_OFFERED_PLACE(key)] : (struct hydns_not_offered){ 0 };
}

static void assert_not_offered(struct world *w, const struct hydns_question *q, enum hydns_not_offered_why why, uint32_t value)
{
	assert_int_equal(not_offered(w, q).what, HYDNS_NOT_OFFERED_WHAT(why, value));
}

static void offers_what_is_hot(void **state)
{
	struct world *w = *state;
	const time_t expires = time(NULL) + TTL;
	union ring_frame f;
	unsigned seen = 1;
	uint64_t woken;

	assert_int_equal(hydns_plugin_start(w->p), 0);
	for (int i = 0; i < 2 * ADMISSION; i++)
		assert_false(hot(w, expires));          /* hydnsd is away */
	peer_start(&w->peer);
	assert_true(connected(w));
	w->reply.question.variant = HYDNS_VARIANT_DO;           /* another question */
	while (!hot(w, expires))
		seen++;
	assert_in_range(seen, ADMISSION, ADMISSION + 1);        /* a doorkeeper may hide the first */
	w->reply.question.variant = 0;
	assert_true(hot(w, expires));

	while (read(w->peer.doorbell, &woken, sizeof(woken)) > 0)
		;
	w->peer.ring[0]->need_wakeup = HYDNS_WAKEUP_ALL;
	assert_offered(w);
	assert_int_equal(read(w->peer.doorbell, &woken, sizeof(woken)), sizeof(woken));
	assert_true(next_frame(w, 0, &f));
	assert_int_equal(f.offer.frame.type, HYDNS_FRAME_OFFER);
	assert_int_equal(f.offer.epoch, page_epoch(w));
	assert_int_equal(f.offer.generation, page_generation(w));
	assert_int_equal(f.offer.ttl, TTL);
	assert_in_range(f.offer.count, ADMISSION, 100);
	assert_int_equal(ntohs(f.offer.qtype), 1);
	assert_int_equal(ntohs(f.offer.ancount), 2);
	assert_int_equal(f.offer.flags, HYDNS_RULE_SECURE);
	assert_int_equal(f.offer.name_len, sizeof(www));
	assert_memory_equal(f.offer.data, www_lower, sizeof(www));
	assert_memory_equal(f.offer.data + sizeof(www), w->reply.wire + 12 + sizeof(www) + 4,
			    f.offer.answer_len);
	/* base: the wall second began less than a second (and a test's stall) ago */
	assert_in_range(hydns_mono_ns() - f.offer.base_ns, 0, 5 * HYDNS_NS_PER_S);
	assert_false(next_frame(w, 0, &f));
	assert_int_equal(w->peer.ring[0]->offered, 1);
	assert_in_range(w->peer.ring[0]->queries, 2 * ADMISSION + seen + 1, 2 * ADMISSION + seen + 1);
	peer_stop(&w->peer);
}

static void does_not_repeat_offers(void **state)
{
	struct world *w = *state;
	const time_t now = time(NULL), expires = now + TTL;
	struct hydns_question *q = &w->reply.question;

	start_both(w);
	while (!hot(w, expires))
		;
	assert_false(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 1)); /* never offered */
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, expires, false,
					     hydns_plugin_stamp(w->p)), 0);
	assert_false(hot(w, expires));
	assert_true(hot(w, expires + TTL));       /* another end: at once */
	assert_true(BECOMES(hot(w, expires)));    /* after a while again */
	assert_false(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 4));
	assert_true(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 3)); /* the last tenth */
	assert_false(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 3));
	assert_true(BECOMES(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires - 1)));
	assert_false(hydns_plugin_refresh_due(w->t, q, expires, TTL, expires));
	hydns_plugin_withdraw_all(w->p);
	assert_true(hot(w, expires));             /* hydnsd no longer has it */
	peer_stop(&w->peer);
}

/* A question is counted before its answer is known, and the answer offered later. Before anything was offered, look-ups are
 * spared and nothing is lost. */
static void counts_before_the_answer(void **state)
{
	struct world *w = *state;
	const time_t now = time(NULL), expires = now + TTL;
	const struct hydns_question *q = &w->reply.question;
	uint64_t key, now_ms = hydns_mono_coarse_ms();
	uint32_t sightings = 0;

	start_both(w);
	key = hydns_plugin_prefetch(w->t, q);
	for (unsigned seen = 1; seen < ADMISSION; seen++) {
		assert_true(hydns_plugin_sample(w->t, now));
		assert_int_equal(hydns_plugin_sighted(w->t, key, now_ms), 0);
	}
	assert_false(hydns_plugin_due(w->t, q, 0, expires, now_ms));
	while (!sightings)
		sightings = hydns_plugin_sighted(w->t, key, now_ms);
	assert_true(hydns_plugin_due(w->t, q, sightings, expires, now_ms));
	assert_false(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), expires + TTL, now, hydns_plugin_stamp(w->p)));
	assert_offered(w);
	now_ms = hydns_mono_coarse_ms();
	assert_false(hydns_plugin_due(w->t, q, sightings, expires, now_ms));
	assert_true(hydns_plugin_due(w->t, q, sightings, expires + TTL, now_ms));
	assert_true(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), expires + TTL, now, hydns_plugin_stamp(w->p)));
	peer_stop(&w->peer);
}

/* Also those that are not in the sample, without another query to follow. */
static void counts_each_query(void **state)
{
	struct world *w = *state;
	const struct hydns_ring *ring = w->t->ring.ring;
	const unsigned n = 2000 * HYDNS_SAMPLE_PER_S;
	const time_t now = time(NULL);
	const uint64_t before = ring->queries;
	unsigned sampled = 0;

	for (unsigned i = 1; i <= n; i++) {
		sampled += hydns_plugin_sample(w->t, now);
		assert_int_equal(ring->queries - before, i);
	}
	assert_in_range(sampled, 1, n / 2);
}

/* The first query that needs a resolution is only remembered. */
static void first_sight_is_not_counted(void **state)
{
	struct world *w = *state;
	const struct hydns_question *q = &w->reply.question;
	uint64_t key;

	start_both(w);
	key = hydns_plugin_prefetch_known(w->t, q);
	assert_int_equal(key, hydns_plugin_key(w->t, q));
	assert_true(hydns_plugin_first_sight(w->t, key));
	assert_int_equal(hydns_sketch_estimate(w->t->hot.sketch, key), 0);
	assert_false(hydns_plugin_first_sight(w->t, key));
	w->peer.ring[0]->threshold = 1;            /* the store is full: all count */
	assert_false(hydns_plugin_first_sight(w->t, key ^ 1ULL << 60));
	w->peer.ring[0]->threshold = 0;
	assert_true(hydns_plugin_first_sight(w->t, key ^ 1ULL << 60));
	peer_stop(&w->peer);
}

/* Before the first offer no changes are recorded, so it is refused. */
static void the_first_offer_begins_to_watch(void **state)
{
	struct world *w = *state;
	struct hydns_plugin_options o = world_options(w);
	struct hydns_plugin *p = w->p;

	w->p = hydns_plugin_new(&o);
	w->t = hydns_plugin_thread(w->p, 0);
	start_both(w);
	hydns_plugin_changed(w->t, www_lower, sizeof(www));
	assert_int_equal(offer(w, hydns_plugin_stamp(w->p)), -ESTALE);
	assert_offered(w);
	peer_stop(&w->peer);
	hydns_plugin_stop(p);
}

/* A refreshed answer is offered without a query while the former one stands, but not after a removal. */
static void asks_for_renewed(void **state)
{
	struct world *w = *state;
	const time_t now = time(NULL), expires = now + TTL, later = expires + TTL;
	struct hydns_question *q = &w->reply.question, other = *q;
	struct hydns_stamp begun;

	start_both(w);
	begun = hydns_plugin_stamp(w->p);
	assert_false(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), later, now, begun));     /* never offered */
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, expires, false, begun), 0);
	assert_true(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), later, now, begun));
	assert_false(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), expires, now, begun));     /* offered just now */
	assert_false(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), later, later, begun)); /* no rule any more */
	other.variant = HYDNS_VARIANT_DO;
	assert_false(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, &other), later, now, begun));
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_false(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), later, now, begun));
	begun = hydns_plugin_stamp(w->p);     /* a later resolution, but the removal may hide the cache */
	assert_false(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), later, now, begun));
	assert_int_equal(offer(w, begun), 0);
	assert_true(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), later, now, begun));
	hydns_plugin_withdraw_all(w->p);
	assert_false(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), later, now, hydns_plugin_stamp(w->p)));
	peer_stop(&w->peer);
	assert_true(disconnected(w));
	assert_false(hydns_plugin_offered(w->t, hydns_plugin_key(w->t, q), later, now, hydns_plugin_stamp(w->p)));
}

/* An answer from a zone lives until it expires, whatever its TTLs, and is offered again after a withdrawal. */
static void offers_what_is_fixed(void **state)
{
	struct world *w = *state;
	struct hydns_question *q = &w->reply.question;
	const time_t now = time(NULL);
	union ring_frame f;

	start_both(w);
	q->fixed = true;
	while (!hot(w, now))
		;
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, now + 9 * TTL, false,
					     hydns_plugin_stamp(w->p)), 0);
	assert_true(next_frame(w, 0, &f));
	assert_int_equal(f.offer.flags, HYDNS_RULE_STATIC_TTL);
	assert_int_equal(f.offer.ttl, 9 * TTL);
	assert_false(hot(w, now + TTL));
	hydns_plugin_zone_changed(w->p);
	assert_true(hot(w, now + TTL));
	peer_stop(&w->peer);
}

/* Or each version would withdraw such a rule of each delegation; there is no template without a preloading object. */
static void keeps_no_ds_as_a_template_alone(void **state)
{
	const struct reply_spec spec = { .name = "cut.example.org.", .type = HYDNS_TYPE_DS,
		.authority = { "example.org. 300 IN SOA ns.example.org. h.example.org. 1 7200 3600 1209600 300" } };
	struct world *w = *state;
	const time_t now = time(NULL), expires = now + TTL;
	union ring_frame f;
	struct reply r;

	start_both(w);
	reply_make(&r, &spec);
	r.wire[2] |= HYDNS_FLAG_AA >> 8;
	r.question.fixed = r.question.kept = true;
	assert_int_equal(hydns_plugin_offer(w->t, &r.question, r.wire, r.len, now, expires, false, hydns_plugin_stamp(w->p)), -EINVAL);
	assert_false(next_frame(w, 0, &f));
	r.question.kept = false;
	assert_int_equal(hydns_plugin_offer(w->t, &r.question, r.wire, r.len, now, expires, false, hydns_plugin_stamp(w->p)), 0);
	assert_true(next_frame(w, 0, &f));
	reply_free(&r);
	peer_stop(&w->peer);
}

/* An offer lives no longer than the resolver's max-ttl, whatever its TTLs. */
static void a_life_ends_with_max_ttl(void **state)
{
	static const struct reply_spec lasting = { .name = "www.example.org.", .type = TYPE_A,
		.answer = { "www.example.org. 7200 IN A 192.0.2.1" } };
	union ring_frame f;
	struct world *w = *state;
	const time_t now = time(NULL);
	struct reply reply;

	start_both(w);
	reply_make(&reply, &lasting);
	assert_int_equal(hydns_plugin_offer(w->t, &reply.question, reply.wire, reply.len, now, now + 7200, false,
					     hydns_plugin_stamp(w->p)), 0);
	reply_free(&reply);
	assert_true(next_frame(w, 0, &f));
	assert_int_equal(f.offer.ttl, 3600);
	peer_stop(&w->peer);
}

static void refuses_offers(void **state)
{
	struct world *w = *state;
	const time_t now = time(NULL);
	struct hydns_question *q = &w->reply.question;
	struct hydns_stamp s;

	start_both(w);
	s = hydns_plugin_stamp(w->p);
	/* entry about to end, ended, from the future; reply cut short */
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, now + 1, true, s), -EINVAL);
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now, now - 1, true, s), -EINVAL);
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now - TTL, now + TTL, true, s),
			 -EINVAL);
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len, now + 9, now + TTL, true, s),
			 -EINVAL);
	assert_int_equal(hydns_plugin_offer(w->t, q, w->reply.wire, w->reply.len - 1, now, now + TTL, true, s),
			 -EINVAL);
	hydns_plugin_withdraw(w->p, HYDNS_SCOPE_SUBTREE, www, sizeof(www));
	assert_int_equal(offer(w, s), -ESTALE);
	s = hydns_plugin_stamp(w->p);
	hydns_plugin_withdraw_all(w->p);
	assert_int_equal(offer(w, s), -ESTALE);
	assert_offered(w);
	assert_int_equal(w->peer.ring[0]->offered, 1);
	s = hydns_plugin_stamp(w->p);
	hydns_plugin_kill_rules(w->p);        /* hydnsd would refuse it: another epoch */
	assert_int_equal(offer(w, s), -ESTALE);
	peer_stop(&w->peer);
}

static void full_ring_drops(void **state)
{
	static const uint8_t host[] = "\4host\7example\3net";
	struct world *w = *state;
	union ring_frame f;
	uint32_t epoch, n = 0, changes = 0;
	int error;

	start_both(w);
	epoch = page_epoch(w);
	while ((error = offer(w, hydns_plugin_stamp(w->p))) == 0)
		n++;
	assert_int_equal(error, -ENOBUFS);
	assert_int_equal(w->peer.ring[0]->dropped, 1);
	assert_true(n > 1000);
	assert_int_equal(page_epoch(w), epoch);
	/* Offers, which are repeated, leave room for changes and TTL updates. */
	hydns_plugin_ttl_update(w->t, host, sizeof(host), TYPE_A, HYDNS_SECTION_ANYWHERE, 1000, 1000 + TTL);
	assert_int_equal(w->peer.ring[0]->dropped, 1);
	for (n++; changes < HYDNS_RING_BYTES / CHANGED_LEN && page_epoch(w) == epoch; changes++)
		hydns_plugin_changed(w->t, www, sizeof(www));
	assert_true(changes > 1000);
	n += changes;
	n--;
	assert_int_equal(page_epoch(w), epoch + 1);
	while (next_frame(w, 0, &f))
		n--;
	assert_int_equal(n, 0);
	peer_stop(&w->peer);
}

/* However short the resolver's memory of a failure is: the minimum TTL is meant for answers. */
static void offers_failures_of_a_second(void **state)
{
	static const struct reply_spec failure = { .name = "dead.example.org.", .type = TYPE_A, .rcode = 2 };
	struct world *w = *state;
	time_t now = time(NULL);
	union ring_frame f;
	struct reply r;

	start_both(w);
	reply_make(&r, &failure);
	r.question.failure = true;
	assert_int_equal(hydns_plugin_offer(w->t, &r.question, r.wire, r.len, now, now + 1, false, hydns_plugin_stamp(w->p)), 0);
	assert_true(next_frame(w, 0, &f));
	assert_int_equal(f.offer.ttl, 1);
	assert_int_equal(hydns_plugin_offer(w->t, &r.question, r.wire, r.len, now, now, false, hydns_plugin_stamp(w->p)), -EINVAL);
	reply_free(&r);
	peer_stop(&w->peer);
}

/* Extended errors stand behind the answer in the frame, and left-out names behind these. */
static void offers_extended_errors(void **state)
{
	static const struct reply_spec failure = { .name = "bogus.example.org.", .type = TYPE_A, .rcode = 2, .edns = true };
	static const uint8_t option[] = { 0, 15, 0, 5, 0, 6, 'b', 'a', 'd' }, rest[] = "\1\7example\3org";
	const uint16_t len = sizeof(option);
	struct world *w = *state;
	time_t now = time(NULL);
	union ring_frame f;
	struct reply r;

	start_both(w);
	reply_make(&r, &failure);
	r.wire = realloc(r.wire, r.len + sizeof(option));
	memcpy(r.wire + r.len, option, sizeof(option));
	r.wire[r.len - 1] = sizeof(option);
	r.question.failure = r.question.bogus = true;
	hydns_plugin_depends_on(w->t, (const uint8_t *)"\7example\3org", 13);
	assert_int_equal(hydns_plugin_offer(w->t, &r.question, r.wire, r.len + sizeof(option), now, now + 60, false,
					    hydns_plugin_stamp(w->p)), 0);
	assert_true(next_frame(w, 0, &f));
	assert_int_equal(f.offer.flags, HYDNS_RULE_BOGUS | HYDNS_RULE_ERRORS | HYDNS_RULE_LEFT_OUT);
	assert_int_equal(f.offer.answer_len, 0);
	assert_memory_equal(f.offer.data + f.offer.name_len, &len, sizeof(len));
	assert_memory_equal(f.offer.data + f.offer.name_len + sizeof(len), option, sizeof(option));
	assert_memory_equal(f.offer.data + f.offer.name_len + sizeof(len) + sizeof(option), rest, sizeof(rest));
	reply_free(&r);
	peer_stop(&w->peer);
}

static void says_why_it_does_not_offer(void **state)
{
	struct world *w = *state;
	struct hydns_question q = w->reply.question;
	struct hydns_stamp stamp;
	time_t now = time(NULL);

	start_both(w);
	assert_int_equal(not_offered(w, &q).key, 0);
	stamp = hydns_plugin_stamp(w->p);
	assert_int_equal(offer(w, stamp), 0);
	assert_int_equal(not_offered(w, &q).key, 0);                   /* an offer writes nothing there */
	assert_int_equal(hydns_plugin_offer(w->t, &q, w->reply.wire, w->reply.len, now, now + 1, true, stamp), -EINVAL);
	assert_not_offered(w, &q, HYDNS_NOT_OFFERED_SHORT_TTL, 1);
	w->reply.wire[2] |= 0x02;
	assert_int_equal(offer(w, stamp), -EINVAL);
	assert_not_offered(w, &q, HYDNS_NOT_OFFERED_TRUNCATED, 0);
	w->reply.wire[2] ^= 0x02;
	w->reply.wire[3] |= 2;
	assert_int_equal(offer(w, stamp), -EINVAL);
	assert_not_offered(w, &q, HYDNS_NOT_OFFERED_ERROR, 2);
	w->reply.wire[3] ^= 2;
	hydns_plugin_withdraw_all(w->p);
	assert_int_equal(offer(w, stamp), -ESTALE);
	assert_not_offered(w, &q, HYDNS_NOT_OFFERED_CHANGED, 0);
	hydns_plugin_not_offered(w->t, hydns_plugin_key(w->t, &q), HYDNS_NOT_OFFERED_LOCAL_DATA, 0);
	assert_not_offered(w, &q, HYDNS_NOT_OFFERED_LOCAL_DATA, 0);
	q.variant = HYDNS_VARIANT_DO;
	assert_int_equal(not_offered(w, &q).key, 0);
	hydns_plugin_not_offered(w->t, hydns_plugin_key(w->t, &q), HYDNS_NOT_OFFERED_SHORT_TTL, UINT32_MAX);
	assert_not_offered(w, &q, HYDNS_NOT_OFFERED_SHORT_TTL, HYDNS_NOT_OFFERED_VALUE_MOST);
	peer_stop(&w->peer);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest test[] = {
		TEST(offers_what_is_hot), TEST(does_not_repeat_offers), TEST(counts_before_the_answer), TEST(counts_each_query),
		TEST(first_sight_is_not_counted), TEST(the_first_offer_begins_to_watch), TEST(asks_for_renewed), TEST(refuses_offers),
		TEST(offers_what_is_fixed), TEST(keeps_no_ds_as_a_template_alone), TEST(a_life_ends_with_max_ttl), TEST(full_ring_drops),
		TEST(offers_failures_of_a_second), TEST(offers_extended_errors), TEST(says_why_it_does_not_offer),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
