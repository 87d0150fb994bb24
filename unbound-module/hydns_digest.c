/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"
#include <string.h>
#include <sys/random.h>
#include "hydns/hash.h"
#include "hydns_digest.h"

/* Secret: who may write a part of the configuration, as a list of names, cannot choose two parts that look the same. */
static __u64 key[2];

__attribute__((constructor)) static void choose_key(void)
{
	if(getrandom(key, sizeof(key), GRND_NONBLOCK) != (ssize_t)sizeof(key))
		memset(key, 0x5a, sizeof(key)); /* right after the host's start: then it is only less secret */
}

static struct hydns_sip state_of(const struct hydns_digest* d)
{
	struct hydns_sip s = { d->state[0], d->state[1], d->state[2], d->state[3] };

	if(d->len < sizeof(d->word))
		hydns_sip_begin(&s, key);
	return s;
}

static void add_word(struct hydns_digest* d)
{
	struct hydns_sip s = state_of(d);

	hydns_sip_word(&s, d->word);
	d->state[0] = s.v0;
	d->state[1] = s.v1;
	d->state[2] = s.v2;
	d->state[3] = s.v3;
	d->word = 0;
}

void hydns_digest_add(struct hydns_digest* d, const void* octets, size_t len)
{
	const uint8_t* o = (const uint8_t*)octets;
	size_t i;

	for(i = 0; i < len; i++) {
		d->word |= (uint64_t)o[i] << d->len % sizeof(d->word) * 8;
		if(d->len % sizeof(d->word) == sizeof(d->word) - 1)
			add_word(d);
		d->len++;
	}
}

void hydns_digest_number(struct hydns_digest* d, uint64_t number)
{
	hydns_digest_add(d, &number, sizeof(number));
}

uint64_t hydns_digest_value(const struct hydns_digest* d)
{
	struct hydns_sip s = state_of(d);

	hydns_sip_word(&s, d->word);
	hydns_sip_word(&s, d->len);
	return hydns_sip_end(&s);
}
