/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Access control lists as a table of prefixes. BIND takes a list's first matching element, the program the longest
 * matching prefix. So every prefix in any list, however nested, gets an entry with named's decision for the addresses
 * that match no longer prefix. That is exact, because no list distinguishes these addresses.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <isc/radix.h>
#include <dns/acl.h>
#include <dns/iptable.h>
#include <dns/rrl.h>
#include <dns/view.h>
#include <ns/server.h>
#include "hydns/clients.h"
#include "compat.h"
#include "plugin.h"

static const uint8_t v4_mapped[12] = HYDNS_V4_MAPPED;

static dns_acl_t *built_in(const dns_aclelement_t *e, dns_aclenv_t *env)
{
	return e->type == dns_aclelementtype_localhost || e->type == dns_aclelementtype_localnets
		       ? hydns_built_in_acl(env, e->type) : NULL;
}

/* --- what named decides for a prefix --------------------------------------------------------------------- */
/* As dns_acl_match(): positive, negative or no match. UNKNOWN: a GeoIP database decides. */
enum match { NEGATIVE = -1, NONE = 0, POSITIVE = 1, UNKNOWN = 2 };

static enum match match(const dns_acl_t *acl, dns_aclenv_t *env, const isc_prefix_t *at);

static enum match match_element(const dns_aclelement_t *e, dns_aclenv_t *env, const isc_prefix_t *at)
{
	dns_acl_t *own = built_in(e, env);
	enum match m = NONE;

	if (own != NULL) {
		m = match(own, env, at);
		dns_acl_detach(&own);
	} else if (e->type == dns_aclelementtype_nestedacl) {
		m = match(e->nestedacl, env, at);
	} else if (e->type != dns_aclelementtype_keyname) {
		return UNKNOWN;
	}
	/* A key matches no client of the kernel, since the program passes queries with TSIG. A negative match within a
	 * nested list is none. */
	return m == NEGATIVE ? NONE : m;
}

static enum match match(const dns_acl_t *acl, dns_aclenv_t *env, const isc_prefix_t *at)
{
	isc_radix_node_t *node = NULL;
	enum match found = NONE;
	int place = INT_MAX;

	if (isc_radix_search(acl->iptable->radix, &node, (isc_prefix_t *)at) == ISC_R_SUCCESS) {
		place = node->node_num[ISC_RADIX_FAMILY(at)];
		found = *(bool *)node->data[ISC_RADIX_FAMILY(at)] ? POSITIVE : NEGATIVE;
	}
	for (unsigned int i = 0; i < acl->length && acl->elements[i].node_num <= place; i++) {
		const dns_aclelement_t *e = &acl->elements[i];
		enum match m = match_element(e, env, at);

		if (m == UNKNOWN)
			return UNKNOWN;
		if (m == POSITIVE)
			return e->node_num == place ? found : e->negative ? NEGATIVE : POSITIVE;
	}
	return found;
}

static bool surely(const dns_acl_t *acl, dns_aclenv_t *env, const isc_prefix_t *at)
{
	return acl == NULL || match(acl, env, at) == POSITIVE;
}

static bool perhaps(const dns_acl_t *acl, dns_aclenv_t *env, const isc_prefix_t *at)
{
	return acl == NULL || match(acl, env, at) >= POSITIVE;
}

/* Whether the order of records may depend on a client's address: as ns_sortlist_setup(), which looks at the first element
 * of each statement. */
static bool sorts(const dns_acl_t *sortlist, dns_aclenv_t *env, const isc_prefix_t *at)
{
	if (sortlist == NULL)
		return false;
	for (unsigned int i = 0; i < sortlist->length; i++) {
		const dns_aclelement_t *e = &sortlist->elements[i];

		if (e->type == dns_aclelementtype_nestedacl && e->nestedacl->length > 0)
			e = &e->nestedacl->elements[0];
		if (match_element(e, env, at) != NONE)
			return true;
	}
	return false;
}

static isc_prefix_t host(const isc_netaddr_t *addr)
{
	isc_prefix_t p = { .family = addr->family, .bitlen = addr->family == AF_INET6 ? 128 : 32 };

	memcpy(&p.add, &addr->type, p.bitlen / 8);
	return p;
}

bool hydns_view_hears(const dns_view_t *view, dns_aclenv_t *env, const isc_netaddr_t *dest)
{
	isc_prefix_t at = host(dest);

	return perhaps(view->matchdestinations, env, &at);
}

bool hydns_view_answers_at(const dns_view_t *view, dns_aclenv_t *env, const isc_netaddr_t *dest)
{
	isc_prefix_t at = host(dest);

	return surely(view->matchdestinations, env, &at) && surely(view->queryonacl, env, &at) &&
	       (!view->recursion || (surely(view->cacheonacl, env, &at) && surely(view->recursiononacl, env, &at)));
}

/* named tries views in their order. A view with match-recursive-only gets all queries with RD, so it counts as any other. */
static bool is_of_earlier_view(const struct hydns_judge *j, const isc_prefix_t *at)
{
	for (const dns_view_t *v = ISC_LIST_PREV(j->view, link); v != NULL; v = ISC_LIST_PREV(v, link))
		for (size_t i = 0; v->rdclass == dns_rdataclass_in && i < j->dests; i++)
			if (hydns_view_hears(v, j->env, &j->dest[i]) && perhaps(v->matchclients, j->env, at))
				return true;
	return false;
}

bool hydns_rrl_limits(const dns_view_t *view)
{
	const dns_rrl_t *rrl = view->rrl;

	return rrl != NULL && (rrl->responses_per_second.r != 0 || rrl->nodata_per_second.r != 0 ||
			       rrl->nxdomains_per_second.r != 0 || rrl->referrals_per_second.r != 0 ||
			       rrl->errors_per_second.r != 0 || rrl->all_per_second.r != 0);
}

/* For a client that rate-limit may count. */
static enum hydns_client counted(const struct hydns_judge *j, const isc_prefix_t *at)
{
	const dns_acl_t *exempt = j->view->rrl->exempt;
	enum match m = exempt != NULL ? match(exempt, j->env, at) : NONE;

	if (m == POSITIVE)
		return HYDNS_CLIENT_EXEMPT;
	/* named does not count responses to clients with a valid cookie. */
	return j->shared && m != UNKNOWN ? HYDNS_CLIENT_COUNTED : HYDNS_CLIENT_RATE_LIMITED;
}

/* All these lists must let a client in; the last two only where there is recursion, since else only zones answer. */
static enum hydns_client why_not_let_in(const dns_view_t *v, dns_aclenv_t *env, const isc_prefix_t *at)
{
	if (!surely(v->matchclients, env, at))
		return HYDNS_CLIENT_OTHER_VIEW;
	if (!surely(v->queryacl, env, at))
		return HYDNS_CLIENT_NO_QUERY;
	if (v->recursion && !surely(v->cacheacl, env, at))
		return HYDNS_CLIENT_NO_CACHE;
	return v->recursion && !surely(v->recursionacl, env, at) ? HYDNS_CLIENT_NO_RECURSION : HYDNS_CLIENT_ALLOWED;
}

static enum hydns_client judge(const struct hydns_judge *j, const isc_prefix_t *at)
{
	const dns_view_t *v = j->view;
	enum hydns_client why;

	if (j->server->blackholeacl != NULL && perhaps(j->server->blackholeacl, j->env, at))
		return HYDNS_CLIENT_BLACKHOLE;
	if (is_of_earlier_view(j, at))
		return HYDNS_CLIENT_EARLIER_VIEW;
	why = why_not_let_in(v, j->env, at);
	if (why != HYDNS_CLIENT_ALLOWED)
		return why;
	if (sorts(v->sortlist, j->env, at))
		return HYDNS_CLIENT_SORTED;
	if (v->nocasecompress != NULL && perhaps(v->nocasecompress, j->env, at))
		return HYDNS_CLIENT_NO_COMPRESSION;
	return j->limited ? counted(j, at) : HYDNS_CLIENT_ALLOWED;
}

static uint8_t action_for(enum hydns_client why)
{
	switch (why) {
	case HYDNS_CLIENT_ALLOWED:
	case HYDNS_CLIENT_COUNTED:
		return HYDNS_ACL_ALLOW;
	case HYDNS_CLIENT_EXEMPT:
		return HYDNS_ACL_ALLOW_EXEMPT;
	case HYDNS_CLIENT_RATE_LIMITED:
		return HYDNS_ACL_ALLOW_COOKIE;
	default:
		return HYDNS_ACL_PASS;
	}
}

/* --- the prefixes that the lists name ---------------------------------------------------------------------- */
struct table {
	const struct hydns_judge *j;
	struct hydns_acl_entry *entry;
	size_t n, room;
	bool failed;
};

/* Clears the bits after the prefix: localnets has whole addresses of interfaces. */
static void clear_host(struct hydns_acl_entry *e)
{
	for (unsigned int bit = e->prefixlen; bit < 8 * sizeof(e->addr); bit++)
		e->addr[bit / 8] &= (uint8_t)~(0x80 >> bit % 8);
}

static void add(struct table *t, unsigned int family, const uint8_t *addr, unsigned int bits)
{
	struct hydns_acl_entry e = { 0 };
	isc_prefix_t at = { .family = family, .bitlen = bits };

	if (family == AF_INET6 && bits >= HYDNS_V4_BITS && memcmp(addr, v4_mapped, sizeof(v4_mapped)) == 0)
		return;                /* named matches IPv4 clients with IPv4 entries only */
	if (t->n == t->room) {
		size_t room = t->room > 0 ? 2 * t->room : 64;
		struct hydns_acl_entry *more = realloc(t->entry, room * sizeof(*more));

		if (more == NULL) {
			t->failed = true;
			return;
		}
		t->entry = more;
		t->room = room;
	}
	memcpy(&at.add, addr, family == AF_INET6 ? 16 : 4);
	e.why = judge(t->j, &at);
	e.action = action_for(e.why);
	if (family == AF_INET6) {
		memcpy(e.addr, addr, sizeof(e.addr));
		e.prefixlen = (uint8_t)bits;
	} else {
		memcpy(e.addr, v4_mapped, sizeof(v4_mapped));
		memcpy(e.addr + sizeof(v4_mapped), addr, 4);
		e.prefixlen = (uint8_t)(HYDNS_V4_BITS + bits);
	}
	clear_host(&e);
	t->entry[t->n++] = e;
}

static void add_list(struct table *t, const dns_acl_t *acl)
{
	isc_radix_node_t *node;

	if (acl == NULL)
		return;
	RADIX_WALK(acl->iptable->radix->head, node) {
		const uint8_t *addr = (const uint8_t *)&node->prefix->add;

		/* "any" is in the tree as IPv4 0/0 and holds for both families; hydns_acl_compile() has added both */
		if (node->prefix->bitlen > 0 && node->node_num[RADIX_V4] != -1)
			add(t, AF_INET, addr, node->prefix->bitlen);
		if (node->prefix->bitlen > 0 && node->node_num[RADIX_V6] != -1)
			add(t, AF_INET6, addr, node->prefix->bitlen);
	}
	RADIX_WALK_END;
	for (unsigned int i = 0; i < acl->length; i++) {
		dns_acl_t *own = built_in(&acl->elements[i], t->j->env);

		if (own != NULL) {
			add_list(t, own);
			dns_acl_detach(&own);
		} else if (acl->elements[i].type == dns_aclelementtype_nestedacl) {
			add_list(t, acl->elements[i].nestedacl);
		}
	}
}

static int compare(const void *a, const void *b)
{
	const struct hydns_acl_entry *x = a, *y = b;
	int order = memcmp(x->addr, y->addr, sizeof(x->addr));

	return order != 0 ? order : x->prefixlen - y->prefixlen;
}

static bool contains(const struct hydns_acl_entry *net, const struct hydns_acl_entry *e)
{
	unsigned int octets = net->prefixlen / 8, bits = net->prefixlen % 8;

	return net->prefixlen <= e->prefixlen && memcmp(net->addr, e->addr, octets) == 0 &&
	       (bits == 0 || ((net->addr[octets] ^ e->addr[octets]) & (uint8_t)(0xff00 >> bits)) == 0);
}

/* Drops entries that say the same as the next shorter prefix; exactly: with the same reason too, which hydnsctl explain
 * shows. In sorted order a prefix stands before all that it contains. */
static void thin_out(struct table *t, bool exactly)
{
	size_t outer[129], depth = 0, kept = 0;

	for (size_t i = 0; i < t->n; i++) {
		const struct hydns_acl_entry e = t->entry[i];

		while (depth > 0 && !contains(&t->entry[outer[depth - 1]], &e))
			depth--;
		if (depth > 0 && t->entry[outer[depth - 1]].action == e.action &&
		    (!exactly || t->entry[outer[depth - 1]].why == e.why))
			continue;
		outer[depth++] = kept;
		t->entry[kept++] = e;
	}
	t->n = kept;
}

struct hydns_acl_entry *hydns_acl_compile(const struct hydns_judge *j, size_t *n)
{
	static const uint8_t zero[16];
	struct table t = { .j = j };
	const dns_view_t *own = j->view;
	const dns_acl_t *const lists[] = { own->cacheacl, own->recursionacl, own->queryacl, own->sortlist, own->nocasecompress,
		own->rrl != NULL ? own->rrl->exempt : NULL, j->server->blackholeacl };

	add(&t, AF_INET6, zero, 0);
	add(&t, AF_INET, zero, 0);
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		add_list(&t, lists[i]);
	for (const dns_view_t *v = own; v != NULL; v = ISC_LIST_PREV(v, link))
		add_list(&t, v->matchclients);
	if (t.failed) {
		free(t.entry);
		return NULL;
	}
	qsort(t.entry, t.n, sizeof(*t.entry), compare);
	thin_out(&t, true);
	if (t.n > HYDNS_ACL_ENTRIES)
		thin_out(&t, false);
	*n = t.n;
	return t.entry;
}
