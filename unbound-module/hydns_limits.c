/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ip-ratelimit, counted together with the kernel: a client has one budget, whoever answers it. The program counts what comes to it and
 * drops what is above the limit; here the rest is counted, and what has passed the program already is not counted twice. Unbound keeps
 * its own table as well: for ip_ratelimit_list, and for clients that the program does not count.
 */
#include "config.h"
#include <limits.h>
#include <string.h>
#include "hydns_daemon.h"
#include "daemon/daemon.h"
#include "util/config_file.h"
#include "util/net_help.h"

int hydns_limits_are_counted(const struct config_file* cfg)
{
	return cfg->ip_ratelimit != 0 && !cfg->hydns_allow_unlimited;
}

/* Unbound's own values limit nobody who asks as clients do. */
#define WAIT_LIMIT        1000
#define WAIT_LIMIT_COOKIE 10000

int hydns_limits_waiting(const struct config_file* cfg)
{
	return cfg->wait_limit != 0 && (cfg->wait_limit != WAIT_LIMIT || cfg->wait_limit_cookie != WAIT_LIMIT_COOKIE ||
		cfg->wait_limit_netblock || cfg->wait_limit_cookie_netblock);
}

static uint32_t at_least_0(int n)
{
	return n > 0 ? (uint32_t)n : 0;
}

void hydns_limits_set(struct daemon* daemon, struct hydns_plugin* p)
{
	const struct config_file* cfg = daemon->cfg;
	struct hydns_limits l;

	memset(&l, 0, sizeof(l));
	if(hydns_limits_are_counted(cfg)) {
		l.queries = at_least_0(cfg->ip_ratelimit);
		l.with_cookie = at_least_0(cfg->ip_ratelimit_cookie);
		l.slip = at_least_0(cfg->ip_ratelimit_factor);
		l.backoff = cfg->ip_ratelimit_backoff != 0;
	}
	hydns_plugin_limit(p, &l);
}

/* IPv4-mapped, as the program has it. */
static void address_of(const struct sockaddr_storage* addr, socklen_t addrlen, uint8_t out[16])
{
	static const uint8_t mapped[12] = HYDNS_V4_MAPPED;

	if(addr_is_ip6((struct sockaddr_storage*)addr, addrlen)) {
		memcpy(out, &((const struct sockaddr_in6*)addr)->sin6_addr, 16);
		return;
	}
	memcpy(out, mapped, sizeof(mapped));
	memcpy(out + sizeof(mapped), &((const struct sockaddr_in*)addr)->sin_addr, 4);
}

static int larger(int a, uint32_t b)
{
	return b > INT_MAX ? INT_MAX : a > (int)b ? a : (int)b;
}

void hydns_limits_charge(struct hydns_context* h, const struct sockaddr_storage* addr, socklen_t addrlen, time_t now,
	int* second, int* before, int* after)
{
	struct hydns_spent spent;
	uint8_t client[16];

	if(hydns_plugin_is_preload(h->daemon->plugin, (const struct sockaddr*)addr)) {
		*before = 0;
		*after = 0;
		return;
	}
	if(!atomic_load_explicit(&h->daemon->limits, memory_order_relaxed))
		return;
	address_of(addr, addrlen, client);
	switch(hydns_plugin_charge(h->daemon->plugin, client, (uint32_t)now, &spent)) {
	case HYDNS_CHARGE_NONE:
		break;
	case HYDNS_CHARGE_COUNTED:
		*second = larger(*second, spent.in_second);
		*before = larger(*before, spent.before);
		*after = larger(*after, spent.after);
		break;
	case HYDNS_CHARGE_ALLOWED:
		*before = *after = 0;
		break;
	case HYDNS_CHARGE_CROSSED:
		*before = 0;
		*after = INT_MAX;
		break;
	}
}

int hydns_limits_spent(struct hydns_context* h, const struct sockaddr_storage* addr, socklen_t addrlen, time_t now, int own)
{
	uint8_t client[16];
	uint32_t spent;

	if(!atomic_load_explicit(&h->daemon->limits, memory_order_relaxed))
		return own;
	address_of(addr, addrlen, client);
	return hydns_plugin_spent(h->daemon->plugin, client, (uint32_t)now, &spent) ? larger(own, spent) : own;
}
