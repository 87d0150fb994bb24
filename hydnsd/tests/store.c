/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/tests/store.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

struct build_store store;

enum hydnsd_rejection admit_by(const struct build_spec *spec, const struct hydnsd_offerer *by, uint64_t now_ns)
{
	static union build_offer offer;
	static struct hydnsd_answer answer;
	const struct hydnsd_offer_limits limits = { .now_ns = now_ns, .seed = 0x5eed, .rotates = true };
	size_t len = build_offer(&offer, spec, now_ns);
	enum hydnsd_rejection why = hydnsd_offer_check(&offer.offer, len, &limits, &answer);

	return why ? why : hydnsd_rules_admit(store.rules, by, &answer, now_ns);
}

enum hydnsd_rejection admit(const struct build_spec *spec, uint32_t resolver, uint32_t capacity, uint64_t now_ns)
{
	const struct hydnsd_offerer by = {
		.resolver = resolver, .capacity = capacity, .refresh_percent = 10,
	};

	return admit_by(spec, &by, now_ns);
}

enum hydnsd_rejection admit_address_at(const char *name, const char *target, uint32_t count, uint64_t now_ns)
{
	char first[300], second[300];
	struct build_spec s = { .name = name, .type = 1, .count = count };

	if (target) {
		snprintf(first, sizeof(first), "%s 300 IN CNAME %s", name, target);
		snprintf(second, sizeof(second), "%s 300 IN A 192.0.2.1", target);
		s.answer[1] = second;
	} else {
		snprintf(first, sizeof(first), "%s 300 IN A 192.0.2.1", name);
	}
	s.answer[0] = first;
	return admit(&s, 1, 0, now_ns);
}

enum hydnsd_rejection admit_address(const char *name, const char *target, uint32_t count)
{
	return admit_address_at(name, target, count, NOW_NS);
}

size_t wire_of(const char *text, uint8_t *out)
{
	size_t at = 0;

	while (*text && strcmp(text, ".") != 0) {
		size_t n = strcspn(text, ".");

		out[at++] = (uint8_t)n;
		memcpy(out + at, text, n);
		at += n;
		text += n + 1;
	}
	out[at++] = 0;
	return at;
}

uint32_t find(const char *name)
{
	uint8_t wire[HYDNS_NAME_MAX];
	size_t len = wire_of(name, wire);

	return hydns_store_find(hydnsd_rules_store(store.rules), wire, (uint8_t)len, htons(1), 0, 1);
}

void whole_scan(struct hydnsd_scan *scan)
{
	uint32_t left = hydns_store_ordinals(hydnsd_rules_store(store.rules)) + 1;

	hydnsd_scan_begin(store.rules, scan);
	while (!hydnsd_scan_step(store.rules, scan, NOW_NS, 7))
		assert_true(left-- > 0);
}

uint32_t withdraw_older(enum hydns_scope scope, const char *name, uint32_t resolver, uint64_t generation)
{
	struct hydnsd_withdrawal w = { .resolver = resolver, .scope = scope, .generation = generation };
	struct hydnsd_scan scan = { .of = { &w }, .count = 1 };

	if (name)
		w.name_len = (uint8_t)wire_of(name, w.name);
	whole_scan(&scan);
	return w.withdrawn;
}

uint32_t withdraw(enum hydns_scope scope, const char *name, uint32_t resolver)
{
	return withdraw_older(scope, name, resolver, 0);
}

int open_store(void **state)
{
	(void)state;
	build_store_open(&store, CAPACITY, 0, NOW_NS);
	return 0;
}

int close_store(void **state)
{
	(void)state;
	build_store_close(&store);
	return 0;
}
