/* SPDX-License-Identifier: BSD-3-Clause */
/* What BIND's releases call differently, or do not have. The number of the plugin API distinguishes them: 1 is 9.18, 2 is
 * 9.20, 3 is 9.20 with this project's patches. */
#ifndef HYDNS_BIND_COMPAT_H
#define HYDNS_BIND_COMPAT_H

#include <dns/acl.h>
#include <dns/db.h>
#include <dns/resolver.h>
#include <dns/view.h>
#include <ns/client.h>
#include <ns/hooks.h>
#include "hydns/common.h"

#if NS_PLUGIN_VERSION >= 2
#include <isc/tid.h>
#include <isc/urcu.h>
#else
#include <isc/netmgr.h>
#include <isc/os.h>
#include <isc/rwlock.h>
#endif

#define HYDNS_STOCK (NS_PLUGIN_VERSION < 3)

/* What a release does not have is never set there. */
#if HYDNS_STOCK
#define NS_QUERYATTR_SYNTHESIZED 0
#endif
#if NS_PLUGIN_VERSION < 2
#define DNS__DB_FLARG
#define NS_SERVER_LOGRESPONSES   0
#define NS_LOGCATEGORY_RESPONSES NULL
#define HYDNS_PROXY_ACL(view)    NULL
#else
#define HYDNS_PROXY_ACL(view)    ((view)->proxyacl)
#endif

/* The number of the thread that answers, from 0 on. */
static inline uint32_t hydns_tid(void)
{
#if NS_PLUGIN_VERSION >= 2
	return (uint32_t)isc_tid();
#else
	return (uint32_t)isc_nm_tid();
#endif
}

/* A thread that named has not made, but which calls its functions: its log, for one, may be replaced meanwhile. */
static inline void hydns_thread_begins(void)
{
#if NS_PLUGIN_VERSION >= 2
	rcu_register_thread();
#endif
}

static inline void hydns_thread_ends(void)
{
#if NS_PLUGIN_VERSION >= 2
	rcu_unregister_thread();
#endif
}

/* How many such threads there are. 9.18 does not say, but has one for each CPU unless it was started with -n. Threads
 * beyond this number answer without offers. */
static inline uint32_t hydns_tid_count(void)
{
#if NS_PLUGIN_VERSION >= 2
	return (uint32_t)isc_tid_count();
#else
	return isc_os_ncpus() < HYDNS_THREADS_MAX ? isc_os_ncpus() : HYDNS_THREADS_MAX;
#endif
}

static inline uint16_t hydns_edns_size(dns_view_t *view)
{
#if NS_PLUGIN_VERSION >= 2
	return dns_view_getudpsize(view);
#else
	return dns_resolver_getudpsize(view->resolver);
#endif
}

/* The list of the host's own addresses, or of its networks, as of the last scan of the interfaces. The caller detaches
 * it. */
static inline dns_acl_t *hydns_built_in_acl(dns_aclenv_t *env, dns_aclelementtype_t type)
{
	dns_acl_t *const *from = type == dns_aclelementtype_localhost ? &env->localhost : &env->localnets;
	dns_acl_t *acl = NULL;

#if NS_PLUGIN_VERSION >= 2
	rcu_read_lock();
	dns_acl_attach(rcu_dereference(*from), &acl);
	rcu_read_unlock();
#else
	RWLOCK(&env->rwlock, isc_rwlocktype_read);
	dns_acl_attach(*from, &acl);
	RWUNLOCK(&env->rwlock, isc_rwlocktype_read);
#endif
	return acl;
}

/* Whether the database notifies of changes of its zone. An unpatched named does so for none: there all rules live for
 * seconds only. */
static inline bool hydns_db_notifies(const dns_db_t *db)
{
#if HYDNS_STOCK
	return db != NULL;
#else
	return (db->attributes & DNS_DBATTR_NOTIFIES) != 0;
#endif
}

/* True when the response has an extended error: RFC 8914. */
static inline bool hydns_has_extended_error(const ns_client_t *client)
{
#if NS_PLUGIN_VERSION >= 2
	return client->edectx.nextede != 0;
#else
	return client->ede != NULL;
#endif
}

/* The zone of exactly this origin; attached. */
static inline isc_result_t hydns_find_zone(dns_view_t *view, const dns_name_t *origin, dns_zone_t **out)
{
#if NS_PLUGIN_VERSION >= 2
	return dns_view_findzone(view, origin, DNS_ZTFIND_EXACT, out);
#else
	return dns_view_findzone(view, origin, out);
#endif
}

#endif
