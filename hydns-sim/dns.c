/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydns-sim/dns.h"

#include <string.h>

#include "hydns/dns.h"

#define HEADER       12
#define QR           0x80
#define OPCODE       0x78
#define TC           0x02
#define RCODE        0x0f
#define NAME_MAX_LEN 255

struct cursor {
	const uint8_t *at, *end;
};

static bool get16(struct cursor *c, uint32_t *out)
{
	if (c->end - c->at < 2)
		return false;
	*out = (uint32_t)(c->at[0] << 8 | c->at[1]);
	c->at += 2;
	return true;
}

/* The question's name, uncompressed, in lower case. */
static bool get_name(struct cursor *c, uint8_t *out, uint32_t *len)
{
	uint32_t n = 0;

	for (;;) {
		uint32_t label;

		if (c->at == c->end)
			return false;
		label = *c->at;
		if (label > 63 || n + label + 1 > NAME_MAX_LEN || (size_t)(c->end - c->at) < label + 1)
			return false;
		out[n++] = (uint8_t)label;
		c->at++;
		for (uint32_t i = 0; i < label; i++, c->at++)
			out[n++] = *c->at >= 'A' && *c->at <= 'Z' ? *c->at | 0x20 : *c->at;
		if (!label)
			break;
	}
	*len = n;
	return true;
}

static bool skip_name(struct cursor *c)
{
	while (c->at < c->end) {
		uint32_t label = *c->at;

		if (label >= 0xc0) {
			c->at += 2;
			return c->at <= c->end;
		}
		c->at += 1 + label;
		if (!label)
			return c->at <= c->end;
	}
	return false;
}

struct record {
	uint32_t type, class, ttl_high, ttl_low, len;
};

static bool get_record(struct cursor *c, struct record *r)
{
	if (!skip_name(c) || !get16(c, &r->type) || !get16(c, &r->class) || !get16(c, &r->ttl_high) ||
	    !get16(c, &r->ttl_low) || !get16(c, &r->len) || (size_t)(c->end - c->at) < r->len)
		return false;
	c->at += r->len;
	return true;
}

/* Reads all records after the question: the least TTL, and DO. */
static bool get_records(struct cursor *c, uint32_t count, struct dns_message *out, bool *dnssec)
{
	struct record r;

	out->ttl = UINT32_MAX;
	*dnssec = false;
	for (; count; count--) {
		if (!get_record(c, &r))
			return false;
		if (r.type == HYDNS_TYPE_OPT)
			*dnssec = r.ttl_low & HYDNS_EDNS_DO;
		else if ((r.ttl_high << 16 | r.ttl_low) < out->ttl)
			out->ttl = r.ttl_high << 16 | r.ttl_low;
	}
	return true;
}

bool dns_read(const uint8_t *wire, size_t len, struct dns_message *out)
{
	struct cursor c = { wire + HEADER, wire + len };
	uint32_t type, class, count, rcode;
	bool dnssec;

	if (len < HEADER || wire[2] & OPCODE || wire[4] || wire[5] != 1 ||
	    !get_name(&c, out->question, &out->question_len) || !get16(&c, &type) || !get16(&c, &class) ||
	    class != HYDNS_CLASS_IN)
		return false;
	out->question[out->question_len++] = (uint8_t)(type >> 8);
	out->question[out->question_len++] = (uint8_t)type;
	out->response = wire[2] & QR;
	count = (uint32_t)(wire[6] << 8 | wire[7]) + (uint32_t)(wire[8] << 8 | wire[9]) +
		(uint32_t)(wire[10] << 8 | wire[11]);
	if (!get_records(&c, count, out, &dnssec)) {
		if (!(wire[2] & TC))
			return false;
		out->ttl = UINT32_MAX;
		dnssec = false;
	}
	out->question[out->question_len++] = dnssec;
	rcode = wire[3] & RCODE;
	out->cacheable = out->response && !(wire[2] & TC) && (rcode == 0 || rcode == HYDNS_RCODE_NXDOMAIN) && out->ttl &&
			 out->ttl != UINT32_MAX;
	return true;
}
