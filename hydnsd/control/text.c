/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/control/text.h"
#include "hydnsd/netdev/prefixes.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <ldns/ldns.h>
#include <stdio.h>
#include <string.h>

static char *put_octet(char *to, uint8_t c)
{
	if (c == '.' || c == '\\')
		return to + sprintf(to, "\\%c", c);
	if (c <= ' ' || c > '~')
		return to + sprintf(to, "\\%03u", c);
	*to = (char)c;
	return to + 1;
}

const char *hydnsd_name_text(const uint8_t *wire, size_t len, char out[HYDNSD_NAME_TEXT])
{
	char *to = out;

	for (size_t at = 0; at < len && wire[at]; at += 1 + wire[at]) {
		for (unsigned i = 1; i <= wire[at]; i++)
			to = put_octet(to, wire[at + i]);
		*to++ = '.';
	}
	if (to == out)
		*to++ = '.';
	*to = '\0';
	return out;
}

bool hydnsd_name_letters(const char *text, struct hydnsd_name *out)
{
	ldns_rdf *name = NULL;
	size_t len;

	if (!text[0] || ldns_str2rdf_dname(&name, text) != LDNS_STATUS_OK)
		return false;
	len = ldns_rdf_size(name);
	if (len <= HYDNS_NAME_MAX) {
		memcpy(out->octet, ldns_rdf_data(name), len);
		out->len = (uint8_t)len;
	}
	ldns_rdf_deep_free(name);
	return len <= HYDNS_NAME_MAX;
}

bool hydnsd_name_parse(const char *text, struct hydnsd_name *out)
{
	if (!hydnsd_name_letters(text, out))
		return false;
	for (size_t i = 0; i < out->len; i++)
		out->octet[i] = (uint8_t)tolower(out->octet[i]);
	return hydnsd_name_valid(out->octet, out->len);
}

const char *hydnsd_address_text(const uint8_t addr[16], char out[HYDNSD_ADDRESS_TEXT])
{
	return inet_ntop(hydnsd_is_mapped(addr) ? AF_INET : AF_INET6, addr + (hydnsd_is_mapped(addr) ? 12 : 0), out, HYDNSD_ADDRESS_TEXT);
}

const char *hydnsd_service_text(const struct hydns_service_key *key, char out[HYDNSD_SERVICE_TEXT])
{
	char address[HYDNSD_ADDRESS_TEXT];

	snprintf(out, HYDNSD_SERVICE_TEXT, hydnsd_is_mapped(key->addr) ? "%s:%u" : "[%s]:%u", hydnsd_address_text(key->addr, address),
		 ntohs(key->port));
	return out;
}

const char *hydnsd_type_text(uint16_t type, char out[HYDNSD_TYPE_TEXT])
{
	char *text = ldns_rr_type2str((ldns_rr_type)type);

	snprintf(out, HYDNSD_TYPE_TEXT, "%s", text ? text : "?");
	free(text);
	return out;
}

uint16_t hydnsd_type_parse(const char *text)
{
	return (uint16_t)ldns_get_rr_type_by_name(text);
}
