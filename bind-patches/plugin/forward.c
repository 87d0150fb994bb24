/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which of the zones that hydns-forward names the kernel may forward queries of: those whose answers named relays unchanged. What it
 * answers itself within them, or asks elsewhere, is left out. Each refusal is a note that says cause and mend.
 */
#include <netinet/in.h>
#include <string.h>
#include <isc/netaddr.h>
#include <isc/sockaddr.h>
#include <isc/stdtime.h>
#include <isc/util.h>
#include <dns/acl.h>
#include <dns/adb.h>
#include <dns/dispatch.h>
#include <dns/dnstap.h>
#include <dns/fixedname.h>
#include <dns/forward.h>
#include <dns/keytable.h>
#include <dns/name.h>
#include <dns/peer.h>
#include <dns/resolver.h>
#include <dns/view.h>
#include <dns/zone.h>
#include <ns/server.h>
#include "hydns/forwarding.h"
#include "hydns/rule.h"
#include "compat.h"
#include "plugin.h"

#define ALIASES_MOST 8                    /* that hydnsd relays */

/* The list that is being made. */
struct making {
	const struct hydns_instance *inst;
	dns_view_t *view;
	struct hydns_forward_zones *z;
};
struct hindrance {
	bool met;
	const char *reason;
};

static const char *first_met(const struct hindrance *all, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].met)
			return all[i].reason;
	return NULL;
}

#define FIRST_MET(all) first_met(all, sizeof(all) / sizeof((all)[0]))

/* --- what holds for all zones --------------------------------------------------------------------------------- */
/* Whether named's queries of this family leave from an address, or a port, that the operator has chosen. */
static bool is_chosen(dns_dispatch_t *dispatch)
{
	isc_sockaddr_t local;

	if (dispatch == NULL || dns_dispatch_getlocaladdress(dispatch, &local) != ISC_R_SUCCESS)
		return false;
	return isc_sockaddr_getport(&local) != 0 ||
	       (isc_sockaddr_pf(&local) == AF_INET ? local.type.sin.sin_addr.s_addr != INADDR_ANY :
		!IN6_IS_ADDR_UNSPECIFIED(&local.type.sin6.sin6_addr));
}

static bool limits_servers(dns_view_t *view)
{
	dns_adb_t *adb = NULL;
	uint32_t quota = 0;

	dns_view_getadb(view, &adb);
	if (adb == NULL)
		return false;
	dns_adb_getquota(adb, &quota, NULL, NULL, NULL, NULL);
	dns_adb_detach(&adb);
	return quota != 0;
}

static bool avoids_ports(const struct hydns_own_queries *own)
{
	const struct hydns_port_run run = hydns_own_queries_ports(own);

	for (uint32_t i = 0; i < run.count; i++)
		if (hydns_own_queries_avoid((void *)(uintptr_t)own, (uint16_t)(run.first + i)))
			return true;
	return false;
}

static bool keeps_from_servers(const ns_server_t *server)
{
	return server->blackholeacl != NULL && !dns_acl_isnone(server->blackholeacl);
}

/* How named asks. NULL: nothing stands in the way. */
static const char *hindrance_of_queries(const struct making *m)
{
	dns_view_t *view = m->view;
	const struct hydns_options *o = &m->inst->o;
	const struct hindrance all[] = {
		{ !view->recursion, "recursion is no, so named forwards nothing: set it to yes" },
		{ o->pending_max == 0 || o->pending_per_question == 0 || hydns_park_ms(view) == 0,
		  "hydns-pending-max or hydns-pending-per-question is 0, and forwarded queries wait: raise it" },
		{ hydns_waiting_is_limited(view), "clients-per-query or max-clients-per-query is set, and does not count queries that wait "
		  "in the kernel: remove it" },
		{ is_chosen(dns_resolver_dispatchv4(view->resolver)) || is_chosen(dns_resolver_dispatchv6(view->resolver)),
		  "query-source or query-source-v6 chooses the address that queries come from: remove it" },
		{ avoids_ports(m->inst->own), "use-v4-udp-ports, avoid-v4-udp-ports or the like keep queries from ports that the host "
		  "reserves: remove them" },
		{ keeps_from_servers(m->inst->server), "blackhole may keep named from asking its servers: remove it" },
		{ dns_resolver_getfetchesperzone(view->resolver) != 0 || limits_servers(view), "fetches-per-zone or fetches-per-server is "
		  "set, and does not count what the kernel forwards: set it to 0" },
		{ hydns_rrl_limits(view) && !o->allow_unlimited, "rate-limit is set, and does not count answers that the kernel fetches: "
		  "remove it, or set hydns-allow-unlimited yes" },
		{ view->requestnsid && !o->allow_unlogged, "request-nsid is yes, and the kernel's requests do not ask for it: set it to "
		  "no, or set hydns-allow-unlogged yes" },
		{ view->dtenv != NULL && (view->dttypes & (DNS_DTTYPE_FQ | DNS_DTTYPE_FR)) != 0 && !o->allow_unlogged, "dnstap records "
		  "forwarder messages, and does not see the kernel's: take forwarder out of dnstap, or set hydns-allow-unlogged yes" },
	};

	return FIRST_MET(all);
}

/* What named makes of the answers. */
static const char *hindrance_of_answers(const struct making *m)
{
	dns_view_t *view = m->view;
	const struct hindrance all[] = {
		{ dns_view_staleanswerenabled(view), "stale-answer-enable is yes, and stale answers are named's to give: set it to no" },
		{ view->mincachettl > 0 || view->minncachettl > 0, "min-cache-ttl or min-ncache-ttl changes TTLs: set it to 0" },
		{ m->inst->forwards->filters,
		  "deny-answer-addresses or deny-answer-aliases filters answers: remove it" },
		{ !ISC_LIST_EMPTY(view->dns64), "dns64 changes answers: remove it" },
		{ view->checknames, "check-names response is fail, and the kernel does not look at names: set warn or ignore" },
		{ m->inst->forwards->orders, "rrset-order orders records: remove it" },
		{ view->auth_nxdomain, "auth-nxdomain is yes, and the kernel does not set AA: set it to no" },
		{ !view->msgcompression, "message-compression is no, and the kernel compresses names: set it to yes" },
		{ view->maxrrperset != 0 && view->maxrrperset < HYDNS_FORWARD_RECORDS,
		  "max-records-per-type is below 32, and named refuses longer answers: raise it" },
		{ view->max_restarts <= ALIASES_MOST, "max-query-restarts is below 9, and named ends chains of aliases before: raise it" },
	};

	_Static_assert(HYDNS_FORWARD_RECORDS == 32 && ALIASES_MOST == 8, "as the words above say");
	return FIRST_MET(all);
}

/* --- names ------------------------------------------------------------------------------------------------------ */
static void to_name(const struct hydns_forward_name *from, dns_name_t *to)
{
	isc_region_t r = { .base = UNCONST(from->name), .length = from->name_len };

	dns_name_init(to, NULL);
	dns_name_fromregion(to, &r);
}

static void leave_out(const struct making *m, const dns_name_t *name)
{
	hydns_forward_zones_leave_out(m->z, name->ndata, name->length);
}

/* --- one zone --------------------------------------------------------------------------------------------------- */
/* Whether a name at or above this one, but not above the trust anchor, is never validated. */
static bool is_excepted(const struct making *m, const dns_name_t *name, const dns_name_t *anchor)
{
	const struct hydns_names *except = &m->inst->forwards->unvalidated;
	dns_name_t of;

	for (size_t i = 0; i < except->count; i++) {
		to_name(&except->name[i], &of);
		if (dns_name_issubdomain(name, &of) && dns_name_issubdomain(&of, anchor))
			return true;
	}
	return false;
}

/* A negative trust anchor that rndc has set does not count: it ends some time. One of the configuration may have been removed by rndc. */
static bool is_validated(const struct making *m, const dns_name_t *name)
{
	dns_keytable_t *anchors = NULL;
	dns_fixedname_t fixed;
	dns_name_t *anchor = dns_fixedname_initname(&fixed);
	bool secure = false;

	if (!m->view->enablevalidation || dns_view_getsecroots(m->view, &anchors) != ISC_R_SUCCESS)
		return false;
	(void)dns_keytable_issecuredomain(anchors, name, anchor, &secure);
	dns_keytable_detach(&anchors);
	return secure && !(is_excepted(m, name, anchor) && dns_view_ntacovers(m->view, isc_stdtime_now(), name, anchor));
}

struct above {
	const dns_name_t *name;
	bool any;
};

static isc_result_t look_above(dns_zone_t *zone, void *arg)
{
	struct above *above = arg;

	above->any |= dns_name_issubdomain(above->name, dns_zone_getorigin(zone));
	return ISC_R_SUCCESS;
}

/* A zone of named at the name or above it: named may answer from that instead. */
static bool is_own(const struct making *m, const dns_name_t *name)
{
	struct above above = { .name = name };

	(void)dns_view_apply(m->view, false, NULL, look_above, &above);
	return above.any;
}

/* Its address in 16 octets, and its port in network order. */
static uint16_t server_of(const isc_sockaddr_t *a, uint8_t addr[16])
{
	static const uint8_t mapped[12] = HYDNS_V4_MAPPED;

	if (isc_sockaddr_pf(a) == AF_INET6) {
		memcpy(addr, &a->type.sin6.sin6_addr, 16);
		return a->type.sin6.sin6_port;
	}
	memcpy(addr, mapped, sizeof(mapped));
	memcpy(addr + sizeof(mapped), &a->type.sin.sin_addr, 4);
	return a->type.sin.sin_port;
}

static bool is_peer(const dns_view_t *view, const isc_sockaddr_t *a)
{
	dns_peer_t *peer = NULL;
	isc_netaddr_t addr;

	isc_netaddr_fromsockaddr(&addr, a);
	return view->peers != NULL && dns_peerlist_peerbyaddr(view->peers, &addr, &peer) == ISC_R_SUCCESS;
}

static const char *add_server(const struct making *m, const dns_forwarder_t *f, uint32_t *servers)
{
	const bool asked = isc_sockaddr_pf(&f->addr) == AF_INET6 ? dns_resolver_dispatchv6(m->view->resolver) != NULL :
			   dns_resolver_dispatchv4(m->view->resolver) != NULL;
	uint8_t addr[16];
	uint16_t port = server_of(&f->addr, addr);

	if (f->tlsname != NULL)
		return "its forwarders are asked over TLS: remove tls";
	if (is_peer(m->view, &f->addr))
		return "a server clause says how one of its forwarders is asked, which the kernel does not follow: remove it";
	return asked ? hydns_forward_zones_server(m->z, addr, port, servers) : NULL;
}

static const char *add_servers(const struct making *m, const dns_forwarders_t *forwarders, uint32_t *servers)
{
	const char *reason = NULL;

	for (const dns_forwarder_t *f = ISC_LIST_HEAD(forwarders->fwdrs); f != NULL && reason == NULL; f = ISC_LIST_NEXT(f, link))
		reason = add_server(m, f, servers);
	if (reason != NULL || *servers != 0)
		return reason;
	return "it has no forwarder that may be asked: name one";
}

static const char *hindrance_of(const struct making *m, const dns_name_t *name, const dns_forwarders_t *forwarders)
{
	const struct hindrance all[] = {
		{ forwarders == NULL || forwarders->fwdpolicy != dns_fwdpolicy_only,
		  "named may ask others than its forwarders: set forward only" },
		{ is_validated(m, name), "its answers are validated: name it in validate-except" },
		{ is_own(m, name), "a zone that named has itself is at it or above it: remove that" },
	};

	return FIRST_MET(all);
}

static void take_zone(const struct making *m, const struct hydns_forward_name *zone, const char *reason)
{
	dns_forwarders_t *forwarders = NULL;
	char text[DNS_NAME_FORMATSIZE];
	uint32_t servers = 0;
	dns_name_t name;

	to_name(zone, &name);
	if (reason == NULL && dns_fwdtable_find(m->view->fwdtable, &name, &forwarders) == ISC_R_SUCCESS)
		reason = hindrance_of(m, &name, forwarders);
	else if (reason == NULL)
		reason = hindrance_of(m, &name, NULL);
	if (reason == NULL)
		reason = add_servers(m, forwarders, &servers);
	if (forwarders != NULL)
		dns_forwarders_detach(&forwarders);
	if (reason == NULL) {
		hydns_forward_zones_add(m->z, zone->name, zone->name_len, servers);
		return;
	}
	dns_name_format(&name, text, sizeof(text));
	hydns_forward_zones_refuse(m->z, "zone", text, reason);
}

/* --- what is within a zone, and not forwarded ------------------------------------------------------------------- */
static isc_result_t leave_out_zone(dns_zone_t *zone, void *arg)
{
	leave_out(arg, dns_zone_getorigin(zone));
	return ISC_R_SUCCESS;
}

static void leave_out_anchor(dns_keytable_t *anchors, dns_keynode_t *node, dns_name_t *name, void *arg)
{
	UNUSED(anchors);
	UNUSED(node);
	leave_out(arg, name);
}

/* Islands of trust. */
static void leave_out_anchors(struct making *m)
{
	dns_keytable_t *anchors = NULL;

	if (!m->view->enablevalidation || dns_view_getsecroots(m->view, &anchors) != ISC_R_SUCCESS)
		return;
	dns_keytable_forall(anchors, leave_out_anchor, m);
	dns_keytable_detach(&anchors);
}

static void leave_out_others(const struct making *m)
{
	const struct hydns_names *others = &m->inst->forwards->others;

	for (size_t i = 0; i < others->count; i++)
		if (!hydns_forward_zones_has(m->z, others->name[i].name, others->name[i].name_len))
			hydns_forward_zones_leave_out(m->z, others->name[i].name, others->name[i].name_len);
}

/* --- the whole list --------------------------------------------------------------------------------------------- */
static void make_list(struct making *m)
{
	const struct hydns_names *wanted = &m->inst->o.forward;
	const char *reason = hindrance_of_queries(m);

	if (reason == NULL)
		reason = hindrance_of_answers(m);
	m->z->of.max_ttl = m->view->maxcachettl;
	m->z->of.max_negative_ttl = m->view->maxncachettl;
	m->z->of.flags = HYDNS_FORWARDS_SOA_TTL | (m->view->minimalresponses != dns_minimal_yes ? HYDNS_FORWARDS_ADDS : 0);
	for (size_t i = 0; i < wanted->count; i++)
		take_zone(m, &wanted->name[i], reason);
	if (m->z->of.zones == 0)
		return;
	leave_out_others(m);
	(void)dns_view_apply(m->view, false, NULL, leave_out_zone, m);
	leave_out_anchors(m);
}

void hydns_forward_refresh(struct hydns_instance *inst, struct hydns_plugin *p)
{
	const char *reasons[HYDNS_OBSTACLES_MAX];
	struct making m = { .inst = inst, .view = UNCONST(inst->view) };

	if (inst->forwards == NULL)
		return;
	m.z = hydns_forward_zones_new();
	if (m.z != NULL && inst->exported && hydns_obstacles(inst, reasons) == 0)   /* else the obstacles say why */
		make_list(&m);
	(void)hydns_forward_zones_use(m.z, p, &inst->forward_notes, hydns_named_log);
	hydns_forward_zones_free(m.z);
}
