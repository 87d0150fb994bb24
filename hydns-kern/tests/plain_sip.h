/* SPDX-License-Identifier: GPL-2.0-only */
/* SipHash of a message as the paper defines it (Aumasson, Bernstein 2012), from the primitives under test. */
#ifndef HYDNS_KERN_TESTS_PLAIN_SIP_H
#define HYDNS_KERN_TESTS_PLAIN_SIP_H

#include <string.h>
#include "hydns/hash.h"

/* The last word holds the message's length. */
static __u64 plain_sip(const unsigned char *m, unsigned len, const __u64 key[2],
		       void (*word)(struct hydns_sip *, __u64), __u64 (*end)(struct hydns_sip *))
{
	struct hydns_sip s;
	unsigned i;
	__u64 w;

	hydns_sip_begin(&s, key);
	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&w, m + i, 8);
		word(&s, w);
	}
	w = 0;
	memcpy(&w, m + i, len - i);
	word(&s, w | (__u64)len << 56);
	return end(&s);
}

#endif
