/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which forward zones the kernel may forward queries of (hydns-forward: yes): those whose answers Unbound relays unchanged. What it
 * answers itself within them, or asks elsewhere, is left out. Each refusal is a note that says cause and mend.
 */
#include "config.h"
#include <string.h>
#include "hydns_compat.h"
#include "hydns_daemon.h"
#include "daemon/daemon.h"
#include "iterator/iter_delegpt.h"
#include "iterator/iter_fwd.h"
#include "iterator/iter_hints.h"
#include "services/authzone.h"
#include "services/localzone.h"
#include "services/modstack.h"
#include "sldns/rrdef.h"
#include "sldns/str2wire.h"
#include "util/config_file.h"
#include "util/data/dname.h"
#include "util/log.h"
#include "util/net_help.h"
#include "validator/val_anchor.h"

/* The list that is being made. */
struct list {
	struct daemon* daemon;
	struct hydns_forward_zones* z;
};

/* --- what holds for all zones --------------------------------------------------------------------------- */
struct hindrance {
	int met;
	const char* reason;
};

/* Modules that change no answer of a zone without a trust anchor. */
static int modules_relay(const struct module_stack* mods)
{
	int i;

	for(i = 0; i < mods->num; i++)
		if(strcmp(mods->mod[i]->name, "hydns") != 0 && strcmp(mods->mod[i]->name, "validator") != 0 &&
			strcmp(mods->mod[i]->name, "iterator") != 0)
			return 0;
	return 1;
}

static int dnstap_sees_forwarding(const struct config_file* cfg)
{
	return cfg->dnstap && (cfg->dnstap_log_forwarder_query_messages || cfg->dnstap_log_forwarder_response_messages);
}

/* NULL: nothing stands in the way. */
static const char* hindrance_of_all(struct daemon* daemon)
{
	const struct config_file* cfg = daemon->cfg;
	const struct hindrance all[] = {
		{ !modules_relay(&daemon->mods),
			"module-config has another module than hydns, validator and iterator: remove it" },
		{ cfg->hydns_pending_max == 0 || cfg->hydns_pending_per_question == 0,
			"hydns-pending-max or hydns-pending-per-question is 0, and forwarded queries wait: raise it" },
		{ hydns_limits_waiting(cfg),
			"wait-limit or a netblock of it is set, and does not count queries that wait in the kernel: remove it" },
		{ hydns_config_gives_stale(cfg) || cfg->serve_expired,
			"serve-expired is yes, and expired answers are Unbound's to give: set it to no" },
		{ !cfg->minimal_responses,
			"minimal-responses is no, and the kernel leaves the authority section out: set it to yes" },
		{ cfg->min_ttl > 0 || cfg->min_negative_ttl > 0,
			"cache-min-ttl or cache-min-negative-ttl changes TTLs: set it to 0" },
		{ cfg->private_address != NULL,
			"private-address filters answers: remove it" },
		{ cfg->ratelimit != 0,
			"ratelimit is on, and does not count what the kernel forwards: set it to 0" },
		{ cfg->unwanted_threshold != 0,
			"unwanted-reply-threshold counts false replies, and does not see the kernel's: set it to 0" },
		{ cfg->num_out_ifs > 0,
			"outgoing-interface chooses the address that queries come from: remove it" },
		{ cfg->donotqueryaddrs != NULL,
			"do-not-query-address may keep Unbound from asking its servers: remove it" },
		{ cfg->edns_client_strings != NULL,
			"edns-client-string tells servers who asks, and the kernel's requests do not: remove it" },
		{ cfg->tcp_upstream || cfg->ssl_upstream || !cfg->do_udp,
			"queries to upstream go over TCP or TLS: set tcp-upstream and tls-upstream to no, and do-udp to yes" },
		{ cfg->ede,
			"ede is yes, and Unbound may explain errors in answers: set it to no" },
		{ dnstap_sees_forwarding(cfg) && !cfg->hydns_allow_unlogged,
			"dnstap records forwarder messages, and does not see the kernel's: turn dnstap-log-forwarder-*-messages "
			"off, or set hydns-allow-unlogged: yes" },
	};
	size_t i;

	for(i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if(all[i].met)
			return all[i].reason;
	return NULL;
}

/* --- servers ---------------------------------------------------------------------------------------------- */
/* Its address in 16 octets. Returns its port, in network order. */
static uint16_t server_of(const struct delegpt_addr* a, uint8_t addr[16])
{
	static const uint8_t mapped[12] = HYDNS_V4_MAPPED;
	const struct sockaddr_in6* in6 = (const struct sockaddr_in6*)&a->addr;
	const struct sockaddr_in* in = (const struct sockaddr_in*)&a->addr;

	if(addr_is_ip6((struct sockaddr_storage*)&a->addr, a->addrlen)) {
		memcpy(addr, &in6->sin6_addr, 16);
		return in6->sin6_port;
	}
	memcpy(addr, mapped, sizeof(mapped));
	memcpy(addr + sizeof(mapped), &in->sin_addr, 4);
	return in->sin_port;
}

/* NULL: all went well, and *servers are the bits of those that can be asked. */
static const char* add_servers(struct list* l, const struct delegpt* dp, uint32_t* servers)
{
	const struct config_file* cfg = l->daemon->cfg;
	const struct delegpt_addr* a;
	const char* reason = NULL;

	*servers = 0;
	for(a = dp->target_list; a && !reason; a = a->next_target) {
		uint8_t addr[16];
		uint16_t port = server_of(a, addr);

		if(addr_is_ip6((struct sockaddr_storage*)&a->addr, a->addrlen) ? cfg->do_ip6 : cfg->do_ip4)
			reason = hydns_forward_zones_server(l->z, addr, port, servers);
	}
	if(reason)
		return reason;
	return *servers ? NULL : "it has no forward-addr that may be asked: name one";
}

/* --- one zone ----------------------------------------------------------------------------------------------- */
static int is_validated(struct daemon* daemon, uint8_t* name, size_t len)
{
	struct trust_anchor* ta;
	int keys;

	if(modstack_find(&daemon->mods, "validator") < 0 || !daemon->env->anchors)
		return 0;
	ta = anchors_lookup(daemon->env->anchors, name, len, LDNS_RR_CLASS_IN);
	if(!ta)
		return 0;
	keys = ta->numDS != 0 || ta->numDNSKEY != 0;
	lock_basic_unlock(&ta->lock);
	return keys;
}

/* A local zone at the name or above it may answer instead. */
static int is_local(struct daemon* daemon, uint8_t* name, size_t len)
{
	struct local_zone* z;

	lock_rw_rdlock(&daemon->local_zones->lock);
	z = HYDNS_LOCAL_ZONE(daemon->local_zones, name, len, dname_count_labels(name), LDNS_RR_TYPE_SOA);
	lock_rw_unlock(&daemon->local_zones->lock);
	return z != NULL;
}

/* An auth-zone at the name or above it. */
static int is_auth(struct daemon* daemon, uint8_t* name)
{
	struct auth_zones* az = daemon->env->auth_zones;
	struct auth_zone* z;
	int found = 0;

	if(!az)
		return 0;
	lock_rw_rdlock(&az->lock);
	RBTREE_FOR(z, struct auth_zone*, &az->ztree)
		found |= z->dclass == LDNS_RR_CLASS_IN && dname_subdomain_c(name, z->name);
	lock_rw_unlock(&az->lock);
	return found;
}

static const char* hindrance_of(struct daemon* daemon, struct delegpt* dp)
{
	const struct hindrance all[] = {
		{ dp->ssl_upstream || dp->tcp_upstream, "its queries go over TCP or TLS: set forward-tcp-upstream and "
			"forward-tls-upstream to no" },
		{ dp->no_cache, "forward-no-cache is yes: set it to no" },
		{ dp->nslist != NULL, "forward-host has to be looked up: name addresses with forward-addr" },
		{ is_validated(daemon, dp->name, dp->namelen), "its answers are validated: name it in domain-insecure" },
		{ is_local(daemon, dp->name, dp->namelen), "a local-zone or local-data is at it or above it: remove that, or set "
			"local-zone: \"...\" nodefault" },
		{ is_auth(daemon, dp->name), "an auth-zone is at it or above it: remove that" },
	};
	size_t i;

	for(i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if(all[i].met)
			return all[i].reason;
	return NULL;
}

static void take_zone(struct list* l, const char* text, const char* reason)
{
	uint8_t name[LDNS_MAX_DOMAINLEN + 1];
	size_t len = sizeof(name);
	struct delegpt* dp;
	uint32_t servers = 0;

	if(sldns_str2wire_dname_buf(text, name, &len) != 0)
		return;
	lock_rw_rdlock(&l->daemon->env->fwds->lock);
	dp = forwards_find(l->daemon->env->fwds, name, LDNS_RR_CLASS_IN, 1);
	if(dp && !reason)
		reason = hindrance_of(l->daemon, dp);
	if(dp && !reason)
		reason = add_servers(l, dp, &servers);
	if(dp && reason)
		hydns_forward_zones_refuse(l->z, "forward-zone", text, reason);
	else if(dp)
		hydns_forward_zones_add(l->z, name, len, servers);
	lock_rw_unlock(&l->daemon->env->fwds->lock);
}

/* --- what is within a zone, and not forwarded ----------------------------------------------------------------- */
static void leave_out_forwards(struct list* l)
{
	struct iter_forwards* fwds = l->daemon->env->fwds;
	struct iter_forward_zone* z;

	lock_rw_rdlock(&fwds->lock);
	RBTREE_FOR(z, struct iter_forward_zone*, fwds->tree)
		if(z->dclass == LDNS_RR_CLASS_IN && !hydns_forward_zones_has(l->z, z->name, z->namelen))
			hydns_forward_zones_leave_out(l->z, z->name, z->namelen);
	lock_rw_unlock(&fwds->lock);
}

static void leave_out_stubs(struct list* l)
{
	struct iter_hints* hints = l->daemon->env->hints;
	struct iter_hints_stub* s;

	lock_rw_rdlock(&hints->lock);
	RBTREE_FOR(s, struct iter_hints_stub*, &hints->tree)
		if(s->node.dclass == LDNS_RR_CLASS_IN && s->node.len > 1)
			hydns_forward_zones_leave_out(l->z, s->node.name, s->node.len);
	lock_rw_unlock(&hints->lock);
}

static void leave_out_local_zones(struct list* l)
{
	struct local_zone* z;

	lock_rw_rdlock(&l->daemon->local_zones->lock);
	RBTREE_FOR(z, struct local_zone*, &l->daemon->local_zones->ztree)
		if(z->dclass == LDNS_RR_CLASS_IN)
			hydns_forward_zones_leave_out(l->z, z->name, z->namelen);
	lock_rw_unlock(&l->daemon->local_zones->lock);
}

static void leave_out_auth_zones(struct list* l)
{
	struct auth_zones* az = l->daemon->env->auth_zones;
	struct auth_zone* z;

	if(!az)
		return;
	lock_rw_rdlock(&az->lock);
	RBTREE_FOR(z, struct auth_zone*, &az->ztree)
		if(z->dclass == LDNS_RR_CLASS_IN)
			hydns_forward_zones_leave_out(l->z, z->name, z->namelen);
	lock_rw_unlock(&az->lock);
}

/* Islands of trust. */
static void leave_out_anchors(struct list* l)
{
	struct val_anchors* anchors = l->daemon->env->anchors;
	struct trust_anchor* ta;

	if(!anchors || modstack_find(&l->daemon->mods, "validator") < 0)
		return;
	lock_basic_lock(&anchors->lock);
	RBTREE_FOR(ta, struct trust_anchor*, anchors->tree)
		if(ta->dclass == LDNS_RR_CLASS_IN)
			hydns_forward_zones_leave_out(l->z, ta->name, ta->namelen);
	lock_basic_unlock(&anchors->lock);
}

/* --- the whole list --------------------------------------------------------------------------------------------- */
static void make_list(struct list* l)
{
	const char* reason = hindrance_of_all(l->daemon);
	struct config_stub* s;

	l->z->of.max_ttl = (uint32_t)l->daemon->cfg->max_ttl;
	l->z->of.max_negative_ttl = (uint32_t)l->daemon->cfg->max_negative_ttl;
	for(s = l->daemon->cfg->forwards; s; s = s->next)
		if(s->hydns_forward && s->name)
			take_zone(l, s->name, reason);
	if(l->z->of.zones == 0)
		return;
	leave_out_forwards(l);
	leave_out_stubs(l);
	leave_out_local_zones(l);
	leave_out_auth_zones(l);
	leave_out_anchors(l);
}

static int is_wanted(const struct config_file* cfg)
{
	const struct config_stub* s;

	for(s = cfg->forwards; s; s = s->next)
		if(s->hydns_forward)
			return 1;
	return 0;
}

static void log_note(enum hydns_log_level level, const char* text)
{
	if(level == HYDNS_LOG_ERROR)
		log_err("hydns: %s", text);
	else	log_warn("hydns: %s", text);
}

void hydns_forward_refresh(struct hydns_daemon* d)
{
	struct list l;

	if(d->closing || (!is_wanted(d->daemon->cfg) && !d->forwards))
		return;
	l.daemon = d->daemon;
	l.z = hydns_forward_zones_new();
	if(l.z && atomic_load(&d->open)) /* else the obstacles say why */
		make_list(&l);
	d->forwards = hydns_forward_zones_use(l.z, d->plugin, &d->forward_notes, log_note);
	hydns_forward_zones_free(l.z);
}
