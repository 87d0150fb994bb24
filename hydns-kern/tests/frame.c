/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>
#include "frame.h"

const uint8_t client4[4] = { 192, 0, 2, 7 }, service4[4] = { 198, 51, 100, 53 };
const uint8_t client6[16] = { 0x20, 0x01, 0x0d, 0xb8, 0, 1, [15] = 7 };
const uint8_t service6[16] = { 0x20, 0x01, 0x0d, 0xb8, 0, 2, [15] = 0x53 };
const uint8_t client_mac[6] = { 2, 0, 0, 0, 0, 7 }, service_mac[6] = { 2, 0, 0, 0, 0, 0x53 };

static uint8_t *put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
	return p + 2;
}

static uint8_t *put32(uint8_t *p, uint32_t v)
{
	return put16(put16(p, v >> 16), v);
}

static uint8_t *put(uint8_t *p, const void *data, size_t len)
{
	memcpy(p, data, len);
	return p + len;
}

static uint16_t get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

size_t name_wire(const char *dotted, uint8_t *out)
{
	uint8_t *p = out;

	while (*dotted && strcmp(dotted, ".")) {
		size_t n = strcspn(dotted, ".");

		*p++ = n;
		for (size_t i = 0; i < n; i++)
			*p++ = dotted[i] == NAME_ZERO ? 0 : dotted[i];
		dotted += n + (dotted[n] == '.');
	}
	*p++ = 0;
	return p - out;
}

static uint8_t *put_opt(uint8_t *p, uint16_t size, bool want_do, const uint8_t *options, uint16_t len)
{
	*p++ = 0;
	p = put16(put16(p, 41), size);
	p = put32(p, want_do ? 0x8000 : 0);
	p = put16(p, len);
	return len ? put(p, options, len) : p;
}

static uint8_t *put_ip(uint8_t *p, bool ipv6)
{
	if (ipv6) {
		p = put32(p, 0x60000000 | 0xabcde); /* with a flow label, which the reply must not have */
		p = put(p, (uint8_t[]){ 0, 0, 17, 55 }, 4);
		return put(put(p, client6, 16), service6, 16);
	}
	p = put(p, (uint8_t[]){ 0x45, 0x28, 0, 0, 0x12, 0x34, 0, 0, 55, 17, 0, 0 }, 12);
	return put(put(p, client4, 4), service4, 4);
}

void frame_query(struct frame *f, const struct query *q)
{
	uint8_t *p = f->data;

	memset(f, 0, sizeof(*f));
	f->ipv6 = q->ipv6;
	p = put(put(p, service_mac, 6), client_mac, 6);
	for (unsigned i = 0; i < q->vlan_tags; i++)
		p = put16(put16(p, i + 1 < q->vlan_tags ? 0x88a8 : 0x8100), 100 + i);
	p = put16(p, q->ipv6 ? 0x86dd : 0x0800);
	f->l3 = p - f->data;
	p = put_ip(p, q->ipv6);
	f->udp = p - f->data;
	p = put32(put16(put16(p, CLIENT_PORT), SERVICE_PORT), 0);
	f->dns = p - f->data;
	p = put16(put16(p, q->id), (q->norec ? 0 : 0x0100) | (q->ad ? 0x20 : 0));
	p = put32(put16(put16(p, 1), 0), q->edns);
	p += name_wire(q->name, p);
	p = put16(put16(p, q->qtype), 1);
	if (q->edns)
		p = put_opt(p, q->edns_size, q->want_do, q->options, q->options_len);
	f->len = p - f->data;
	frame_seal(f);
}

uint16_t sum16(const uint8_t *p, size_t len, uint32_t start)
{
	uint64_t sum = start;

	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* Sum of the pseudo-header for a UDP datagram of len octets. */
static uint16_t pseudo_sum(const struct frame *f, size_t len)
{
	const uint8_t *ip = f->data + f->l3;

	return sum16(f->ipv6 ? ip + 8 : ip + 12, f->ipv6 ? 32 : 8, 17 + len);
}

/* Writes the checksums for a UDP datagram of len octets, whatever its header says. */
static void put_checksums(struct frame *f, size_t len)
{
	uint8_t *ip = f->data + f->l3, *udp = f->data + f->udp;
	uint16_t sum;

	if (!f->ipv6) {
		put16(ip + 10, 0);
		put16(ip + 10, ~sum16(ip, 20, 0));
	}
	put16(udp + 6, 0);
	sum = ~sum16(udp, len, pseudo_sum(f, len));
	put16(udp + 6, sum ? sum : 0xffff);
}

void frame_checksums(struct frame *f)
{
	size_t len = get16(f->data + f->udp + 4), there = f->len - f->udp;

	put_checksums(f, len < there ? len : there);
}

void frame_seal(struct frame *f)
{
	uint8_t *ip = f->data + f->l3, *udp = f->data + f->udp;
	uint16_t len = f->len - f->udp;

	put16(udp + 4, len);
	if (f->ipv6)
		put16(ip + 4, len);
	else
		put16(ip + 2, len + 20);
	put_checksums(f, len);
}

void frame_partial(struct frame *f)
{
	put16(f->data + f->udp + 6, pseudo_sum(f, f->len - f->udp));
}

const char *frame_wrong(const struct frame *f)
{
	const uint8_t *ip = f->data + f->l3, *udp = f->data + f->udp;
	size_t len = f->len - f->udp;

	if (f->len < f->dns + 12)
		return "too short";
	if (get16(udp + 4) != len)
		return "UDP length";
	if (f->ipv6 ? get16(ip + 4) != len : get16(ip + 2) != len + 20)
		return "IP length";
	if (!f->ipv6 && sum16(ip, 20, 0) != 0xffff)
		return "IP checksum";
	if (!get16(udp + 6))
		return "UDP checksum missing";
	if (sum16(udp, len, pseudo_sum(f, len)) != 0xffff)
		return "UDP checksum";
	return NULL;
}

void answer_add(struct answer *a, enum section s, const char *owner, uint16_t type, uint32_t ttl,
		const void *rdata, uint16_t rdlen)
{
	uint8_t *p = a->data + a->len;

	if (owner)
		p += name_wire(owner, p);
	else
		p = put16(p, 0xc00c);
	p = put16(put16(p, type), 1);
	if (a->ttls < HYDNS_TTLS_MAX)
		a->ttl[a->ttls++] = p - a->data;
	p = put16(put32(p, ttl), rdlen);
	p = put(p, rdata, rdlen);
	a->len = p - a->data;
	a->count[s]++;
	if (!a->flags)
		a->flags = REPLY_FLAGS;
}

/* Offset of record number i, whose owner name is a pointer or the root. */
static unsigned record_start(const struct answer *a, unsigned i)
{
	return a->ttl[i] - 4 - (a->data[a->ttl[i] - 6] == 0xc0 ? 2 : 1);
}

void answer_rotates(struct answer *a, unsigned count)
{
	unsigned first = a->ttls - count, start = record_start(a, first);

	a->rotation[a->rotations++] = (struct hydns_rotation){
		.start = start, .len = a->len - start, .first = first, .last = a->ttls - 1,
	};
}

void answer_addresses(struct answer *a, unsigned count, uint32_t ttl)
{
	for (unsigned i = 0; i < count; i++)
		answer_add(a, ANSWER, NULL, 1, ttl, (uint8_t[]){ 203, 0, 113, i + 1 }, 4);
	if (count > 1)
		answer_rotates(a, count);
}

static void count_down(uint8_t *ttl, uint32_t seconds)
{
	uint32_t v = (uint32_t)get16(ttl) << 16 | get16(ttl + 2);

	put32(ttl, v > seconds ? v - seconds : 0);
}

/* Number of the record that comes at position k of count. */
static unsigned record_at(const struct answer *a, unsigned k, unsigned count, uint32_t rotation)
{
	if (!a->shuffles || k == 0)
		return (k + rotation) % count;
	return (rotation + 1 + (rotation / count + k - 1) % (count - 1)) % count;
}

static void rotate(const struct answer *a, const struct hydns_rotation *g, uint32_t rotation, uint8_t *answer)
{
	unsigned count = g->last - g->first + 1;
	uint8_t set[sizeof(a->data)], *to = answer + g->start;

	memcpy(set, answer + g->start, g->len);
	for (unsigned k = 0; k < count; k++) {
		unsigned i = g->first + record_at(a, k, count, rotation), start = record_start(a, i);
		unsigned end = i == g->last ? (unsigned)g->start + g->len : record_start(a, i + 1);

		to = put(to, set + start - g->start, end - start);
	}
}

size_t answer_message(const struct answer *a, const struct query *q, uint32_t seconds, uint32_t rotation,
		      uint16_t edns_size, uint8_t *out)
{
	uint16_t ad = a->secure && (q->ad || q->want_do) ? 0x20 : 0;
	uint8_t option[4 + 24 + HYDNS_ERRORS_MOST] = { 0, 10, 0, 24 }, *p = out, *answer;
	uint16_t cookie_len = q->cookie ? 4 + 24 : 0;

	if (q->cookie)
		memcpy(option + 4, q->cookie, 24);
	if (a->errors_len)
		memcpy(option + cookie_len, a->errors, a->errors_len);
	p = put16(put16(put16(p, q->id), a->flags | (q->norec ? 0 : 0x0100) | ad), 1);
	p = put16(put16(put16(p, a->count[0]), a->count[1]), a->count[2] + q->edns);
	p += name_wire(q->name, p);
	p = put16(put16(p, q->qtype), 1);
	answer = p;
	p = put(p, a->data, a->len);
	for (unsigned i = 0; i < a->ttls; i++)
		count_down(answer + a->ttl[i], a->static_ttl ? 0 : seconds);
	for (unsigned i = 0; i < a->rotations; i++)
		rotate(a, &a->rotation[i], rotation, answer);
	if (q->edns)
		p = put_opt(p, edns_size, q->want_do, option, cookie_len + a->errors_len);
	return p - out;
}
