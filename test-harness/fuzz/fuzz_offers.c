/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hostile offers through validation, policy and store: random octets, and good offers with a few octets changed. Each
 * published rule must be a message that ldns reads, in every rotation; withdrawing a published name must remove it.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns-kern/store/rule.h"
#include "hydnsd/tests/build.h"
#include "test-harness/fuzz/target.h"

#define NOW_NS          1000000000000ULL
#define CAPACITY        512            /* small, so that eviction and full sizes happen */
#define COUNT_DEFAULT   100000         /* a share small enough for every test run */
#define MUTATIONS_MAX   6
#define RANDOM_ONE_IN   8              /* one offer in so many is all random octets */
#define RANDOM_MAX      600

static const struct build_spec good[] = {
	{ .name = "www.example.com.", .type = 1, .answer = { "www.example.com. 300 IN A 192.0.2.1" } },
	{ .name = "www.example.com.", .type = 1, .answer = { "www.example.com. 60 IN CNAME a.example.net.",
	  "a.example.net. 30 IN A 192.0.2.1", "a.example.net. 30 IN A 192.0.2.2",
	  "a.example.net. 30 IN A 192.0.2.3" } },
	{ .name = "example.org.", .type = 15, .answer = { "example.org. 3600 IN MX 10 mx1.example.org.",
	  "example.org. 3600 IN MX 20 mx2.example.org." },
	  .additional = { "mx1.example.org. 3600 IN AAAA 2001:db8::1" } },
	{ .name = "nx.example.com.", .type = 28, .rcode = 3, .authority_section = {
	  "example.com. 900 IN SOA ns.example.com. h.example.com. 1 7200 3600 1209600 900" } },
	{ .name = "svc.example.", .type = 65, .answer = {
	  "svc.example. 300 IN HTTPS 1 . alpn=h2,h3 ipv4hint=192.0.2.1" } },
	{ .name = "txt.example.", .type = 16, .answer = { "txt.example. 20 IN TXT \"a\" \"bcd\"" } },
	{ .name = "s.example.", .type = 1, .variant = HYDNS_VARIANT_DO, .flags = HYDNS_RULE_SECURE, .answer = {
	  "s.example. 300 IN A 192.0.2.7",
	  "s.example. 300 IN RRSIG A 13 2 300 20300101000000 20200101000000 1 example. AAAAAAAAAAAA" },
	  .authority_section = { "s.example. 300 IN NSEC t.example. A RRSIG NSEC" } },
	{ .name = "nx.example.com.", .type = 1, .rcode = 3, .flags = HYDNS_RULE_SECURE, .authority_section = {
	  "example.com. 900 IN SOA ns.example.com. h.example.com. 1 7200 3600 1209600 900" },
	  .left_out = { "a.example.com.", "*.example.com." } },
	{ .name = "bogus.example.com.", .type = 1, .rcode = 2, .flags = HYDNS_RULE_BOGUS, .errors = "first second",
	  .left_out = { "a.example.com." } },
	{ .name = "_sip._udp.example.", .type = 33, .answer = {
	  "_sip._udp.example. 300 IN SRV 1 2 5060 sip.example." } },
};
#define GOOD (sizeof(good) / sizeof(good[0]))

static union build_offer seeds[GOOD];
static size_t seed_len[GOOD];

static size_t random_offer(union build_offer *o)
{
	size_t len = HYDNS_OFFER_DATA + fuzz_below(RANDOM_MAX);

	fuzz_fill(o->octet, len);
	if (fuzz_below(2)) {                /* valid lengths, so that later checks are reached */
		o->offer.name_len = (uint8_t)fuzz_below(40);
		o->offer.answer_len = (uint16_t)fuzz_below((uint32_t)(len - HYDNS_OFFER_DATA + 1));
	}
	return len;
}

static size_t mutated_offer(union build_offer *o)
{
	static const uint8_t liked[] = { 0, 1, 0x3f, 0x40, 0xc0, 0xc1, 0x0c, 0xff, 0x7f, 0x80, 41 };
	unsigned which = fuzz_below(GOOD), n = 1 + fuzz_below(MUTATIONS_MAX);
	size_t len = seed_len[which];

	memcpy(o, &seeds[which], len);
	while (n--) {
		/* mostly in the name and the answer */
		size_t from = fuzz_below(4) ? HYDNS_OFFER_DATA : 0;
		size_t at = from + fuzz_below((uint32_t)(len - from));

		o->octet[at] = fuzz_below(2) ? liked[fuzz_below(sizeof(liked))] : (uint8_t)fuzz_next();
	}
	if (fuzz_below(16) == 0)
		len = fuzz_below((uint32_t)len + 1);
	return len;
}

/* Whether the published rule is a good message and a withdrawal of its name removes it. NULL, or what is wrong. */
static const char *inspect(struct build_store *s, const struct hydnsd_answer *a, uint64_t number)
{
	const struct hydns_rule *head = &a->parts.head;
	struct hydns_store *store = hydnsd_rules_store(s->rules);
	uint32_t handle = hydns_store_find(store, a->parts.name, head->name_len, head->qtype, head->variant,
					   head->resolver);
	struct hydnsd_withdrawal w = { .resolver = head->resolver, .scope = HYDNS_SCOPE_NAME };
	struct hydnsd_scan pass = { .of = { &w }, .count = 1 };
	const char *fault;

	if (!handle)
		return "published, but not found";
	fault = build_rule_fault(hydns_store_rule(store, handle));
	if (fault)
		return fault;
	if (number % 4)
		return NULL;
	w.name_len = head->name_len;
	memcpy(w.name, a->parts.name, head->name_len);
	hydnsd_scan_begin(s->rules, &pass);
	while (!hydnsd_scan_step(s->rules, &pass, NOW_NS, UINT32_MAX))
		;
	if (hydns_store_find(store, a->parts.name, head->name_len, head->qtype, head->variant, head->resolver))
		return "withdrawn, but still there";
	return NULL;
}

static struct build_store store;
static uint64_t turns, published;

static const char *turn(void)
{
	static union build_offer offer;
	static struct hydnsd_answer answer;
	const struct hydnsd_offer_limits limits = { .now_ns = NOW_NS, .seed = 0x5eed, .rotates = true };
	const struct hydnsd_offerer by = { .resolver = 1, .refresh_percent = 10 };
	size_t len = fuzz_below(RANDOM_ONE_IN) ? mutated_offer(&offer) : random_offer(&offer);
	uint8_t *exact = malloc(len ? len : 1); /* so that a sanitizer sees each octet read beyond it */
	enum hydnsd_rejection why;

	memcpy(exact, &offer, len);
	why = hydnsd_offer_check((const struct hydns_offer *)exact, len, &limits, &answer);
	free(exact);
	if (++turns % 64 == 0)
		build_store_grace(&store);
	if (why || hydnsd_rules_admit(store.rules, &by, &answer, NOW_NS))
		return NULL;
	published++;
	return inspect(&store, &answer, turns);
}

static int begin(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	for (unsigned i = 0; i < GOOD; i++)
		seed_len[i] = build_offer(&seeds[i], &good[i], NOW_NS);
	build_store_open(&store, CAPACITY, 0, NOW_NS);
	return 0;
}

static int end(void)
{
	printf("%" PRIu64 " offers published, all of them readable\n", published);
	build_store_close(&store);
	return published == 0;
}

const struct fuzz_target fuzz_target = {
	.name = "offers", .one = "offer", .count = COUNT_DEFAULT, .begin = begin, .turn = turn, .end = end,
};
