/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Names and questions as keys, eight octets at a time: this is on the path of every query. */
#include <arpa/inet.h>
#include <string.h>
#include "hydns/hash.h"
#include "plugin/offers/offers.h"

#define LABEL_MAX 63

size_t hydns_name_length(const uint8_t *name, size_t max)
{
	size_t at = 0;

	if (max > HYDNS_NAME_MAX)
		max = HYDNS_NAME_MAX;
	while (at < max) {
		if (name[at] == 0)
			return at + 1;
		if (name[at] > LABEL_MAX)
			return 0;
		at += 1U + name[at];
	}
	return 0;
}

static uint64_t load_lower(const uint8_t *p, size_t n)
{
	uint64_t w = 0;

	memcpy(&w, p, n);
	return hydns_lower8(w);
}

void hydns_name_lower(uint8_t *dst, const uint8_t *src, size_t len)
{
	uint64_t w;
	size_t i = 0;

	for (; i + 8 <= len; i += 8) {
		w = load_lower(src + i, 8);
		memcpy(dst + i, &w, 8);
	}
	if (i < len) {
		w = load_lower(src + i, len - i);
		memcpy(dst + i, &w, len - i);
	}
}

bool hydns_name_ends_with(const uint8_t *name, size_t len, size_t of_len)
{
	size_t at = 0;

	while (len - at > of_len)
		at += 1U + name[at];
	return len - at == of_len;
}

bool hydns_name_is_in(const uint8_t *name, size_t len, const uint8_t *of, size_t of_len)
{
	return hydns_name_ends_with(name, len, of_len) && !memcmp(name + len - of_len, of, of_len);
}

/* The same as lower-casing a copy and hydns_key_hash(), without the copy. */
uint64_t hydns_question_key(const struct hydns_question *q, const uint64_t seed[2])
{
	const __u64 s[2] = { seed[0], seed[1] };
	size_t len = q->name_len, i = 0;
	struct hydns_sip sip;

	hydns_sip_begin(&sip, s);
	for (; i + 8 <= len; i += 8)
		hydns_sip_word(&sip, load_lower(q->name + i, 8));
	if (i < len)
		hydns_sip_word(&sip, load_lower(q->name + i, len - i));
	hydns_sip_word(&sip, hydns_key_tail((uint8_t)len, htons(q->qtype), q->variant, 0));
	return hydns_sip_end(&sip);
}
