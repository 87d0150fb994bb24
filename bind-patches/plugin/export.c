/* SPDX-License-Identifier: BSD-3-Clause */
/* What the configuration allows: whether answers can be offered at all, to whom, and at which sockets. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <isc/netaddr.h>
#include <isc/radix.h>
#include <dns/acl.h>
#include <dns/dnstap.h>
#include <dns/iptable.h>
#include <dns/view.h>
#include <ns/client.h>
#include <ns/server.h>
#include "plugin.h"

#define V4_BITS 96
#define PLAIN_UDP_SIZE 512       /* what the kernel path takes as the least: RFC 1035 section 4.2.1 */
static const uint8_t v4_mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

/* The ACLs that must all let a client in, before it is answered from the cache. Without recursion there are answers
 * from zones alone. */
#define GATES 3
static void gates_of(const dns_view_t *view, const dns_acl_t *gate[GATES])
{
	gate[0] = view->recursion ? view->cacheacl : NULL;
	gate[1] = view->recursion ? view->recursionacl : NULL;
	gate[2] = view->queryacl;
}

/* Prefixes only: anything else (keys, nested lists, localnets, ports) a prefix map can't express. */
static bool acl_is_prefixes(const dns_acl_t *acl)
{
	return acl == NULL || (acl->length == 0 && ISC_LIST_EMPTY(acl->ports_and_transports));
}

static bool acl_is_any(const dns_acl_t *acl)
{
	return acl == NULL || dns_acl_isany((dns_acl_t *)acl);
}

static bool gates_are_prefixes(const dns_view_t *view)
{
	const dns_acl_t *gate[GATES];

	gates_of(view, gate);
	for (int i = 0; i < GATES; i++)
		if (!acl_is_prefixes(gate[i]))
			return false;
	return true;
}

static bool view_is_alone(const dns_view_t *view)
{
	const dns_view_t *v;

	for (v = ISC_LIST_PREV(view, link); v != NULL; v = ISC_LIST_PREV(v, link))
		if (v->rdclass == dns_rdataclass_in)
			return false;
	for (v = ISC_LIST_NEXT(view, link); v != NULL; v = ISC_LIST_NEXT(v, link))
		if (v->rdclass == dns_rdataclass_in)
			return false;
	return true;
}

/* Another plugin may change answers, by client or by anything else. */
static bool plugin_is_alone(const struct hydns_instance *inst, const dns_view_t *view)
{
	ns_hooktable_t *table = view->hooktable;

	for (int point = 0; point < NS_HOOKPOINTS_COUNT; point++)
		for (ns_hook_t *hook = ISC_LIST_HEAD((*table)[point]); hook != NULL; hook = ISC_LIST_NEXT(hook, link))
			if (hook->action_data != inst)
				return false;
	return true;
}

static bool logs_queries(const dns_view_t *view, const ns_server_t *server)
{
	return (server->options & (NS_SERVER_LOGQUERIES | NS_SERVER_LOGRESPONSES)) != 0 ||
	       (view->dtenv != NULL && (view->dttypes & (DNS_DTTYPE_CQ | DNS_DTTYPE_CR)) != 0);
}

static bool acl_is_none(const dns_acl_t *acl)
{
	return acl == NULL || dns_acl_isnone((dns_acl_t *)acl);
}

int hydns_obstacles(const struct hydns_instance *inst, void (*say)(void *arg, const char *reason), void *arg)
{
	const dns_view_t *view = inst->view;
	const ns_server_t *server = inst->server;
	const struct { bool met; const char *reason; } all[] = {
		{ !view_is_alone(view), "there are several views: use one" },
		{ !acl_is_any(view->matchclients) || !acl_is_any(view->matchdestinations),
		  "the view has match-clients or match-destinations: remove them" },
		{ !gates_are_prefixes(view), "allow-query, allow-query-cache or allow-recursion has more than "
		  "address prefixes (localhost, localnets, keys, nested lists): name prefixes" },
		{ !acl_is_any(view->queryonacl) ||
		  (view->recursion && (!acl_is_any(view->cacheonacl) || !acl_is_any(view->recursiononacl))),
		  "allow-query-on, allow-query-cache-on or allow-recursion-on is set: remove it" },
		{ !acl_is_none(server->blackholeacl), "blackhole is set: remove it" },
		{ !acl_is_none(view->proxyacl), "allow-proxy is set, and the kernel reads no PROXY headers: remove it" },
		{ view->rrl != NULL && !inst->o.allow_unlimited, "rate-limit is set, and kernel answers are not "
		  "counted by it: remove it, or set hydns-allow-unlimited yes" },
		{ logs_queries(view, server) && !inst->o.allow_unlogged, "queries or responses are logged (querylog, "
		  "responselog, dnstap), and kernel answers are not: turn that off, or set hydns-allow-unlogged yes" },
		{ view->rpzs != NULL, "response-policy rewrites answers: remove it" },
		{ view->catzs != NULL, "catalog-zones may add zones that cover cached names: remove it" },
		{ !ISC_LIST_EMPTY(view->dlz_searched), "dlz may cover cached names at any time: remove it" },
		{ !ISC_LIST_EMPTY(view->dns64), "dns64 answers by client: remove it" },
		{ view->redirect != NULL || view->redirectzone != NULL,
		  "nxdomain-redirect or a redirect zone changes answers: remove it" },
		{ view->sortlist != NULL, "sortlist orders by client: remove it" },
		{ view->nocasecompress != NULL, "no-case-compress answers by client: remove it" },
		{ view->nocookieudp < PLAIN_UDP_SIZE, "nocookie-udp-size is below 512: raise it" },
		{ inst->peer_sizes, "a server clause has max-udp-size, which depends on the client: remove it" },
		{ view->minimalresponses == dns_minimal_no, "minimal-responses is no, and what is added depends on "
		  "the client's EDNS size: leave it at its default" },
		{ !plugin_is_alone(inst, view), "the view has another query plugin, which may change answers: use one" },
	};
	int met = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].met) {
			say(arg, all[i].reason);
			met++;
		}
	return met;
}

/* --- who is answered ------------------------------------------------------------------------------------- */
/* First match by order of configuration, as dns_acl_match() does it: among the entries that hold the whole
 * prefix the earliest counts. */
static bool acl_allows(const dns_acl_t *acl, isc_prefix_t *prefix)
{
	isc_radix_node_t *node = NULL;

	if (acl == NULL)
		return true;
	return isc_radix_search(acl->iptable->radix, &node, prefix) == ISC_R_SUCCESS &&
	       *(bool *)node->data[ISC_RADIX_FAMILY(prefix)];
}

struct list {
	const dns_acl_t *gate[GATES];
	struct hydns_acl_entry *entry;
	size_t n;
};

static bool add(struct list *l, const uint8_t *addr, unsigned int family, unsigned int bits)
{
	struct hydns_acl_entry *e = &l->entry[l->n];
	isc_prefix_t prefix = { .family = family, .bitlen = bits };
	bool allowed = true;

	if (family == AF_INET6 && bits >= V4_BITS && memcmp(addr, v4_mapped, sizeof(v4_mapped)) == 0)
		return true;           /* IPv4 clients are judged by the IPv4 entries */
	if (l->n == HYDNS_ACL_ENTRIES)
		return false;
	memcpy(&prefix.add, addr, family == AF_INET6 ? 16 : 4);
	for (int i = 0; i < GATES; i++)
		allowed = allowed && acl_allows(l->gate[i], &prefix);
	*e = (struct hydns_acl_entry){ .action = allowed ? HYDNS_ACL_ALLOW : HYDNS_ACL_PASS };
	if (family == AF_INET6) {
		memcpy(e->addr, addr, sizeof(e->addr));
		e->prefixlen = (uint8_t)bits;
	} else {
		memcpy(e->addr, v4_mapped, sizeof(v4_mapped));
		memcpy(e->addr + sizeof(v4_mapped), addr, 4);
		e->prefixlen = (uint8_t)(V4_BITS + bits);
	}
	l->n++;
	return true;
}

static bool add_gate(struct list *l, const dns_acl_t *acl)
{
	isc_radix_node_t *node;
	bool ok = true;

	if (acl == NULL)
		return true;
	RADIX_WALK(acl->iptable->radix->head, node) {
		const uint8_t *addr = (const uint8_t *)&node->prefix->add;

		/* 0/0 is in the tree as IPv4 and holds for both: added by export_acl() */
		if (node->prefix->bitlen > 0 && node->node_num[RADIX_V4] != -1)
			ok = ok && add(l, addr, AF_INET, node->prefix->bitlen);
		if (node->prefix->bitlen > 0 && node->node_num[RADIX_V6] != -1)
			ok = ok && add(l, addr, AF_INET6, node->prefix->bitlen);
	}
	RADIX_WALK_END;
	return ok;
}

static bool export_acl(const dns_view_t *view, struct hydns_publish *p)
{
	static const uint8_t zero[16];
	struct list l = { .entry = calloc(HYDNS_ACL_ENTRIES, sizeof(*l.entry)) };
	bool ok = l.entry != NULL;

	gates_of(view, l.gate);
	ok = ok && add(&l, zero, AF_INET6, 0) && add(&l, zero, AF_INET, 0);
	for (int i = 0; i < GATES; i++)
		ok = ok && add_gate(&l, l.gate[i]);
	ok = ok && hydns_publish_add_acl(p, l.entry, l.n) == 0;
	free(l.entry);
	return ok;
}

/* --- where ------------------------------------------------------------------------------------------------- */
/* True for a UDP socket at the port where queries are received, that is open to everybody: those of upstream
 * queries are connected. The network manager shows its descriptors to nobody, so the process's own are seen
 * through. */
static bool serves(int fd, in_port_t port)
{
	struct sockaddr_storage at, peer;
	socklen_t len = sizeof(at), peer_len = sizeof(peer);
	int type = 0;
	socklen_t type_len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0 || type != SOCK_DGRAM ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0)
		return false;
	if (at.ss_family == AF_INET)
		return ((struct sockaddr_in *)&at)->sin_port == htons(port);
	return at.ss_family == AF_INET6 && ((struct sockaddr_in6 *)&at)->sin6_port == htons(port);
}

/* Each loop has a socket of its own for each address (SO_REUSEPORT); hydnsd takes the same address twice. */
static bool export_services(const ns_client_t *client, struct hydns_publish *p)
{
	in_port_t port = isc_sockaddr_getport(&client->destsockaddr);
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	int served = 0;
	bool ok = true;

	if (dir == NULL)
		return false;
	while (ok && (d = readdir(dir)) != NULL) {
		int fd = atoi(d->d_name);

		if (d->d_name[0] != '.' && serves(fd, port)) {
			ok = hydns_publish_add_service(p, fd) == 0;
			served++;
		}
	}
	closedir(dir);
	if (served == 0)
		(void)hydns_publish_add_note(p, "there is no UDP socket whose queries the kernel could answer");
	return ok;
}

/* --- cookies ---------------------------------------------------------------------------------------------- */
/* Without secrets the kernel leaves queries with a cookie to named: where it would not answer a client's cookie
 * alone, pads what it sends to those that have a valid one, or has more secrets than the kernel takes. */
static void export_cookies(const ns_client_t *client, struct hydns_publish *p)
{
	const ns_server_t *server = client->manager->sctx;
	const dns_view_t *view = client->view;
	uint8_t secret[HYDNS_COOKIE_SECRETS][HYDNS_COOKIE_SECRET_LEN];
	size_t n = 0;

	if (!server->answercookie || view->requireservercookie || view->padding > 0 ||
	    (server->options & NS_SERVER_COOKIEALWAYSVALID) != 0)
		return;
	memcpy(secret[n++], server->secret, HYDNS_COOKIE_SECRET_LEN);
	for (const ns_altsecret_t *alt = ISC_LIST_HEAD(server->altsecrets); alt != NULL && n <= HYDNS_COOKIE_SECRETS;
	     alt = ISC_LIST_NEXT(alt, link)) {
		if (n < HYDNS_COOKIE_SECRETS)
			memcpy(secret[n], alt->secret, HYDNS_COOKIE_SECRET_LEN);
		n++;
	}
	if (n <= HYDNS_COOKIE_SECRETS)
		hydns_publish_cookie_secrets(p, (const uint8_t (*)[HYDNS_COOKIE_SECRET_LEN])secret, n);
	else
		(void)hydns_publish_add_note(p, "queries with a DNS cookie are answered by the resolver only: there are "
			"more than two cookie-secrets");
	explicit_bzero(secret, sizeof(secret));
}

bool hydns_export(const ns_client_t *client, struct hydns_publish *p)
{
	if (!export_acl(client->view, p)) {
		hydns_say(HYDNS_LOG_ERROR, "can't hand the access control lists to hydnsd: out of memory, or too "
			  "many entries; nothing is offered to the kernel");
		return false;
	}
	if (!export_services(client, p)) {
		hydns_say(HYDNS_LOG_ERROR, "can't hand a listening socket to hydnsd: nothing is offered to the kernel");
		return false;
	}
	export_cookies(client, p);
	return true;
}
