/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * named's own queries by packet rings. A client's UDP socket of the network manager has no descriptor as long as its query
 * takes a ring; timers, cancelling and checks of answers are the socket's as ever. What a ring can't take opens it.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <isc/random.h>
#include <isc/result.h>
#include <isc/util.h>
#include <isccfg/cfg.h>
#include "plugin.h"
#include "plugin/clock.h"
#include "queue.h"

/* --- queries and answers -------------------------------------------------------------------------------------- */
static uint32_t random_below(void *arg, uint32_t n)
{
	UNUSED(arg);
	return isc_random_uniform(n);
}

/* Writes an address, IPv4's as ::ffff:a.b.c.d. False: one that is the interface's alone, which needs more. */
static bool write_address(uint8_t to[16], const isc_sockaddr_t *from)
{
	static const uint8_t mapped[12] = HYDNS_V4_MAPPED;

	if (isc_sockaddr_pf(from) == AF_INET) {
		memcpy(to, mapped, sizeof(mapped));
		memcpy(to + sizeof(mapped), &from->type.sin.sin_addr, 4);
		return true;
	}
	memcpy(to, &from->type.sin6.sin6_addr, 16);
	return isc_sockaddr_pf(from) == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&from->type.sin6.sin6_addr);
}

static bool is_any(const isc_sockaddr_t *a)
{
	return isc_sockaddr_pf(a) == AF_INET ? a->type.sin.sin_addr.s_addr == INADDR_ANY :
	       IN6_IS_ADDR_UNSPECIFIED(&a->type.sin6.sin6_addr);
}

bool hydns_query_connect(struct hydns_loop *loop, const isc_sockaddr_t *local, const isc_sockaddr_t *peer, void *bytes)
{
	struct hydns_route_question to = { .port = isc_sockaddr_getport(peer) };
	struct hydns_way way;
	uint8_t source[16];

	if (!write_address(to.remote, peer) || !write_address(source, local))
		return false;
	to.source = is_any(local) ? NULL : source;
	if (!hydns_upstream_find(loop->upstream, &to, hydns_mono_coarse_ms(), &way))
		return false;
	memcpy(bytes, &way, sizeof(way));
	return true;
}

in_port_t hydns_query_send(struct hydns_loop *loop, const void *bytes, const isc_region_t *payload, void *owner)
{
	const struct hydns_upstream_query q = { .payload = payload->base, .len = payload->length, .owner = owner,
						.random = random_below };
	struct hydns_way way;

	memcpy(&way, bytes, sizeof(way));
	return hydns_upstream_send_by(loop->upstream, &way, &q, hydns_mono_coarse_ms());
}

/* The query may have left by rings that are gone: then the port is another's now, or nobody's. */
void hydns_query_end(struct hydns_loop *loop, in_port_t port, void *owner)
{
	if (hydns_upstream_is(loop->upstream, port, owner))
		hydns_upstream_end(loop->upstream, port, hydns_mono_coarse_ms());
}

void *hydns_query_owner(struct hydns_loop *loop, const isc_nm_datagram_t *datagram)
{
	struct hydns_datagram d = { 0 };
	struct hydns_way way;

	memcpy(&way, datagram->way, sizeof(way));
	d.path = way.path;
	return hydns_upstream_owner(loop->upstream, &d, &way);
}

/* --- what the configuration says of them ------------------------------------------------------------------------ */
struct hydns_own_queries {
	struct hydns_port_run reserved;           /* by the host; count 0: none, or too few */
	uint64_t avoid[HYDNS_PORTS / 64];         /* ports that no query may leave from: a bit each */
	uint32_t edns;                            /* the largest UDP size that a query may have */
};

static void mark(uint64_t *ports, uint32_t first, uint32_t last, bool value)
{
	for (uint32_t port = first; port <= last && port < HYDNS_PORTS; port++)
		if (value)
			ports[port / 64] |= 1ULL << port % 64;
		else
			ports[port / 64] &= ~(1ULL << port % 64);
}

static void mark_list(uint64_t *ports, const cfg_obj_t *list, bool value)
{
	for (const cfg_listelt_t *e = cfg_list_first(list); e != NULL; e = cfg_list_next(e)) {
		const cfg_obj_t *obj = cfg_listelt_value(e);

		if (cfg_obj_isuint32(obj))
			mark(ports, cfg_obj_asuint32(obj), cfg_obj_asuint32(obj), value);
		else
			mark(ports, cfg_obj_asuint32(cfg_tuple_get(obj, "loport")),
			     cfg_obj_asuint32(cfg_tuple_get(obj, "hiport")), value);
	}
}

/* Sets the bits of ports that are not listed. */
static void mark_others(uint64_t *ports, const cfg_obj_t *list)
{
	uint64_t others[HYDNS_PORTS / 64];

	memset(others, 0xff, sizeof(others));
	mark_list(others, list, false);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ports[i] |= others[i];
}

/* Of both families: a port of a ring is of both. Without use-*, named's sockets take others, and rings any. */
static void read_ports(struct hydns_own_queries *q, const cfg_obj_t *options)
{
	static const char *const use[] = { "use-v4-udp-ports", "use-v6-udp-ports" };
	static const char *const avoid[] = { "avoid-v4-udp-ports", "avoid-v6-udp-ports" };

	for (int family = 0; family < 2; family++) {
		const cfg_obj_t *used = NULL, *avoided = NULL;

		if (cfg_map_get(options, use[family], &used) == ISC_R_SUCCESS)
			mark_others(q->avoid, used);
		if (cfg_map_get(options, avoid[family], &avoided) == ISC_R_SUCCESS)
			mark_list(q->avoid, avoided, true);
	}
}

/* Of options, a view or the top: in itself, and in the server clauses. */
static void read_sizes(struct hydns_own_queries *q, const cfg_obj_t *map)
{
	const cfg_obj_t *size = NULL, *servers = NULL;

	if (cfg_map_get(map, "edns-udp-size", &size) == ISC_R_SUCCESS && cfg_obj_asuint32(size) > q->edns)
		q->edns = cfg_obj_asuint32(size);
	if (cfg_map_get(map, "server", &servers) != ISC_R_SUCCESS)
		return;
	for (const cfg_listelt_t *e = cfg_list_first(servers); e != NULL; e = cfg_list_next(e))
		read_sizes(q, cfg_listelt_value(e));
}

struct hydns_own_queries *hydns_own_queries_read(const cfg_obj_t *config)
{
	struct hydns_own_queries *q = calloc(1, sizeof(*q));
	const cfg_obj_t *options = NULL, *views = NULL;

	if (q == NULL)
		return NULL;
	q->reserved = hydns_ports_reserved();
	read_sizes(q, config);
	if (cfg_map_get(config, "options", &options) == ISC_R_SUCCESS) {
		read_ports(q, options);
		read_sizes(q, options);
	}
	(void)cfg_map_get(config, "view", &views);
	for (const cfg_listelt_t *e = cfg_list_first(views); e != NULL; e = cfg_list_next(e))
		read_sizes(q, cfg_tuple_get(cfg_listelt_value(e), "options"));
	return q;
}

bool hydns_own_queries_avoid(void *own, uint16_t port)
{
	const struct hydns_own_queries *q = own;

	return (q->avoid[port / 64] >> port % 64 & 1) != 0;
}

struct hydns_port_run hydns_own_queries_ports(const struct hydns_own_queries *q)
{
	return q != NULL ? q->reserved : (struct hydns_port_run){ 0 };
}

bool hydns_own_queries_agree(const struct hydns_own_queries *a, const struct hydns_own_queries *b)
{
	return a != NULL && b != NULL && a->reserved.first == b->reserved.first && a->reserved.count == b->reserved.count &&
	       a->edns == b->edns && memcmp(a->avoid, b->avoid, sizeof(a->avoid)) == 0;
}

static bool enough_ports(const struct hydns_own_queries *q)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < q->reserved.count; i++)
		left += !hydns_own_queries_avoid((void *)(uintptr_t)q, (uint16_t)(q->reserved.first + i));
	return left >= HYDNS_PORTS_LEAST;
}

_Static_assert(HYDNS_UPSTREAM_EDNS_MAX == 1232 && HYDNS_PORTS_LEAST == 4096, "as the words here and in hydns.c say");

const char *hydns_own_queries_obstacle(const struct hydns_own_queries *q)
{
	if (q == NULL)
		return "there is no memory";
	if (q->edns > HYDNS_UPSTREAM_EDNS_MAX)
		return "edns-udp-size is above 1232, and answers that come in fragments do not come by rings: lower it";
	if (q->reserved.count != 0 && !enough_ports(q))
		return "use-v4-udp-ports and the like leave fewer than 4096 of the ports that the host reserves: remove them";
	return NULL;
}
