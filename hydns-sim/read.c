/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydns-sim/read_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns-sim/dns.h"

static const char *const formats[] = { "auto", "pcap", "dnstap", "dnsperf" };

bool sim_format_from_name(const char *name, uint32_t *out)
{
	for (uint32_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcmp(name, formats[i]) == 0) {
			*out = i;
			return true;
		}
	return false;
}

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

struct names {
	struct name *name;
	uint64_t mask;
	uint32_t count;
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

static void names_free(struct names *n)
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

/* A cache shows the TTL that is left; the longest that was ever seen comes nearest to the whole. */
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

/* -- formats ----------------------------------------------------------------------------------------------- */
static enum sim_format format_of(const uint8_t *head, size_t len)
{
	static const uint8_t fstrm[4] = { 0 };     /* a control frame's escape */
	static const uint32_t pcap[] = { 0xa1b2c3d4, 0xd4c3b2a1, 0xa1b23c4d, 0x4d3cb2a1, 0x0a0d0d0a };
	uint32_t magic;

	if (len < sizeof(magic))
		return SIM_FORMAT_DNSPERF;
	memcpy(&magic, head, sizeof(magic));
	for (size_t i = 0; i < sizeof(pcap) / sizeof(pcap[0]); i++)
		if (magic == pcap[i])
			return SIM_FORMAT_PCAP;
	return memcmp(head, fstrm, sizeof(fstrm)) == 0 ? SIM_FORMAT_DNSTAP : SIM_FORMAT_DNSPERF;
}

static int detect(struct reader *r, enum sim_format *out)
{
	FILE *f = fopen(r->path, "re");
	uint8_t head[8];
	size_t len;

	if (!f)
		return read_fail(r, "cannot open it: %s", strerror(errno));
	len = fread(head, 1, sizeof(head), f);
	fclose(f);
	*out = r->options->format == SIM_FORMAT_AUTO ? format_of(head, len) : r->options->format;
	return 0;
}

static int read_format(struct reader *r, enum sim_format format)
{
	switch (format) {
	case SIM_FORMAT_PCAP:
#ifdef HAVE_PCAP
		return read_pcap(r);
#else
		return read_fail(r, "this hydns-sim was built without libpcap: install libpcap-dev and build again");
#endif
	case SIM_FORMAT_DNSTAP:
#ifdef HAVE_DNSTAP
		return read_dnstap(r);
#else
		return read_fail(r, "this hydns-sim was built without dnstap: install libfstrm-dev, libprotobuf-c-dev "
				 "and protobuf-c-compiler and build again");
#endif
	default:
		return read_dnsperf(r);
	}
}

int sim_read(const char *path, const struct sim_read_options *o, struct sim_trace *out,
	     struct sim_read_counts *counts, char error[SIM_READ_ERROR])
{
	struct names names = { 0 };
	struct reader r = { .path = path, .options = o, .out = out, .counts = counts, .error = error, .names = &names };
	enum sim_format format = o->format;
	int rc;

	memset(counts, 0, sizeof(*counts));
	sim_trace_init(out);
	rc = detect(&r, &format);
	if (!rc)
		rc = names_init(&names, 1U << 16) ? read_format(&r, format) : read_fail(&r, "out of memory");
	if (!rc && !out->count)
		rc = read_fail(&r, "no DNS query in it (%ju frames): give a capture of the resolver's clients, "
			       "or say --format", (uintmax_t)counts->frames);
	names_free(&names);
	if (rc)
		sim_trace_free(out);
	return rc;
}
