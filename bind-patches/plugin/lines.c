/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of named's query log for kernel answers, as ns/query.c has them. They go through named's own log, so its channels, severities
 * and files are theirs. */
#include <stdio.h>
#include <string.h>
#include <isc/buffer.h>
#include <isc/netaddr.h>
#include <isc/sockaddr.h>
#include <dns/message.h>
#include <dns/name.h>
#include <dns/rcode.h>
#include <dns/rdataclass.h>
#include <dns/rdatatype.h>
#include <ns/log.h>
#include <ns/server.h>
#include "hydns/cookie.h"
#include "compat.h"
#include "plugin.h"

#define FLAGS_SIZE sizeof("+E(255)DV")
#define RCODE_SIZE 20
#define LINE_SIZE  4096

/* What both lines have. */
struct texts {
	char client[ISC_SOCKADDR_FORMATSIZE], service[ISC_NETADDR_FORMATSIZE];
	char name[DNS_NAME_FORMATSIZE], type[DNS_RDATATYPE_FORMATSIZE], class[DNS_RDATACLASS_FORMATSIZE];
	char flags[FLAGS_SIZE];
};

unsigned hydns_lines_wanted(const struct hydns_instance *inst)
{
	return inst->o.query_log ? (unsigned)inst->server->options & (NS_SERVER_LOGQUERIES | NS_SERVER_LOGRESPONSES) : 0;
}

static unsigned get16(const uint8_t *at)
{
	return (unsigned)at[0] << 8 | at[1];
}

/* The program verifies a cookie that has a server's part, and answers no query that has a false one. */
static const char *cookie_flag(const uint8_t *option, const uint8_t *end)
{
	for (; end - option >= 4; option += 4 + get16(option + 2))
		if (get16(option) == DNS_OPT_COOKIE)
			return get16(option + 2) == HYDNS_COOKIE_CLIENT_LEN ? "K" : "V";
	return "";
}

/* Behind the question is nothing, or an OPT record: RFC 6891 section 6.1.2. */
static void flags_of(const uint8_t *query, const uint8_t *opt, const uint8_t *end, char out[FLAGS_SIZE])
{
	const char *rd = query[2] & 1 ? "+" : "-";

	if (end - opt < 11)
		snprintf(out, FLAGS_SIZE, "%s", rd);
	else
		snprintf(out, FLAGS_SIZE, "%sE(%u)%s%s", rd, opt[6], opt[7] & 0x80 ? "D" : "", cookie_flag(opt + 11, end));
}

static void address_of(const uint8_t addr[16], uint16_t port, bool ipv6, isc_sockaddr_t *out)
{
	struct in6_addr in6;
	struct in_addr in;

	memcpy(&in6, addr, sizeof(in6));
	memcpy(&in, addr + 12, sizeof(in));
	if (ipv6)
		isc_sockaddr_fromin6(out, &in6, ntohs(port));
	else
		isc_sockaddr_fromin(out, &in, ntohs(port));
}

static void describe(const struct hydns_logged *r, const uint8_t *query, struct texts *t)
{
	isc_region_t region = { .base = (uint8_t *)(uintptr_t)query + HYDNS_LOGGED_NAME, .length = (unsigned)hydns_logged_name(r) };
	const uint8_t *type = region.base + region.length;
	isc_sockaddr_t client, service;
	isc_netaddr_t at;
	dns_name_t name;

	dns_name_init(&name, NULL);
	dns_name_fromregion(&name, &region);
	dns_name_format(&name, t->name, sizeof(t->name));
	dns_rdatatype_format((dns_rdatatype_t)get16(type), t->type, sizeof(t->type));
	dns_rdataclass_format((dns_rdataclass_t)get16(type + 2), t->class, sizeof(t->class));
	flags_of(query, type + 4, query + r->query_len, t->flags);
	address_of(r->client, r->client_port, r->ipv6, &client);
	isc_sockaddr_format(&client, t->client, sizeof(t->client));
	address_of(r->service, r->service_port, r->ipv6, &service);
	isc_netaddr_fromsockaddr(&at, &service);
	isc_netaddr_format(&at, t->service, sizeof(t->service));
}

/* As ns_client_log(), which shows the address of an object that a kernel answer does not have. */
static void write_line(const struct hydns_dnstap_options *o, const struct texts *t, isc_logcategory_t *category, const char *text)
{
	bool shown = strcmp(o->view, "_default") != 0;

	isc_log_write(ns_lctx, category, NS_LOGMODULE_QUERY, ISC_LOG_INFO, "client @0x0 %s (%s)%s%s: %s", t->client, t->name,
		      shown ? ": view " : "", shown ? o->view : "", text);
}

static void write_query(const struct hydns_dnstap_options *o, const struct texts *t)
{
	char text[LINE_SIZE];

	snprintf(text, sizeof(text), "query: %s %s %s %s (%s)", t->name, t->class, t->type, t->flags, t->service);
	write_line(o, t, NS_LOGCATEGORY_QUERIES, text);
}

static void write_response(const struct hydns_dnstap_options *o, const struct texts *t, const uint8_t *reply)
{
	char text[LINE_SIZE], rcode[RCODE_SIZE];
	isc_buffer_t b;

	isc_buffer_init(&b, rcode, sizeof(rcode) - 1);
	(void)dns_rcode_totext(reply[3] & 0xf, &b);
	rcode[isc_buffer_usedlength(&b)] = '\0';
	snprintf(text, sizeof(text), "response: %s %s %s %s %u %u %u %s (%s)", t->name, t->class, t->type, rcode, get16(reply + 6),
		 get16(reply + 8), get16(reply + 10), t->flags, t->service);
	write_line(o, t, NS_LOGCATEGORY_RESPONSES, text);
}

void hydns_lines_write(const struct hydns_dnstap_options *o, const struct hydns_logged *r, const uint8_t *query, const uint8_t *reply)
{
	struct texts t;

	if (!isc_log_wouldlog(ns_lctx, ISC_LOG_INFO))
		return;
	describe(r, query, &t);
	if ((o->lines & NS_SERVER_LOGQUERIES) != 0)
		write_query(o, &t);
	if ((o->lines & NS_SERVER_LOGRESPONSES) != 0)
		write_response(o, &t, reply);
}
