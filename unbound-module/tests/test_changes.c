/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the module is notified of when Unbound's own caches store an RRset or a message. slabhash_insert() is wrapped
 * (tests.mk): another thread may store between a cache's look-up and its insertion, and here it does.
 */
#include "config.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "hydns.h"
#include "services/cache/dns.h"
#include "services/cache/rrset.h"
#include "sldns/pkthdr.h"
#include "sldns/rrdef.h"
#include "util/alloc.h"
#include "util/config_file.h"
#include "util/data/msgreply.h"
#include "util/data/packed_rrset.h"
#include "util/net_help.h"
#include "util/regional.h"
#include "util/storage/slabhash.h"

#define NOW 1700000000
#define WWW "\3www\7example"

struct told {
	unsigned changes, ttl_updates;
	char name[HYDNS_NAME_MAX];          /* of the last */
	time_t was, is;
};

static struct told told;
static struct alloc_cache alloc;
static struct regional* region;
static struct module_env env;
static time_t now;
static void (*meanwhile)(void);         /* what another thread stores before the next insertion */

static void changed(struct hydns_context* h, const uint8_t* name, size_t len)
{
	(void)h;
	told.changes++;
	memcpy(told.name, name, len);
}

static void ttl_update(struct hydns_context* h, const uint8_t* name, size_t len, uint16_t rrtype,
	enum hydns_section section, time_t was, time_t is)
{
	(void)h;
	assert_int_equal(rrtype, LDNS_RR_TYPE_A);
	assert_int_equal(section, HYDNS_SECTION_ANYWHERE);
	told.ttl_updates++;
	memcpy(told.name, name, len);
	told.was = was;
	told.is = is;
}

static const struct hydns_hooks hooks = { .changed = changed, .ttl_update = ttl_update };
static struct hydns_context context = { .hooks = &hooks };

void __real_slabhash_insert(struct slabhash* table, hashvalue_type hash, struct lruhash_entry* entry, void* data,
	void* arg);
void __wrap_slabhash_insert(struct slabhash* table, hashvalue_type hash, struct lruhash_entry* entry, void* data,
	void* arg);

static void* run(void* f)
{
	(*(void (**)(void))f)();
	return NULL;
}

/* The other thread has no context, so that only our own stores are told. */
void __wrap_slabhash_insert(struct slabhash* table, hashvalue_type hash, struct lruhash_entry* entry, void* data,
	void* arg)
{
	void (*other)(void) = meanwhile;
	pthread_t thread;

	meanwhile = NULL;
	if(other) {
		assert_int_equal(pthread_create(&thread, NULL, run, &other), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	__real_slabhash_insert(table, hash, entry, data, arg);
}

static int set_up(void** state)
{
	(void)state;
	memset(&told, 0, sizeof(told));
	memset(&env, 0, sizeof(env));
	now = NOW;
	region = regional_create();
	alloc_init(&alloc, NULL, 0);
	env.now = &now;
	env.alloc = &alloc;
	env.cfg = config_create();
	if(env.cfg)
		env.cfg->rrset_cache_slabs = 1; /* 0 in Unbound 1.26: as many as threads */
	env.rrset_cache = rrset_cache_create(env.cfg, &alloc);
	env.msg_cache = slabhash_create(1, 64, 1 << 20, msgreply_sizefunc, query_info_compare, query_entry_delete,
		reply_info_delete, NULL);
	hydns_thread_context(&context);
	return !region || !env.cfg || !env.rrset_cache || !env.msg_cache;
}

static int tear_down(void** state)
{
	(void)state;
	hydns_thread_context(NULL);
	slabhash_delete(env.msg_cache);
	rrset_cache_delete(env.rrset_cache);
	alloc_clear(&alloc);
	config_delete(env.cfg);
	regional_destroy(region);
	return 0;
}

/* An RRset www.example A with one address, as it comes from a reply: its TTL is relative. */
static struct ub_packed_rrset_key* rrset(uint8_t address, time_t ttl, enum sec_status security)
{
	struct ub_packed_rrset_key* k = regional_alloc_zero(region, sizeof(*k));
	struct packed_rrset_data* d = regional_alloc_zero(region, sizeof(*d) + sizeof(size_t) + sizeof(uint8_t*) +
		sizeof(time_t) + 6);

	d->count = 1;
	d->ttl = ttl;
	d->trust = security == sec_status_secure ? rrset_trust_validated : rrset_trust_ans_AA;
	d->security = security;
	d->rr_len = (size_t*)(d + 1);
	d->rr_len[0] = 6;
	packed_rrset_ptr_fixup(d);
	d->rr_ttl[0] = ttl;
	memcpy(d->rr_data[0], (uint8_t[]){ 0, 4, 192, 0, 2, address }, 6);
	k->rk.dname = regional_alloc_init(region, WWW, sizeof(WWW));
	k->rk.dname_len = sizeof(WWW);
	k->rk.type = htons(LDNS_RR_TYPE_A);
	k->rk.rrset_class = htons(LDNS_RR_CLASS_IN);
	k->entry.key = k;
	k->entry.data = d;
	k->entry.hash = rrset_key_hash(&k->rk);
	return k;
}

static void store(uint8_t address, time_t ttl, enum sec_status security)
{
	struct ub_packed_rrset_key* k = packed_rrset_copy_alloc(rrset(address, ttl, security), &alloc, now);
	struct rrset_ref ref = { .key = k, .id = k->id };

	rrset_cache_update(env.rrset_cache, &ref, &alloc, now);
}

static void assert_told_of_end(time_t was, time_t is)
{
	assert_int_equal(told.changes, 0);
	assert_int_equal(told.ttl_updates, 1);
	assert_memory_equal(told.name, WWW, sizeof(WWW));
	assert_int_equal(told.was, NOW + was);
	assert_int_equal(told.is, NOW + is);
}

static void assert_told_of_change(void)
{
	assert_int_equal(told.changes, 1);
	assert_int_equal(told.ttl_updates, 0);
	assert_memory_equal(told.name, WWW, sizeof(WWW));
}

static void assert_told_nothing(void)
{
	assert_int_equal(told.changes, 0);
	assert_int_equal(told.ttl_updates, 0);
}

static void new_data_are_told(void** state)
{
	(void)state;
	store(1, 300, sec_status_unchecked);
	assert_told_nothing();
	store(2, 300, sec_status_unchecked);
	assert_told_of_change();
}

static void same_data_with_another_end_are_told(void** state)
{
	(void)state;
	store(1, 300, sec_status_unchecked);
	store(1, 230, sec_status_secure);
	assert_told_of_end(300, 230);
}

static void what_stays_is_not_told(void** state)
{
	(void)state;
	store(1, 300, sec_status_unchecked);
	store(1, 300, sec_status_secure);
	store(1, 400, sec_status_unchecked);
	assert_told_nothing();
}

/* The validator has worked on a copy that somebody fetched earlier. */
static void validation_that_moves_the_end_is_told(void** state)
{
	(void)state;
	store(1, 300, sec_status_unchecked);
	rrset_update_sec_status(env.rrset_cache, rrset(1, 230, sec_status_secure), now);
	assert_told_of_end(300, 230);
}

static void validation_in_time_is_not_told(void** state)
{
	(void)state;
	store(1, 300, sec_status_unchecked);
	rrset_update_sec_status(env.rrset_cache, rrset(1, 300, sec_status_secure), now);
	rrset_update_sec_status(env.rrset_cache, rrset(1, 200, sec_status_secure), now);
	rrset_update_sec_status(env.rrset_cache, rrset(2, 200, sec_status_secure), now);
	assert_told_nothing();
}

static void other_fetched(void)
{
	store(1, 300, sec_status_secure);
}

static void other_changed(void)
{
	store(2, 300, sec_status_unchecked);
}

static void rrset_that_came_meanwhile_is_told(void** state)
{
	(void)state;
	meanwhile = other_fetched;
	store(1, 230, sec_status_unchecked);
	assert_told_of_end(300, 230);
}

static void data_that_came_meanwhile_are_told(void** state)
{
	(void)state;
	store(1, 100, sec_status_unchecked);
	meanwhile = other_changed;
	store(1, 100, sec_status_secure);
	assert_told_of_change();
}

/* A message about www.example: of the RRset in the cache when that is wanted, else empty. */
static void store_message(uint16_t flags, size_t rrsets, time_t ttl, enum sec_status security)
{
	struct query_info q = {
		.qname = memdup(WWW, sizeof(WWW)), .qname_len = sizeof(WWW), .qtype = LDNS_RR_TYPE_A,
		.qclass = LDNS_RR_CLASS_IN,
	};
	struct reply_info* rep = construct_reply_info_base(region, flags, 1, ttl, 0, 0, 0, rrsets, 0, 0, rrsets,
		security, LDNS_EDE_NONE);

	if(rrsets)
		rep->rrsets[0] = rrset(1, 300, sec_status_unchecked);
	dns_cache_store_msg(&env, &q, query_info_hash(&q, 0), reply_info_copy(rep, &alloc, NULL), 0, 0, NULL, 0, NULL, now);
	free(q.qname);      /* NULL when the cache has it */
}

static void other_message(void)
{
	store_message(BIT_QR | LDNS_RCODE_NXDOMAIN, 0, 300, sec_status_unchecked);
}

static void another_message_is_told(void** state)
{
	(void)state;
	store_message(BIT_QR, 1, 300, sec_status_unchecked);
	store_message(BIT_QR, 1, 300, sec_status_unchecked);
	assert_told_nothing();
	store_message(BIT_QR | LDNS_RCODE_NXDOMAIN, 0, 300, sec_status_unchecked);
	assert_told_of_change();
}

static void message_that_came_meanwhile_is_told(void** state)
{
	(void)state;
	meanwhile = other_message;
	store_message(BIT_QR, 0, 300, sec_status_unchecked);
	assert_told_of_change();
}

/* Every resolution stores its message first as unchecked, then with the verdict. */
static void bogus_message_is_told(void** state)
{
	(void)state;
	store_message(BIT_QR, 1, 300, sec_status_unchecked);
	store_message(BIT_QR, 1, 300, sec_status_secure);
	store_message(BIT_QR, 1, 300, sec_status_unchecked);
	assert_told_nothing();
	store_message(BIT_QR, 1, 300, sec_status_bogus);
	assert_told_of_change();
}

/* The kernel may have the failure that everybody got in its place, and no record of the answer. */
static void message_that_is_no_longer_bogus_is_told(void** state)
{
	(void)state;
	store_message(BIT_QR, 1, 300, sec_status_bogus);
	memset(&told, 0, sizeof(told));
	store_message(BIT_QR, 1, 300, sec_status_bogus);
	assert_told_nothing();
	store_message(BIT_QR, 1, 300, sec_status_unchecked);
	assert_told_of_change();
}

/* It takes the cached message away. */
static void message_with_ttl_0_is_told(void** state)
{
	(void)state;
	store_message(BIT_QR, 0, 0, sec_status_unchecked);
	assert_told_of_change();
}

/* Data of a later store may stand where former data stood. */
static void what_was_stored_is_compared_once(void** state)
{
	struct ub_packed_rrset_key* former = rrset(1, 300, sec_status_unchecked);
	struct ub_packed_rrset_key* new = rrset(2, 300, sec_status_unchecked);

	(void)state;
	hydns_rrset_begin((struct packed_rrset_data*)new->entry.data);
	hydns_change_end();
	hydns_entry_replaced(&former->entry, new->entry.data);
	hydns_entry_replaced(&former->entry, NULL);
	hydns_change_end();
	assert_told_nothing();
}

static void without_a_context_nothing_is_told(void** state)
{
	(void)state;
	hydns_thread_context(NULL);
	store(1, 300, sec_status_unchecked);
	store(2, 300, sec_status_unchecked);
	rrset_update_sec_status(env.rrset_cache, rrset(2, 230, sec_status_secure), now);
	store_message(BIT_QR, 0, 300, sec_status_unchecked);
	store_message(BIT_QR | LDNS_RCODE_NXDOMAIN, 0, 300, sec_status_unchecked);
	assert_told_nothing();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(new_data_are_told),
		TEST(same_data_with_another_end_are_told),
		TEST(what_stays_is_not_told),
		TEST(validation_that_moves_the_end_is_told),
		TEST(validation_in_time_is_not_told),
		TEST(rrset_that_came_meanwhile_is_told),
		TEST(data_that_came_meanwhile_are_told),
		TEST(another_message_is_told),
		TEST(message_that_came_meanwhile_is_told),
		TEST(bogus_message_is_told), TEST(message_that_is_no_longer_bogus_is_told),
		TEST(message_with_ttl_0_is_told),
		TEST(what_was_stored_is_compared_once),
		TEST(without_a_context_nothing_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
