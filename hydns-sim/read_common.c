/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What all readers do with a message. */
#include "hydns-sim/read_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns-sim/dns.h"

int read_fail(struct reader *r, const char *format, ...)
{
	va_list args;
	int n = snprintf(r->error, SIM_READ_ERROR, "%.200s: ", r->path);

	va_start(args, format);
	vsnprintf(r->error + n, SIM_READ_ERROR - (size_t)n, format, args);
	va_end(args);
	return -1;
}

/* -- questions and their numbers: open addressing, never more than half full ------------------------------- */
struct name {
	uint64_t hash;                 /* 0: empty */
	uint32_t id;
	uint16_t len;
	bool answered;                 /* an answer's TTL is known */
	const uint8_t *question;
};

static uint64_t hash_of(const uint8_t *q, uint32_t len)
{
	uint64_t h = 0xcbf29ce484222325ULL; /* FNV-1a: G. Fowler, L. C. Noll, K.-P. Vo */

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ q[i]) * 0x100000001b3ULL;
	return h ? h : 1;
}

static bool names_init(struct names *n, uint64_t places)
{
	n->name = calloc(places, sizeof(*n->name));
	n->mask = places - 1;
	return n->name;
}

static struct name *place_of(struct names *n, uint64_t hash, const uint8_t *q, uint32_t len)
{
	for (uint64_t i = hash; ; i++) {
		struct name *p = &n->name[i & n->mask];

		if (!p->hash || (p->hash == hash && p->len == len && !memcmp(p->question, q, len)))
			return p;
	}
}

static bool grow(struct names *n)
{
	struct names bigger = { .count = n->count };

	if (!names_init(&bigger, 2 * (n->mask + 1)))
		return false;
	for (uint64_t i = 0; i <= n->mask; i++)
		if (n->name[i].hash)
			*place_of(&bigger, n->name[i].hash, n->name[i].question, n->name[i].len) = n->name[i];
	free(n->name);
	*n = bigger;
	return true;
}

bool read_names_init(struct names *n)
{
	return names_init(n, 1U << 16);
}

void read_names_free(struct names *n)
{
	for (uint64_t i = 0; n->name && i <= n->mask; i++)
		free((uint8_t *)(uintptr_t)n->name[i].question);
	free(n->name);
}

/* The question's id; SIM_NO_ID without memory. */
static uint32_t id_of(struct names *n, const uint8_t *q, uint32_t len)
{
	uint64_t hash = hash_of(q, len);
	struct name *p;
	uint8_t *copy;

	if (2 * (uint64_t)n->count > n->mask && !grow(n))
		return SIM_NO_ID;
	p = place_of(n, hash, q, len);
	if (p->hash)
		return p->id;
	copy = malloc(len);
	if (!copy)
		return SIM_NO_ID;
	memcpy(copy, q, len);
	*p = (struct name){ hash, n->count++, (uint16_t)len, false, copy };
	return p->id;
}

/* -- messages ---------------------------------------------------------------------------------------------- */
int read_query(struct reader *r, const uint8_t *question, uint32_t len, uint64_t at_us)
{
	uint32_t id = id_of(r->names, question, len);

	if (!r->begun) {
		r->begun = true;
		r->begun_us = at_us;
	}
	r->counts->queries++;
	if (id == SIM_NO_ID || !sim_trace_add(r->out, at_us > r->begun_us ? at_us - r->begun_us : 0, id) ||
	    (id >= r->out->ids && !sim_trace_set_ttl(r->out, id, r->options->ttl)))
		return read_fail(r, "out of memory: give a shorter trace");
	return 0;
}

/* An answer from a cache shows the remaining TTL; the longest one seen is nearest to the original. */
static int note_answer(struct reader *r, const struct dns_message *m)
{
	struct name *p = place_of(r->names, hash_of(m->question, m->question_len), m->question, m->question_len);

	if (!p->hash || !m->cacheable)
		return 0;
	r->counts->answers++;
	if (!p->answered || m->ttl > r->out->ttl[p->id])
		r->out->ttl[p->id] = m->ttl;
	p->answered = true;
	return 0;
}

int read_message(struct reader *r, const uint8_t *wire, size_t len, uint64_t at_us)
{
	struct dns_message m;

	if (!dns_read(wire, len, &m)) {
		r->counts->ignored++;
		return 0;
	}
	return m.response ? note_answer(r, &m) : read_query(r, m.question, m.question_len, at_us);
}
