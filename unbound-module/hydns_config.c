/* SPDX-License-Identifier: BSD-3-Clause */
/* What the configuration allows: whether answers can be offered at all, which clients may get them, and at which sockets. */
#include "config.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "hydns_daemon.h"
#include "hydns/clients.h"
#include "plugin/queue/ports.h"
#include "daemon/acl_list.h"
#include "daemon/daemon.h"
#include "services/authzone.h"
#include "services/listen_dnsport.h"
#include "services/localzone.h"
#include "services/modstack.h"
#include "util/config_file.h"
#include "util/data/msgparse.h"
#include "util/edns.h"
#include "util/log.h"
#include "util/net_help.h"
#include "util/rbtree.h"

#if UNBOUND_COOKIE_HISTORY_SIZE > HYDNS_COOKIE_SECRETS || UNBOUND_COOKIE_SECRET_SIZE != HYDNS_COOKIE_SECRET_LEN
#error "the kernel path must hold all cookie secrets of Unbound"
#endif

/* A size that hydnsd accepts. A smaller one is an obstacle, but hydnsd can show obstacles only of resolvers that it has
 * accepted. */
static uint16_t udp_size(size_t octets)
{
	if(octets < HYDNS_PLAIN_UDP_SIZE)
		return HYDNS_PLAIN_UDP_SIZE;
	return octets > UINT16_MAX ? UINT16_MAX : (uint16_t)octets;
}

int hydns_config_gives_stale(const struct config_file* cfg)
{
	return cfg->serve_expired && cfg->serve_expired_client_timeout > 0;
}

struct hydns_stale hydns_config_stale(const struct config_file* cfg)
{
	struct hydns_stale s = { 0, 0, NULL };

	if(!cfg->hydns_stale_after_crash || !cfg->serve_expired)
		return s;
	s.ttl = cfg->serve_expired_reply_ttl > 0 ? (uint32_t)cfg->serve_expired_reply_ttl : 0;
	s.longest = cfg->serve_expired_ttl > 0 ? (uint32_t)cfg->serve_expired_ttl : HYDNS_STALE_LONGEST;
	s.error = cfg->ede && cfg->ede_serve_expired ? "" : NULL;
	return s;
}

static int stale_is_same(const struct hydns_daemon* d)
{
	struct hydns_stale now = hydns_config_stale(d->daemon->cfg);
	return now.ttl == d->stale.ttl && now.longest == d->stale.longest && !now.error == !d->stale.error;
}

struct hydns_reply_options hydns_config_reply_options(struct daemon* daemon)
{
	struct hydns_reply_options m;

	m.flags = 0;
	/* with answer-cookie: no, Unbound reads no COOKIE option, not even its length */
	if(!daemon->cfg->do_answer_cookie)
		m.flags |= HYDNS_RESOLVER_IGNORES_COOKIE;
	if(daemon->cfg->rrset_roundrobin)
		m.flags |= HYDNS_RESOLVER_ROTATES;
	m.edns_size = udp_size(daemon->cfg->edns_buffer_size);
	m.max_udp = udp_size(daemon->cfg->max_udp_size);
	return m;
}

/* --- obstacles -------------------------------------------------------------------------------------- */
struct obstacle {
	int met;
	const char* reason;
};

/* True when every module gives all clients the same answer from the cache. respip and subnetcache do so while they are
 * not configured, which other obstacles check. */
static int modules_are_plain(const struct module_stack* mods)
{
	static const char* const plain[] = { "hydns", "validator", "iterator", "dns64", "cachedb", "respip",
		"subnetcache" };
	int i;

	for(i = 0; i < mods->num; i++) {
		size_t j, n = sizeof(plain) / sizeof(plain[0]);

		for(j = 0; j < n && strcmp(mods->mod[i]->name, plain[j]) != 0; j++)
			;
		if(j == n)
			return 0;
	}
	return 1;
}

/* hydns records when a resolution began, so only a module that passes every new query on at once may come before it:
 * dns64, which must come first itself. */
static int module_is_early(const struct module_stack* mods)
{
	int i = strcmp(mods->mod[0]->name, "dns64") == 0 ? 1 : 0;

	return i < mods->num && strcmp(mods->mod[i]->name, "hydns") == 0;
}

/* The program passes queries with the standard client subnet option and ignores options that it does not know. */
static int subnet_option_moved(struct daemon* daemon)
{
#ifdef CLIENT_SUBNET
	return modstack_find(&daemon->mods, "subnetcache") >= 0 &&
		daemon->cfg->client_subnet_opcode != LDNS_EDNS_CLIENT_SUBNET;
#else
	(void)daemon;
	return 0;
#endif
}

/* Reads the list of zones, since daemon->use_rpz stays set after a reload has removed the last one. */
static int has_rpz(struct daemon* daemon)
{
	struct auth_zones* az = daemon->env->auth_zones;
	int has;

	lock_rw_rdlock(&az->rpz_lock);
	has = az->rpz_first != NULL;
	lock_rw_unlock(&az->rpz_lock);
	return has;
}

static struct hydns_acl_entry* make_acl(struct daemon* daemon, size_t* count, size_t* passed);

/* Whether access-control has more netblocks than there is room for. Without a part of them clients could be answered whom it shuts out. */
static int acl_is_full(struct daemon* daemon)
{
	struct hydns_acl_entry* entries;
	size_t n, passed;

	if(daemon->acl->tree.count < HYDNS_ACL_ENTRIES)
		return 0;       /* the one that make_acl() may add fits, too */
	entries = make_acl(daemon, &n, &passed);
	free(entries);
	return entries && n > HYDNS_ACL_ENTRIES;
}

size_t hydns_config_obstacles(struct daemon* daemon, const char* reasons[HYDNS_OBSTACLES_MAX])
{
	const struct config_file* cfg = daemon->cfg;
	const struct obstacle all[] = {
		{ cfg->log_queries && !cfg->hydns_query_log && !cfg->hydns_allow_unlogged,
			"log-queries is yes, and kernel answers are not logged: set hydns-query-log: yes, or "
			"hydns-allow-unlogged: yes" },
		{ cfg->log_replies && !cfg->hydns_query_log && !cfg->hydns_allow_unlogged,
			"log-replies is yes, and kernel answers are not logged: set hydns-query-log: yes, or "
			"hydns-allow-unlogged: yes" },
		{ hydns_dnstap_sees_clients(cfg) && cfg->hydns_dnstap == HYDNS_DNSTAP_NO && !cfg->hydns_allow_unlogged,
			"dnstap records client messages, and hydns-dnstap is no: set it to complete or sample, or "
			"hydns-allow-unlogged: yes" },
		{ !module_is_early(&daemon->mods),
			"hydns comes too late in module-config: begin with it, or with dns64 hydns" },
		{ !modules_are_plain(&daemon->mods),
			"module-config has a module whose answers may differ by client: use hydns with validator, "
			"iterator, dns64 or cachedb alone" },
		{ has_rpz(daemon) || daemon->use_response_ip,
			"rpz or response-ip rewrites answers: remove the rpz: clauses and response-ip options" },
		{ cfg->client_subnet || cfg->client_subnet_zone || cfg->client_subnet_always_forward,
			"answers differ by client subnet: remove send-client-subnet, client-subnet-zone and "
			"client-subnet-always-forward" },
		{ subnet_option_moved(daemon),
			"client-subnet-opcode is not 8, and kernel answers do not heed another option: set it to 8, "
			"or remove subnetcache from module-config" },
		{ cfg->local_zone_overrides != NULL,
			"local-zone-override answers by client address: remove it" },
		{ cfg->serve_original_ttl,
			"serve-original-ttl is yes, and kernel answers count TTLs down: set it to no" },
		{ cfg->disable_edns_do,
			"disable-edns-do is yes, and kernel answers have EDNS when the query has: set it to no" },
		{ !cfg->harden_short_bufsize,
			"harden-short-bufsize is no, and kernel answers take 512 octets as the least: set it to yes" },
		{ cfg->max_udp_size < HYDNS_PLAIN_UDP_SIZE,
			"max-udp-size is below 512: raise it" },
		{ cfg->edns_buffer_size < HYDNS_PLAIN_UDP_SIZE,
			"edns-buffer-size is below 512: raise it" },
		{ cfg->hydns_max_ttl != 0 && cfg->hydns_min_ttl > cfg->hydns_max_ttl,
			"hydns-min-ttl is above hydns-max-ttl: lower it" },
		{ acl_is_full(daemon), "access-control has more than 131072 netblocks: name fewer, or larger ones" },
	};
	size_t i, met = 0;

	_Static_assert(sizeof(all) / sizeof(all[0]) < HYDNS_OBSTACLES_MAX, "room for one more");
	_Static_assert(HYDNS_ACL_ENTRIES == 131072, "as the words above say");
	for(i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if(all[i].met)
			reasons[met++] = all[i].reason;
	return met;
}

static int reply_options_are_same(const struct hydns_daemon* d)
{
	const struct hydns_reply_options* was = &d->reply_options;
	struct hydns_reply_options now = hydns_config_reply_options(d->daemon);
	return now.flags == was->flags && now.edns_size == was->edns_size && now.max_udp == was->max_udp;
}

void hydns_config_recheck(struct hydns_daemon* d, int was)
{
	const char* reasons[HYDNS_OBSTACLES_MAX];
	size_t i, n = hydns_config_obstacles(d->daemon, reasons);

	if(d->closing)
		return;
	hydns_limits_set(d->daemon, d->plugin);
	if(d->exported && !reply_options_are_same(d))
		reasons[n++] = "set_option has changed an option that shapes replies: reload to offer answers again";
	else if(d->exported && !stale_is_same(d))
		reasons[n++] = "set_option has changed what expired answers are: reload to offer answers again";
	else if(d->exported && hydns_dnstap_wants(d->daemon->cfg) != d->log_wants)
		reasons[n++] = "set_option has changed what is logged: reload to offer answers again";
	else if(d->exported && hydns_limits_are_counted(d->daemon->cfg) && !d->limits)
		reasons[n++] = "set_option has turned ip-ratelimit on: reload to offer answers again";
	else if(!d->exported && n == 0)
		reasons[n++] = "the settings that forbade offers at the start are gone: reload to offer answers";
	if(was && n == 0) {
		atomic_store(&d->open, 1);
		return;
	}
	for(i = 0; i < n; i++)
		log_warn("hydns: no answer is offered to the kernel%s: %s", was ? " any more" : "", reasons[i]);
	if(n == 0)
		log_info("hydns: answers are offered to the kernel again");
	atomic_store(&d->open, n == 0);
	hydns_plugin_set_notes(d->plugin, HYDNS_NOTE_OBSTACLE, reasons, n);
}

/* --- who is answered ----------------------------------------------------------------------------------- */
/* allow_cookie: a client that gets as far as an answer had a valid cookie, or used TCP. */
int hydns_acl_is_plain(const struct acl_addr* acl)
{
	return (acl->control == acl_allow || acl->control == acl_allow_snoop ||
		acl->control == acl_allow_setrd || acl->control == acl_allow_cookie) && !acl->taglist && !acl->tag_actions &&
		!acl->tag_datas && !acl->view;
}

static const uint8_t v4_mapped[12] = HYDNS_V4_MAPPED;

/* How the entry treats its clients, for hydnsctl explain. */
static uint8_t client_of(const struct acl_addr* acl)
{
	switch(acl->control) {
	case acl_deny:
		return HYDNS_CLIENT_DENY;
	case acl_refuse:
		return HYDNS_CLIENT_REFUSE;
	case acl_deny_non_local:
		return HYDNS_CLIENT_DENY_NON_LOCAL;
	case acl_refuse_non_local:
		return HYDNS_CLIENT_REFUSE_NON_LOCAL;
	default:
		break;
	}
	if(acl->view)
		return HYDNS_CLIENT_VIEW;
	if(!hydns_acl_is_plain(acl))
		return HYDNS_CLIENT_TAGS;
	return acl->control == acl_allow_cookie ? HYDNS_CLIENT_NEED_COOKIE : HYDNS_CLIENT_ALLOWED;
}

/* False: no client can match this netblock. */
static int acl_entry_of(const struct acl_addr* acl, struct hydns_acl_entry* e)
{
	const struct addr_tree_node* n = &acl->node;

	memset(e, 0, sizeof(*e));
	if(addr_is_ip6((struct sockaddr_storage*)&n->addr, n->addrlen)) {
		memcpy(e->addr, &((const struct sockaddr_in6*)&n->addr)->sin6_addr, sizeof(e->addr));
		e->prefixlen = (uint8_t)n->net;
		/* Unbound sees IPv4 clients as IPv4 and matches them with IPv4 entries only */
		if(n->net >= HYDNS_V4_BITS && memcmp(e->addr, v4_mapped, sizeof(v4_mapped)) == 0)
			return 0;
	} else {
		memcpy(e->addr, v4_mapped, sizeof(v4_mapped));
		memcpy(e->addr + sizeof(v4_mapped), &((const struct sockaddr_in*)&n->addr)->sin_addr, 4);
		e->prefixlen = (uint8_t)(HYDNS_V4_BITS + n->net);
	}
	e->why = client_of(acl);
	if(!hydns_acl_is_plain(acl))
		e->action = HYDNS_ACL_PASS;
	else	e->action = acl->control == acl_allow_cookie ? HYDNS_ACL_ALLOW_COOKIE : HYDNS_ACL_ALLOW;
	return 1;
}

/* The LPM trie holds both families: an IPv6 netblock as short as ::/0 must not let IPv4 in. */
static struct hydns_acl_entry v4_default(void)
{
	struct hydns_acl_entry e;

	memset(&e, 0, sizeof(e));
	memcpy(e.addr, v4_mapped, sizeof(v4_mapped));
	e.prefixlen = HYDNS_V4_BITS;
	e.action = HYDNS_ACL_PASS;
	e.why = HYDNS_CLIENT_NO_ENTRY;
	return e;
}

/* The list as hydnsd gets it, for the caller to free. *passed: how many entries let clients in whom the kernel never answers. NULL:
 * out of memory. */
static struct hydns_acl_entry* make_acl(struct daemon* daemon, size_t* count, size_t* passed)
{
	struct hydns_acl_entry* entries = calloc(daemon->acl->tree.count + 1, sizeof(*entries));
	struct acl_addr* acl;
	size_t n = 0;
	int has_v4_default = 0;

	*count = *passed = 0;
	if(!entries)
		return NULL;
	RBTREE_FOR(acl, struct acl_addr*, &daemon->acl->tree) {
		if(!acl_entry_of(acl, &entries[n]))
			continue;
		if(entries[n].prefixlen == HYDNS_V4_BITS && memcmp(entries[n].addr, v4_mapped, sizeof(v4_mapped)) == 0)
			has_v4_default = 1;
		if(entries[n].action == HYDNS_ACL_PASS && acl->control >= acl_allow)
			(*passed)++;
		n++;
	}
	if(!has_v4_default)
		entries[n++] = v4_default();
	*count = n;
	return entries;
}

/* For the operator, in place of the former notes of this kind. passed: as make_acl() says. */
static void note_clients(struct daemon* daemon, struct hydns_plugin* p, size_t passed)
{
	const struct config_file* cfg = daemon->cfg;
	const char* text[2];
	size_t n = 0;

	if(cfg->interface_actions || cfg->interface_view || cfg->interface_tags)
		text[n++] = "clients let in by interface-action, interface-view or interface-tag alone are answered by the resolver "
			"only: name them in access-control";
	if(passed > 0)
		text[n++] = "clients of access-control entries with a view or tags are answered by the resolver only";
	hydns_plugin_set_notes(p, HYDNS_NOTE_CLIENTS, text, n);
}

static void log_bad_acl(void)
{
	log_err("hydns: can't hand the access control list to hydnsd: out of memory; nothing is offered to the kernel");
}

static int export_acl(struct daemon* daemon, struct hydns_plugin* p)
{
	size_t n, passed;
	struct hydns_acl_entry* entries = make_acl(daemon, &n, &passed);
	/* too many are an obstacle: then hydnsd gets none */
	int ok = entries && (n > HYDNS_ACL_ENTRIES || hydns_plugin_add_acl(p, entries, n) == 0);

	free(entries);
	note_clients(daemon, p, passed);
	if(!ok)
		log_bad_acl();
	return ok;
}

/* --- where ----------------------------------------------------------------------------------------------- */
/* With so-reuseport every thread opens every address: the first thread's list has them all. */
static int export_services(struct daemon* daemon, struct hydns_plugin* p)
{
	struct listen_port* port;
	int automatic = 0, wrapped = 0, served = 0, beyond = 0, error;

	for(port = daemon->num_ports > 0 ? daemon->ports[0] : NULL; port; port = port->next) {
		if(port->ftype == listen_type_udp && !port->pp2_enabled) {
			error = hydns_plugin_add_service(p, port->fd);
			if(error != 0 && error != -E2BIG)
				return 0;
			beyond += error != 0;
			served++;
		} else if(port->ftype == listen_type_udpancil && !port->pp2_enabled)
			automatic++;
		else if(port->ftype == listen_type_udp || port->ftype == listen_type_udpancil ||
			port->ftype == listen_type_udp_dnscrypt ||
			port->ftype == listen_type_udpancil_dnscrypt)
			wrapped++;
	}
	if(beyond > 0) {
		log_warn("hydns: %s", hydns_services_note);
		(void)hydns_plugin_add_note(p, HYDNS_NOTE_ADDRESSES, hydns_services_note);
	}
	if(automatic > 0)
		(void)hydns_plugin_add_note(p, HYDNS_NOTE_ADDRESSES, "interface-automatic is yes, and the kernel can't tell which "
			"addresses that means: set it to no, and name the addresses with interface:");
	if(wrapped > 0)
		(void)hydns_plugin_add_note(p, HYDNS_NOTE_ADDRESSES, "UDP sockets with PROXY protocol or DNSCrypt are "
			"answered by the resolver only");
	if(served == 0)
		(void)hydns_plugin_add_note(p, HYDNS_NOTE_ADDRESSES, "there is no UDP socket whose queries the kernel could "
			"answer");
	return 1;
}

/* --- ports of queries to upstream ------------------------------------------------------------------------ */
static struct hydns_port_run reserved;

__attribute__((constructor)) static void read_reserved_ports(void)
{
	reserved = hydns_ports_reserved();
}

struct hydns_port_run hydns_config_reserved_ports(void)
{
	return reserved;
}

static int is_reserved(int port)
{
	return (unsigned)port >= reserved.first && (unsigned)port < reserved.first + reserved.count;
}

int hydns_config_leave_ports(const struct config_file* cfg, int* ports, int n)
{
	int i, left = 0;

	if(!cfg->has_hydns || !cfg->hydns_enable || cfg->hydns_queue_upstream == HYDNS_NO)
		return n;
	for(i = 0; i < n; i++)
		left += !is_reserved(ports[i]);
	if(left == 0)
		return n;
	left = 0;
	for(i = 0; i < n; i++)
		if(!is_reserved(ports[i]))
			ports[left++] = ports[i];
	return left;
}

/* outgoing-port-avoid, and ports at which clients are answered. */
static bool avoided(void* arg, uint16_t port)
{
	const struct daemon* daemon = (const struct daemon*)arg;

	return !daemon->cfg->outgoing_avail_ports[port] || port == daemon->cfg->port;
}

void hydns_config_avoid_ports(struct daemon* daemon, struct hydns_plugin* p)
{
	hydns_plugin_avoid_ports(p, avoided, daemon);
}

/* --- cookies ----------------------------------------------------------------------------------------- */
void hydns_config_cookies(struct daemon* daemon, struct hydns_plugin* p)
{
	const struct config_file* cfg = daemon->cfg;
	uint8_t secret[HYDNS_COOKIE_SECRETS][HYDNS_COOKIE_SECRET_LEN];
	size_t i, n = 0;

	if(!cfg->do_answer_cookie)
		return;
	memset(secret, 0, sizeof(secret));
	if(cfg->cookie_secret_file && cfg->cookie_secret_file[0]) {
		if(daemon->cookie_secrets) {
			lock_basic_lock(&daemon->cookie_secrets->lock);
			n = daemon->cookie_secrets->cookie_count;
			for(i = 0; i < n; i++)
				memcpy(secret[i], daemon->cookie_secrets->cookie_secrets[i].cookie_secret,
					HYDNS_COOKIE_SECRET_LEN);
			lock_basic_unlock(&daemon->cookie_secrets->lock);
		}
	} else if(cfg->cookie_secret_len == HYDNS_COOKIE_SECRET_LEN) {
		memcpy(secret[0], cfg->cookie_secret, HYDNS_COOKIE_SECRET_LEN);
		n = 1;
	}
	hydns_plugin_cookie_secrets(p, (const uint8_t (*)[HYDNS_COOKIE_SECRET_LEN])secret, n);
	explicit_bzero(secret, sizeof(secret));
}

/* --- what is logged ---------------------------------------------------------------------------------- */
static int zone_is_logged(const struct local_zone* z)
{
	return z->type == local_zone_inform || z->type == local_zone_inform_deny ||
		z->type == local_zone_inform_redirect;
}

/* Why queries for names in local zones are kept from the kernel one by one (hydns_request_logged); NULL: they are not. */
static const char* why_logged(struct daemon* daemon)
{
	struct local_zone* z;
	int logged = 0;

	if(daemon->cfg->hydns_allow_unlogged)
		return NULL;
	if(daemon->cfg->log_local_actions)
		return "log-local-actions is yes: names in local zones are answered by the resolver only, so that they are logged; or "
			"set hydns-allow-unlogged: yes";
	lock_rw_rdlock(&daemon->local_zones->lock);
	RBTREE_FOR(z, struct local_zone*, &daemon->local_zones->ztree) {
		lock_rw_rdlock(&z->lock);
		logged += zone_is_logged(z);
		lock_rw_unlock(&z->lock);
	}
	lock_rw_unlock(&daemon->local_zones->lock);
	return logged > 0 ? "names in local zones of type inform are answered by the resolver only, so that they are logged; or set "
		"hydns-allow-unlogged: yes" : NULL;
}

/* As note_clients(). */
static void note_others(struct daemon* daemon, struct hydns_plugin* p)
{
	const char* logged = why_logged(daemon);
	const char* text[3];
	size_t n = 0;

	if(hydns_limits_waiting(daemon->cfg))
		text[n++] = "no query waits in the kernel for a resolution under way: wait-limit or a netblock of it is set, and Unbound "
			"would not count those that do";
	if(hydns_config_gives_stale(daemon->cfg))
		text[n++] = "no query waits in the kernel for a resolution under way: serve-expired-client-timeout has Unbound answer those "
			"that wait with expired data";
	if(logged)
		text[n++] = logged;
	hydns_plugin_set_notes(p, HYDNS_NOTE_OTHER, text, n);
}

int hydns_config_export(struct daemon* daemon, struct hydns_plugin* p)
{
	if(!export_acl(daemon, p))
		return 0;
	if(!export_services(daemon, p)) {
		log_err("hydns: can't hand a listening socket to hydnsd: nothing is offered to the kernel");
		return 0;
	}
	note_others(daemon, p);
	hydns_config_cookies(daemon, p);
	hydns_limits_set(daemon, p);
	return 1;
}

void hydns_config_export_again(struct hydns_daemon* d)
{
	struct hydns_dnstap_options log;
	const struct hydns_plugin_options o = hydns_daemon_options(d->daemon, &log);
	size_t n, passed;
	struct hydns_acl_entry* entries = make_acl(d->daemon, &n, &passed);

	d->reply_options = hydns_config_reply_options(d->daemon);
	d->stale = o.stale;
	atomic_store(&d->limits, hydns_limits_are_counted(d->daemon->cfg));
	note_clients(d->daemon, d->plugin, passed);
	note_others(d->daemon, d->plugin);
	hydns_config_cookies(d->daemon, d->plugin);
	hydns_limits_set(d->daemon, d->plugin);
	/* without entries, or with too many: hydnsd must not go by the former ones */
	if(hydns_plugin_reconfigure(d->plugin, &o, entries, entries && n <= HYDNS_ACL_ENTRIES ? n : 0) != 0 || !entries)
		log_bad_acl();
	free(entries);
}
