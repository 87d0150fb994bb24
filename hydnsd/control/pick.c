/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/pick.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "hydnsd/netdev/prefixes.h"

#define TRIES_MOST 128                 /* dry runs, of 8 to 10 us each */
#define HOSTS      4                   /* tried of a prefix: the first ones may be this host's */

static const uint8_t v4_root[16] = { [10] = 0xff, [11] = 0xff };
static const uint8_t example4[16] = { [10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2, [15] = 1 };
static const uint8_t example6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 };
/* The first addresses that hosts may have: none has one in 0/8 or ::/64. */
static const uint8_t first4[16] = { [10] = 0xff, [11] = 0xff, [12] = 1, [15] = 1 };
static const uint8_t first6[16] = { 0x20, [15] = 1 };

struct picking {
	hydnsd_pick_try try;
	void *arg;
	unsigned tries;
	bool any;                      /* *out has one */
	uint8_t *out;
};

static bool holds(const uint8_t prefix[16], unsigned bits, const uint8_t addr[16])
{
	unsigned octets = bits / 8, rest = bits % 8;

	return memcmp(prefix, addr, octets) == 0 && (!rest || !((prefix[octets] ^ addr[octets]) >> (8 - rest)));
}

/* Reduces an entry to its part of this family; false: it has none. */
static bool narrow(struct hydns_acl_entry *e, bool v4)
{
	bool within_v4 = e->prefixlen >= HYDNSD_PREFIX_BITS_V4 && holds(v4_root, HYDNSD_PREFIX_BITS_V4, e->addr);

	if (!v4 || within_v4)
		return v4 == within_v4;
	if (!holds(e->addr, e->prefixlen, v4_root))
		return false;
	memcpy(e->addr, v4_root, sizeof(v4_root));
	e->prefixlen = HYDNSD_PREFIX_BITS_V4;
	return true;
}

static bool try_one(struct picking *p, const uint8_t addr[16])
{
	bool let_in = p->try(addr, p->arg);

	p->tries++;
	if (let_in || !p->any)
		memcpy(p->out, addr, 16);
	p->any = true;
	return let_in;
}

/* True: one is let in. */
static bool try_prefix(struct picking *p, const struct hydns_acl_entry *e, bool v4)
{
	const uint8_t *first = v4 ? first4 : first6;
	uint8_t addr[16];

	memcpy(addr, e->addr, sizeof(addr));
	if (e->prefixlen == HYDNSD_PREFIX_BITS)
		return try_one(p, addr);
	if (holds(e->addr, e->prefixlen, first))
		memcpy(addr, first, sizeof(addr));
	else
		addr[15] |= 1;
	for (unsigned n = 0; n < HOSTS && holds(e->addr, e->prefixlen, addr); n++, addr[15]++)
		if (try_one(p, addr))
			return true;
	return false;
}

/* Sorts entries that need no cookie first, then by width. */
static int widest_first(const void *a, const void *b)
{
	const struct hydns_acl_entry *x = a, *y = b;

	if (x->action != y->action)
		return x->action == HYDNS_ACL_ALLOW ? -1 : y->action == HYDNS_ACL_ALLOW ? 1 : 0;
	return x->prefixlen != y->prefixlen ? x->prefixlen - y->prefixlen : memcmp(x->addr, y->addr, sizeof(x->addr));
}

void hydnsd_pick_client(struct hydnsd *d, uint32_t i, bool v4, hydnsd_pick_try try, void *arg, uint8_t out[16])
{
	struct picking p = { .try = try, .arg = arg, .out = out };
	struct hydns_acl_entry *e = calloc(HYDNS_ACL_ENTRIES, sizeof(*e));
	int n = e ? hydns_kern_acl_read(d->kern, i, e, HYDNS_ACL_ENTRIES) : 0;

	if (n > 0)
		qsort(e, (size_t)n, sizeof(*e), widest_first);
	memcpy(out, v4 ? example4 : example6, 16);
	for (int at = 0; at < n && p.tries < TRIES_MOST; at++)
		if (e[at].action != HYDNS_ACL_PASS && narrow(&e[at], v4) && try_prefix(&p, &e[at], v4))
			break;
	free(e);
}
