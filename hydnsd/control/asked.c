/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/asked.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "hydnsd/control/text.h"

#define EDNS_SIZE   1232               /* of most clients */
#define COOKIE_LEN  8                  /* of a client's cookie alone, without the server's */

static uint16_t type_of(const json_t *v)
{
	if (json_is_integer(v))
		return json_integer_value(v) > 0 && json_integer_value(v) <= UINT16_MAX ? (uint16_t)json_integer_value(v) : 0;
	return json_is_string(v) ? hydnsd_type_parse(json_string_value(v)) : 0;
}

/* IPv4-mapped. */
static bool address_of(const char *text, uint8_t out[16])
{
	static const uint8_t mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

	memcpy(out, mapped, sizeof(mapped));
	return inet_pton(AF_INET, text, out + sizeof(mapped)) == 1 || inet_pton(AF_INET6, text, out) == 1;
}

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* v: true, for a client's cookie alone; or a cookie in hexadecimal digits. */
static bool read_cookie(const json_t *v, struct hydnsd_query *q)
{
	const char *text = json_string_value(v);
	size_t len = text ? strlen(text) / 2 : COOKIE_LEN;

	if (json_is_true(v)) {
		q->cookie_len = COOKIE_LEN;
		return true;
	}
	if (!text || !len || len > HYDNSD_PROBE_COOKIE_MOST || text[2 * len])
		return false;
	for (size_t i = 0; i < len; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		q->cookie[i] = (uint8_t)(high << 4 | low);
	}
	q->cookie_len = (uint8_t)len;
	return true;
}

static const char *read_edns(const json_t *request, struct hydnsd_query *q)
{
	const json_t *edns = json_object_get(request, "edns"), *cookie = json_object_get(request, "cookie");
	json_int_t size = json_is_integer(edns) ? json_integer_value(edns) : EDNS_SIZE;

	if (size < 0 || size > UINT16_MAX)
		return "edns is a size from 0 to 65535, or true: correct it";
	if (cookie && !json_is_false(cookie) && !read_cookie(cookie, q))
		return "cookie is no cookie of 1 to 64 octets in hexadecimal digits: correct it";
	q->dnssec_ok = json_is_true(json_object_get(request, "do"));
	q->edns = json_is_integer(edns) || json_is_true(edns) || q->dnssec_ok || q->cookie_len;
	q->edns_size = (uint16_t)size;
	return NULL;
}

const char *hydnsd_asked_read(const json_t *request, struct hydnsd_asked *q)
{
	const char *text = json_string_value(json_object_get(request, "name"));
	const char *client = json_string_value(json_object_get(request, "client"));
	uint16_t type = type_of(json_object_get(request, "type"));

	if (client && !address_of(client, q->client))
		return "client is not an IPv4 or IPv6 address: correct it";
	q->has_client = client;
	if (client && !text)
		return NULL;
	if (!text || !hydnsd_name_parse(text, &q->name) || !hydnsd_name_letters(text, &q->query.name))
		return "name is not a domain name: correct it";
	if (!type)
		return "type is not a record type: use a mnemonic such as AAAA, or TYPEn";
	q->query.qtype = htons(type);
	q->query.norec = json_is_true(json_object_get(request, "norec"));
	q->variant = (json_is_true(json_object_get(request, "do")) ? HYDNS_VARIANT_DO : 0) |
		     (q->query.norec ? HYDNS_VARIANT_NO_RD : 0);
	return read_edns(request, &q->query);
}
