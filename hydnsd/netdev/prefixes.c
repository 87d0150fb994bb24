/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/netdev/prefixes.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A prefix on the path from the root to the present one, with the values of all tables there. */
struct level {
	const struct hydnsd_prefix *prefix;    /* NULL: above the root */
	uint8_t value[HYDNSD_PREFIX_TABLES];
	uint8_t result;
};
#define LEVELS (HYDNSD_PREFIX_BITS + 2)        /* a prefix of each length, and the one above the root */

static void clear_rest(struct hydnsd_prefix *p)
{
	unsigned octets = p->bits / 8, rest = p->bits % 8;

	if (rest)
		p->addr[octets++] &= (uint8_t)(0xff00 >> rest);
	memset(p->addr + octets, 0, sizeof(p->addr) - octets);
}

/* Sorts a prefix before those that it holds. */
static int compare(const void *a, const void *b)
{
	const struct hydnsd_prefix *x = a, *y = b;
	int differs = memcmp(x->addr, y->addr, sizeof(x->addr));

	if (!differs)
		differs = (int)x->bits - y->bits;
	return differs ? differs : x->order < y->order ? -1 : x->order > y->order;
}

static bool holds(const struct hydnsd_prefix *p, const uint8_t addr[16])
{
	unsigned octets = p->bits / 8, rest = p->bits % 8;

	return memcmp(p->addr, addr, octets) == 0 && (!rest || (p->addr[octets] ^ addr[octets]) >> (8 - rest) == 0);
}

static bool same_place(const struct hydnsd_prefix *a, const struct hydnsd_prefix *b)
{
	return a->bits == b->bits && memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

int hydnsd_prefixes_combine(struct hydnsd_prefix *in, uint32_t n, hydnsd_prefixes_judge judge, const void *arg,
			    struct hydnsd_prefix *out, uint32_t room)
{
	struct level level[LEVELS], *top = level;
	uint32_t count = 0, i = 0;

	memset(top, 0, sizeof(*top));
	for (uint32_t k = 0; k < n; k++) {
		in[k].order = k;
		clear_rest(&in[k]);
	}
	if (n)
		qsort(in, n, sizeof(*in), compare);
	while (i < n) {
		const struct hydnsd_prefix *p = &in[i];
		uint8_t around;

		while (top->prefix && !holds(top->prefix, p->addr))
			top--;
		around = top->result;
		top[1] = *top;
		top++;
		top->prefix = p;
		for (; i < n && same_place(p, &in[i]); i++)
			top->value[in[i].table] = in[i].value;
		top->result = judge(top->value, arg);
		if (top->result == around)
			continue;
		if (count == room)
			return -E2BIG;
		out[count] = *p;
		out[count].table = 0;
		out[count].order = count;
		out[count++].value = top->result;
	}
	return (int)count;
}

uint8_t hydnsd_prefixes_find(const struct hydnsd_prefix *list, uint32_t n, const uint8_t addr[16])
{
	const struct hydnsd_prefix *found = NULL;

	for (uint32_t i = 0; i < n; i++)
		if (holds(&list[i], addr) && (!found || list[i].bits >= found->bits))
			found = &list[i];
	return found ? found->value : 0;
}
