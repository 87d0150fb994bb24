/* SPDX-License-Identifier: BSD-3-Clause */
/* What the configuration allows: whether answers can be offered at all, which clients may get them, and at which sockets. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <isc/netaddr.h>
#include <dns/acl.h>
#include <dns/view.h>
#include <ns/client.h>
#include <ns/server.h>
#include "compat.h"
#include "plugin.h"


/* The kernel's access list has addresses only. */
static bool lists_have_ports(const dns_view_t *view)
{
	const dns_acl_t *const lists[] = { view->cacheacl, view->recursionacl, view->queryacl, view->cacheonacl,
		view->recursiononacl, view->queryonacl, view->matchclients, view->matchdestinations };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i] != NULL && !ISC_LIST_EMPTY(lists[i]->ports_and_transports))
			return true;
	return false;
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

static bool acl_is_none(const dns_acl_t *acl)
{
	return acl == NULL || dns_acl_isnone((dns_acl_t *)acl);
}

size_t hydns_obstacles(const struct hydns_instance *inst, const char *reasons[HYDNS_OBSTACLES_MAX])
{
	const dns_view_t *view = inst->view;
	const unsigned unlogged = inst->o.query_log || inst->o.allow_unlogged ? 0 : inst->server->options;
	const struct { bool met; const char *reason; } all[] = {
		{ lists_have_ports(view), "an access control list has ports or transports: name addresses alone" },
		{ !acl_is_none(HYDNS_PROXY_ACL(view)), "allow-proxy is set, and the kernel reads no PROXY headers: remove it" },
		{ (unlogged & NS_SERVER_LOGQUERIES) != 0, "queries are logged (querylog), and kernel answers are not: set "
		  "hydns-query-log yes, or hydns-allow-unlogged yes, or rndc querylog off" },
		{ (unlogged & NS_SERVER_LOGRESPONSES) != 0, "responses are logged (responselog), and kernel answers are not: set "
		  "hydns-query-log yes, or hydns-allow-unlogged yes, or rndc responselog off" },
		{ hydns_dnstap_sees_answers(view) && inst->o.dnstap == HYDNS_UNLOGGED && !inst->o.allow_unlogged, "dnstap records "
		  "messages of clients, and hydns-dnstap is no: set it to complete or sample, or hydns-allow-unlogged yes" },
		{ view->rpzs != NULL, "response-policy rewrites answers: remove it" },
		{ view->catzs != NULL, "catalog-zones may add zones that cover cached names: remove it" },
		{ !ISC_LIST_EMPTY(view->dlz_searched), "dlz may cover cached names at any time: remove it" },
		{ view->redirect != NULL || view->redirectzone != NULL,
		  "nxdomain-redirect or a redirect zone changes answers: remove it" },
		{ view->nocookieudp < HYDNS_PLAIN_UDP_SIZE, "nocookie-udp-size is below 512: raise it" },
		{ inst->peer_sizes, "a server clause has max-udp-size, which depends on the client: remove it" },
		{ view->recursion && view->minimalresponses == dns_minimal_no, "minimal-responses is no, and what is added depends on "
		  "the client's EDNS size: leave it at its default" },
		{ inst->acl_is_full, "the access control lists name more than 131072 prefixes: name fewer, or larger ones" },
		{ !plugin_is_alone(inst, view), "the view has another query plugin, which may change answers: use one" },
	};
	size_t met = 0;

	_Static_assert(sizeof(all) / sizeof(all[0]) < HYDNS_OBSTACLES_MAX, "room for one more");
	_Static_assert(HYDNS_ACL_ENTRIES == 131072, "as the words above say");
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].met)
			reasons[met++] = all[i].reason;
	return met;
}

/* --- where ------------------------------------------------------------------------------------------------- */
/* True for a UDP socket at the port where queries come, unless it is connected: those of upstream queries are. The network
 * manager does not give out its descriptors, so the caller tries all of the process. *at: the socket's address. */
static bool serves(int fd, in_port_t port, isc_netaddr_t *at)
{
	struct sockaddr_storage name, peer;
	socklen_t len = sizeof(name), peer_len = sizeof(peer);
	const struct sockaddr_in *in = (const struct sockaddr_in *)&name;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&name;
	int type = 0;
	socklen_t type_len = sizeof(type);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) != 0 || type != SOCK_DGRAM ||
	    getsockname(fd, (struct sockaddr *)&name, &len) != 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_len) == 0)
		return false;
	if (name.ss_family == AF_INET) {
		isc_netaddr_fromin(at, &in->sin_addr);
		return in->sin_port == htons(port);
	}
	isc_netaddr_fromin6(at, &in6->sin6_addr);
	return name.ss_family == AF_INET6 && in6->sin6_port == htons(port);
}

const struct hydns_instance *hydns_instance_of(const dns_view_t *view)
{
	ns_hooktable_t *table = view->hooktable;

	for (ns_hook_t *hook = table != NULL ? ISC_LIST_HEAD((*table)[NS_QUERY_SETUP]) : NULL; hook != NULL;
	     hook = ISC_LIST_NEXT(hook, link))
		if (hook->action == hydns_hooks[0].action)
			return hook->action_data;
	return NULL;
}

/* The kernel answers for one view at an address: the first with the plugin that gets queries there. named answers the
 * clients of the others. */
static bool serves_address(const struct hydns_instance *inst, const isc_netaddr_t *at)
{
	for (const dns_view_t *v = ISC_LIST_PREV(inst->view, link); v != NULL; v = ISC_LIST_PREV(v, link)) {
		const struct hydns_instance *other = hydns_instance_of(v);

		if (v->rdclass == dns_rdataclass_in && other != NULL && other->o.enable &&
		    hydns_view_hears(v, inst->env, at))
			return false;
	}
	return true;
}

/* The addresses where the view's clients ask, and the sockets there: one per loop and address (SO_REUSEPORT). */
struct places {
	struct hydns_socket socket[HYDNS_SERVICES];
	isc_netaddr_t dest[HYDNS_SERVICES];
	size_t n;
	bool full;                    /* there are more */
	size_t others;                /* sockets whose address is another view's, or where an *-on list may refuse */
};

static ino_t inode_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static bool is_known(const struct hydns_socket *list, size_t n, ino_t inode)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].inode == inode)
			return true;
	return false;
}

static bool find_places(const struct hydns_instance *inst, struct places *p)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;

	if (dir == NULL)
		return false;
	while ((d = readdir(dir)) != NULL && !p->full) {
		int fd = atoi(d->d_name);
		isc_netaddr_t at;

		/* copies of a socket, in the plugin library or of another instance, count once */
		if (d->d_name[0] == '.' || !serves(fd, inst->port, &at) || is_known(p->socket, p->n, inode_of(fd)))
			continue;
		if (!hydns_view_answers_at(inst->view, inst->env, &at) || !serves_address(inst, &at)) {
			p->others++;
			continue;
		}
		p->full = p->n == HYDNS_SERVICES;
		if (p->full)
			continue;
		p->dest[p->n] = at;
		p->socket[p->n++] = (struct hydns_socket){ .fd = fd, .inode = inode_of(fd) };
	}
	closedir(dir);
	return true;
}

/* Logs a note and adds it to hydnsd's status. */
static void note(struct hydns_plugin *p, enum hydns_note_kind kind, const char *text)
{
	hydns_named_log(HYDNS_LOG_INFO, text);
	(void)hydns_plugin_add_note(p, kind, text);
}

static bool export_services(const struct places *places, struct hydns_plugin *p)
{
	for (size_t i = 0; i < places->n; i++)
		if (hydns_plugin_add_service(p, places->socket[i].fd) != 0)
			return false;
	if (places->full)
		note(p, HYDNS_NOTE_ADDRESSES, hydns_services_note);
	if (places->n == 0)
		note(p, HYDNS_NOTE_ADDRESSES, places->others == 0 ?
			"there is no UDP socket whose queries the kernel could answer" :
			"the kernel answers for no address of this view: at each it answers for one view, and an "
			"earlier one that has the plugin is asked there, or an *-on list does not let it answer");
	else if (places->others > 0)
		note(p, HYDNS_NOTE_ADDRESSES, "at some addresses the kernel does not answer for this view: at each it answers "
			"for one view, and an earlier one that has the plugin is asked there, or an *-on list does not let it answer");
	return true;
}

/* --- who ----------------------------------------------------------------------------------------------------- */
static struct hydns_acl_entry *compile(const struct hydns_instance *inst, const struct places *places, size_t *n)
{
	const struct hydns_judge j = { .view = inst->view, .server = inst->server, .env = inst->env,
		.dest = places->dest, .dests = places->n,
		.limited = hydns_rrl_limits(inst->view) && !inst->o.allow_unlimited,
		.shared = hydns_rates_are_shared(inst, inst->view) };

	return hydns_acl_compile(&j, n);
}

/* Notes which clients' queries the kernel leaves to named. */
static void note_access(const struct hydns_instance *inst, struct hydns_plugin *p)
{
	const dns_view_t *view = inst->view;
	const bool limited = hydns_rrl_limits(view) && !inst->o.allow_unlimited, shared = hydns_rates_are_shared(inst, view);
	const struct { bool met; enum hydns_note_kind kind; const char *reason; } all[] = {
		{ ISC_LIST_PREV(view, link) != NULL, HYDNS_NOTE_CLIENTS,
		  "clients that an earlier view may match are left to the resolver" },
		{ limited && !shared, HYDNS_NOTE_CLIENTS, "rate-limit is set, and does not count kernel answers, since named is not "
		  "patched, or qps-scale counts what named itself answers: clients that it counts need a valid DNS cookie for one "
		  "(hydns-allow-unlimited)" },
		{ shared && inst->logs_drops && !inst->o.allow_unlogged, HYDNS_NOTE_OTHER, "named logs each response that rate-limit "
		  "drops (category query-errors), so the kernel drops none: send that category to null, or set "
		  "hydns-allow-unlogged yes" },
		{ view->sortlist != NULL, HYDNS_NOTE_CLIENTS, "clients that sortlist names are left to the resolver" },
		{ view->nocasecompress != NULL, HYDNS_NOTE_CLIENTS,
		  "clients that no-case-compress names are left to the resolver" },
		{ hydns_waiting_is_limited(view), HYDNS_NOTE_OTHER, "no query waits in the kernel for a resolution under way: "
		  "clients-per-query or max-clients-per-query is set, and named would not count those that do" },
		{ !ISC_LIST_EMPTY(view->dns64), HYDNS_NOTE_OTHER,
		  "dns64 answers by client: questions for AAAA are left to the resolver" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].met)
			note(p, all[i].kind, all[i].reason);
	if (hydns_warning != NULL)
		(void)hydns_plugin_add_note(p, HYDNS_NOTE_OTHER, hydns_warning);
}

static bool export_acl(struct hydns_instance *inst, const struct places *places, struct hydns_plugin *p)
{
	free(inst->acl);
	inst->acls = 0;
	inst->acl = compile(inst, places, &inst->acls);
	inst->acl_is_full = inst->acls > HYDNS_ACL_ENTRIES;
	return inst->acl != NULL && (inst->acl_is_full || hydns_plugin_add_acl(p, inst->acl, inst->acls) == 0);
}

static bool remember_sockets(struct hydns_instance *inst, const struct places *places)
{
	free(inst->socket);
	inst->socket = calloc(places->n + 1, sizeof(*inst->socket));
	if (inst->socket == NULL)
		return false;
	memcpy(inst->socket, places->socket, places->n * sizeof(*inst->socket));
	inst->sockets = places->n;
	return true;
}

/* False when named has opened a socket, or closed one of which a copy still exists. */
static bool sockets_are_same(const struct hydns_instance *former, const struct places *now)
{
	if (now->n != former->sockets)
		return false;
	for (size_t i = 0; i < now->n; i++)
		if (inode_of(former->socket[i].fd) != former->socket[i].inode ||
		    !is_known(former->socket, former->sockets, now->socket[i].inode))
			return false;
	return true;
}

bool hydns_export_is_old(const struct hydns_instance *former, const struct hydns_instance *inst)
{
	struct places *places = former->exported ? calloc(1, sizeof(*places)) : NULL;
	struct hydns_acl_entry *now = NULL;
	size_t n = 0;
	bool old;

	if (places == NULL || !find_places(inst, places)) {
		free(places);
		return former->exported;
	}
	now = compile(inst, places, &n);
	old = now == NULL || n != former->acls || memcmp(now, former->acl, n * sizeof(*now)) != 0 ||
	      !sockets_are_same(former, places);
	free(now);
	free(places);
	return old;
}

/* --- cookies ---------------------------------------------------------------------------------------------- */
/* Without secrets the program passes queries with a cookie. That is needed where named does not answer a client's cookie
 * alone, pads responses to clients with a valid one, or has more secrets than the kernel holds. */
bool hydns_export_cookies(const struct hydns_instance *inst, struct hydns_plugin *p)
{
	const ns_server_t *server = inst->server;
	const dns_view_t *view = inst->view;
	uint8_t secret[HYDNS_COOKIE_SECRETS][HYDNS_COOKIE_SECRET_LEN];
	size_t n = 0;

	if (!server->answercookie || view->requireservercookie || view->padding > 0 ||
	    (server->options & NS_SERVER_COOKIEALWAYSVALID) != 0)
		return true;
	memcpy(secret[n++], server->secret, HYDNS_COOKIE_SECRET_LEN);
	for (const ns_altsecret_t *alt = ISC_LIST_HEAD(server->altsecrets); alt != NULL && n <= HYDNS_COOKIE_SECRETS;
	     alt = ISC_LIST_NEXT(alt, link)) {
		if (n < HYDNS_COOKIE_SECRETS)
			memcpy(secret[n], alt->secret, HYDNS_COOKIE_SECRET_LEN);
		n++;
	}
	if (n <= HYDNS_COOKIE_SECRETS)
		hydns_plugin_cookie_secrets(p, (const uint8_t (*)[HYDNS_COOKIE_SECRET_LEN])secret, n);
	explicit_bzero(secret, sizeof(secret));
	return n <= HYDNS_COOKIE_SECRETS;
}

static const char *export_all(struct hydns_instance *inst, struct places *places, struct hydns_plugin *p)
{
	if (places == NULL || !find_places(inst, places))
		return "can't look for the listening sockets in /proc/self/fd: mount /proc";
	if (!remember_sockets(inst, places) || !export_services(places, p))
		return "can't hand a listening socket to hydnsd: out of memory or descriptors";
	if (!export_acl(inst, places, p))
		return "can't hand the access control lists to hydnsd: out of memory";
	return NULL;
}

bool hydns_export(struct hydns_instance *inst, struct hydns_plugin *p)
{
	struct places *places = calloc(1, sizeof(*places));
	const char *why = export_all(inst, places, p);
	char text[256];

	free(places);
	if (why != NULL) {
		snprintf(text, sizeof(text), "%s; nothing is offered to the kernel", why);
		hydns_named_log(HYDNS_LOG_ERROR, text);
		return false;
	}
	note_access(inst, p);
	if (!hydns_export_cookies(inst, p))
		note(p, HYDNS_NOTE_OTHER, "queries with a DNS cookie are answered by the resolver only: there are "
			"more than two cookie-secrets");
	return true;
}
