/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded auth-zones (hydns-preload: yes): which they are, and what there is to ask of them. */
#include "config.h"
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "hydns_daemon.h"
#include "hydns/preload.h"
#include "daemon/daemon.h"
#include "services/authzone.h"
#include "services/listen_dnsport.h"
#include "sldns/rrdef.h"
#include "sldns/str2wire.h"
#include "util/config_file.h"
#include "util/data/dname.h"
#include "util/log.h"
#include "util/rbtree.h"

/* --- what there is to ask, on the preloading thread -------------------------------------------------------- */
static int add_more(struct auth_zone* z, const struct auth_data* n, const struct hydns_preload_found* found,
	struct hydns_preload_list* to)
{
	uint16_t type[HYDNS_PRELOAD_MORE];
	int is_origin = query_dname_compare(n->name, z->name) == 0;
	unsigned i, count = hydns_preload_more(found, is_origin, type);

	for(i = 0; i < count; i++)
		if(!hydns_preload_add(to, n->name, n->namelen, type[i]))
			return 0;
	if(hydns_preload_no_ds(found, is_origin, hydns_zone_is_signed(z)) && !hydns_preload_add_no_ds(to, n->name, n->namelen))
		return 0;
	return !hydns_preload_below(found) || hydns_preload_add_below(to, n->name, n->namelen);
}

/* 0: no more is taken. */
static int add_name(struct auth_zone* z, const struct auth_data* n, struct hydns_preload_list* to)
{
	struct hydns_preload_found found;
	const struct auth_rrset* r;

	memset(&found, 0, sizeof(found));
	for(r = n->rrsets; r; r = r->next) {
		hydns_preload_look_at(&found, r->type);
		if(hydns_preload_asks(r->type) && !hydns_preload_add(to, n->name, n->namelen, r->type))
			return 0;
	}
	return add_more(z, n, &found, to);
}

static void add_names(struct auth_zone* z, uint8_t* name, int below, struct hydns_preload_list* to)
{
	struct auth_data* n;
	int more = 1;

	RBTREE_FOR(n, struct auth_data*, &z->data)
		if(more && (below ? dname_subdomain_c(n->name, name) : query_dname_compare(n->name, name) == 0))
			more = add_name(z, n, to);
}

struct auth_zone* hydns_preload_open_zone(struct hydns_daemon* d, const uint8_t* origin, size_t len)
{
	struct auth_zones* az = d->daemon->env->auth_zones;
	uint8_t name[HYDNS_NAME_MAX];
	struct auth_zone* z;

	memcpy(name, origin, len);
	lock_rw_rdlock(&az->lock);
	z = auth_zone_find(az, name, len, LDNS_RR_CLASS_IN);
	if(z) {
		lock_rw_rdlock(&z->lock);
		if(z->for_downstream && z->data.count > 0)
			return z;
		lock_rw_unlock(&z->lock);
	}
	lock_rw_unlock(&az->lock);
	return NULL;
}

void hydns_preload_close_zone(struct hydns_daemon* d, struct auth_zone* z)
{
	lock_rw_unlock(&z->lock);
	lock_rw_unlock(&d->daemon->env->auth_zones->lock);
}

static int list(void* arg, const uint8_t* origin, size_t origin_len, const uint8_t* name, size_t name_len, bool below,
	struct hydns_preload_list* to)
{
	struct hydns_daemon* d = (struct hydns_daemon*)arg;
	struct auth_zone* z = hydns_preload_open_zone(d, origin, origin_len);
	uint8_t top[HYDNS_NAME_MAX];

	if(!z)
		return -ENOENT;
	memcpy(top, name, name_len);
	add_names(z, top, below, to);
	hydns_preload_close_zone(d, z);
	return 0;
}

/* --- which zones ------------------------------------------------------------------------------------------- */
static int is_preloaded(const struct config_auth* a)
{
	return a->hydns_preload && a->name && a->for_downstream;
}

int hydns_preload_differs(const struct config_file* was, const struct config_file* is)
{
	const struct config_auth* a = was->auths, *b = is->auths;

	for(;;) {
		while(a && !is_preloaded(a))
			a = a->next;
		while(b && !is_preloaded(b))
			b = b->next;
		if(!a || !b)
			return a != b;
		if(strcmp(a->name, b->name) != 0)
			return 1;
		a = a->next;
		b = b->next;
	}
}

static size_t add_zone(const struct config_auth* a, struct hydns_forward_name* out)
{
	size_t len = sizeof(out->name);

	if(a->hydns_preload && !a->for_downstream)
		log_warn("hydns: auth-zone %s is not preloaded, for clients get no answers from it: set for-downstream to yes", a->name);
	if(!is_preloaded(a) || sldns_str2wire_dname_buf(a->name, out->name, &len) != 0)
		return 0;
	query_dname_tolower(out->name);
	out->name_len = (uint8_t)len;
	return 1;
}

/* To d->preloaded. Returns how many. */
static size_t take_zones(struct hydns_daemon* d)
{
	const struct config_auth* a;
	size_t n = 0;

	for(a = d->daemon->cfg->auths; a; a = a->next)
		n += a->hydns_preload != 0;
	d->preloaded = n > 0 ? (struct hydns_forward_name*)calloc(n, sizeof(*d->preloaded)) : NULL;
	if(!d->preloaded)
		return 0;
	for(n = 0, a = d->daemon->cfg->auths; a; a = a->next)
		if(a->hydns_preload)
			n += add_zone(a, &d->preloaded[n]);
	return n;
}

/* --- the start --------------------------------------------------------------------------------------------- */
/* Of the sockets where the kernel answers, too. */
static void find_service(const struct daemon* daemon, struct hydns_preload_options* o)
{
	const struct listen_port* port;

	for(port = daemon->num_ports > 0 ? daemon->ports[0] : NULL; port; port = port->next)
		if(port->ftype == listen_type_udp && !port->pp2_enabled)
			hydns_preload_consider_service(o, port->fd);
}

void hydns_preload_begin(struct hydns_daemon* d)
{
	struct hydns_preload_options o;
	int error;

	memset(&o, 0, sizeof(o));
	o.zones = take_zones(d);
	if(o.zones == 0)
		return;
	o.zone = d->preloaded;
	o.edns_size = d->reply_options.max_udp;
	o.list = list;
	o.names = hydns_names_all;
	o.look = hydns_names_look;
	o.arg = d;
	find_service(d->daemon, &o);
	error = hydns_plugin_preload(d->plugin, &o);
	if(error != 0)
		log_err("hydns: no zone is preloaded: cannot ask Unbound itself: %s", strerror(-error));
}
