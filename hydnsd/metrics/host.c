/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/metrics/host.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define NAME_ROOM 64

/* Nothing, or a colon and digits. */
static bool is_port(const char *text)
{
	size_t digits = *text ? strspn(text + 1, "0123456789") : 0;

	return !*text || (*text == ':' && digits && digits <= 5 && !text[1 + digits]);
}

static bool is_loopback(const char *name)
{
	struct in_addr v4;

	return !strcasecmp(name, "localhost") || (inet_pton(AF_INET, name, &v4) == 1 && ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET);
}

static bool is_loopback6(const char *address)
{
	struct in6_addr v6;

	return inet_pton(AF_INET6, address, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool metrics_host_is_local(const char *host)
{
	bool bracket = host && *host == '[';
	size_t len = host ? strcspn(host, bracket ? "]" : ":") : 0;
	char name[NAME_ROOM];

	if (!host || len >= sizeof(name) || (bracket && !host[len]))
		return false;
	memcpy(name, host + bracket, len - bracket);
	name[len - bracket] = 0;
	return (bracket ? is_loopback6(name) : is_loopback(name)) && is_port(host + len + bracket);
}
