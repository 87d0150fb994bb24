/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* dnstap messages, as dnstap.proto (https://dnstap.info, CC0) defines them. Written by hand: they are a few fields, and the library that
 * is linked into resolvers brings no other library with it. */
#include <arpa/inet.h>
#include <endian.h>
#include <string.h>
#include "plugin/dnstap/dnstap.h"

/* Numbers of fields. */
enum { DNSTAP_IDENTITY = 1, DNSTAP_VERSION = 2, DNSTAP_MESSAGE = 14, DNSTAP_TYPE = 15 };
enum { TYPE = 1, SOCKET_FAMILY, SOCKET_PROTOCOL, QUERY_ADDRESS, RESPONSE_ADDRESS, QUERY_PORT, RESPONSE_PORT, QUERY_TIME_SEC,
       QUERY_TIME_NSEC, QUERY_MESSAGE, QUERY_ZONE, RESPONSE_TIME_SEC, RESPONSE_TIME_NSEC, RESPONSE_MESSAGE };
/* Values. */
enum { IS_MESSAGE = 1, INET = 1, INET6 = 2, UDP = 1, AUTH_QUERY = 1, AUTH_RESPONSE = 2, CLIENT_QUERY = 5, CLIENT_RESPONSE = 6 };
#define AA 4                   /* of the third octet of a reply: RFC 1035 section 4.1.1 */
/* Wire types of protocol buffers. */
enum { VARINT = 0, OCTETS = 2, FIXED32 = 5 };

#define LONG 2                 /* octets of the length of a message of 128 octets or more */
_Static_assert(HYDNS_DNSTAP_MOST < 1 << 7 * LONG, "a longer length");

static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*to++ = (uint8_t)(value | 0x80);
	*to++ = (uint8_t)value;
	return to;
}

static uint8_t *put_number(uint8_t *to, unsigned field, uint64_t value)
{
	return put_varint(put_varint(to, field << 3 | VARINT), value);
}

static uint8_t *put_fixed32(uint8_t *to, unsigned field, uint32_t value)
{
	const uint32_t octets = htole32(value);

	to = put_varint(to, field << 3 | FIXED32);
	memcpy(to, &octets, sizeof(octets));
	return to + sizeof(octets);
}

static uint8_t *put_octets(uint8_t *to, unsigned field, const void *octets, size_t len)
{
	to = put_varint(put_varint(to, field << 3 | OCTETS), len);
	memcpy(to, octets, len);
	return to + len;
}

static size_t put_text(uint8_t *to, unsigned field, const char *text)
{
	return text ? (size_t)(put_octets(to, field, text, strnlen(text, HYDNS_DNSTAP_TEXT_MOST)) - to) : 0;
}

static uint8_t *put_address(uint8_t *to, unsigned field, const uint8_t addr[16], bool ipv6)
{
	return ipv6 ? put_octets(to, field, addr, 16) : put_octets(to, field, addr + 12, 4);
}

static uint8_t *put_time(uint8_t *to, unsigned sec, unsigned nsec, int64_t real_ns)
{
	to = put_number(to, sec, (uint64_t)real_ns / HYDNS_NS_PER_S);
	return put_fixed32(to, nsec, (uint32_t)((uint64_t)real_ns % HYDNS_NS_PER_S));
}

static bool is_auth(const struct hydns_dnstap_options *o, const struct hydns_logged *r, bool reply)
{
	const uint8_t *query = (const uint8_t *)(r + 1);
	bool rd = query[2] & 1, ra = query[r->query_len + 3] & 0x80;

	return o->by_flags && !(rd && (reply || ra));
}

static bool is_wanted(const struct hydns_dnstap_options *o, const struct hydns_tap_message *m)
{
	return m->reply ? (m->auth ? o->auth_responses : o->responses) : m->auth ? o->auth_queries : o->queries;
}

/* As named: of an authoritative reply, and what was in the query's letters. */
static void find_zone(const struct hydns_dnstap_options *o, const struct hydns_logged *r, struct hydns_tap_message *m)
{
	const uint8_t *query = (const uint8_t *)(r + 1), *name = query + HYDNS_LOGGED_NAME;
	size_t len = hydns_logged_name(r), at;

	if (!o->zones || !(query[r->query_len + 2] & AA))
		return;
	at = hydns_tap_zones_find(o->zones, name, len, (uint16_t)(name[len] << 8 | name[len + 1]));
	if (at < len) {
		m->zone = name + at;
		m->zone_len = len - at;
	}
}

static unsigned type_of(const struct hydns_tap_message *m)
{
	return m->reply ? (m->auth ? AUTH_RESPONSE : CLIENT_RESPONSE) : m->auth ? AUTH_QUERY : CLIENT_QUERY;
}

/* r: the addresses. */
static size_t put_message(const struct hydns_dnstap_options *o, const struct hydns_logged *r, const struct hydns_tap_message *m,
			  uint8_t *out)
{
	uint8_t *to = out;

	to = put_number(to, TYPE, type_of(m));
	to = put_number(to, SOCKET_FAMILY, r->ipv6 ? INET6 : INET);
	to = put_number(to, SOCKET_PROTOCOL, UDP);
	to = put_address(to, QUERY_ADDRESS, r->client, r->ipv6);
	to = put_address(to, RESPONSE_ADDRESS, r->service, r->ipv6);
	to = put_number(to, QUERY_PORT, ntohs(r->client_port));
	to = put_number(to, RESPONSE_PORT, ntohs(r->service_port));
	if (!m->reply || o->query_time)
		to = put_time(to, QUERY_TIME_SEC, QUERY_TIME_NSEC, m->reply ? m->query_ns : m->real_ns);
	if (!m->reply) {
		to = put_octets(to, QUERY_MESSAGE, m->wire, m->len);
	} else {
		to = m->zone_len ? put_octets(to, QUERY_ZONE, m->zone, m->zone_len) : to;
		to = put_time(to, RESPONSE_TIME_SEC, RESPONSE_TIME_NSEC, m->real_ns);
		to = put_octets(to, RESPONSE_MESSAGE, m->wire, m->len);
	}
	return (size_t)(to - out);
}

void hydns_dnstap_begin(struct hydns_dnstap_head *h, const struct hydns_dnstap_options *o)
{
	h->len = put_text(h->octets, DNSTAP_IDENTITY, o->identity);
	h->len += put_text(h->octets + h->len, DNSTAP_VERSION, o->version);
	h->len = (size_t)(put_number(h->octets + h->len, DNSTAP_TYPE, IS_MESSAGE) - h->octets);
	h->len = (size_t)(put_varint(h->octets + h->len, DNSTAP_MESSAGE << 3 | OCTETS) - h->octets);
}

static size_t put_all(const struct hydns_dnstap_options *o, const struct hydns_dnstap_head *h, const struct hydns_logged *r,
		      const struct hydns_tap_message *m, uint8_t out[HYDNS_DNSTAP_MOST])
{
	uint8_t *to = out + h->len, *message = to + LONG;
	size_t len = put_message(o, r, m, message);

	memcpy(out, h->octets, h->len);
	to = put_varint(to, len);
	if (to != message)
		memmove(to, message, len);
	return (size_t)(to + len - out);
}

size_t hydns_dnstap_message(const struct hydns_dnstap_options *o, const struct hydns_dnstap_head *h, const struct hydns_logged *r,
			    bool reply, int64_t real_ns, uint8_t out[HYDNS_DNSTAP_MOST])
{
	const uint8_t *query = (const uint8_t *)(r + 1);
	struct hydns_tap_message m = { .reply = reply, .auth = is_auth(o, r, reply), .real_ns = real_ns, .query_ns = real_ns,
				       .wire = reply ? query + r->query_len : query, .len = reply ? r->reply_len : r->query_len };

	if (!is_wanted(o, &m))
		return 0;
	if (m.reply && m.auth)
		find_zone(o, r, &m);
	return put_all(o, h, r, &m, out);
}

size_t hydns_dnstap_own_message(const struct hydns_dnstap_options *o, const struct hydns_dnstap_head *h, const struct hydns_logged *r,
				const struct hydns_tap_message *m, uint8_t out[HYDNS_DNSTAP_MOST])
{
	return is_wanted(o, m) ? put_all(o, h, r, m, out) : 0;
}
