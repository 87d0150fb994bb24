/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "config.h"

#include "hydnsd/control/report.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hydns/abi.h"
#include "hydns/dns.h"
#include "hydnsd/control/activity.h"
#include "hydnsd/control/composed.h"
#include "hydnsd/control/forwards.h"
#include "hydnsd/control/guarded.h"
#include "hydnsd/control/monitored.h"
#include "hydnsd/control/pending.h"
#include "hydnsd/netdev/addresses.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/resolvers/counts.h"
#include "hydnsd/resolvers/lanes.h"
#include "hydnsd/resolvers/other_abi.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/withdrawals.h"
#include "hydnsd/netdev/interfaces.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/daemon/pause.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/resolvers/session.h"
#include "hydnsd/netdev/sources.h"
#include "hydnsd/control/text.h"


static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)n);
}

/* -- status -------------------------------------------------------------------------------------------- */
static json_t *interfaces(struct hydnsd *d)
{
	static const char *const modes[] = {
		[HYDNS_ATTACH_NATIVE] = "native", [HYDNS_ATTACH_GENERIC] = "generic",
		[HYDNS_ATTACH_DISPATCHER] = "dispatcher",
	};
	json_t *list = json_array();
	struct hydnsd_interface_state l;

	for (uint32_t i = 0; hydnsd_interfaces_get(d, i, &l); i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s, s:s}", "name", l.name, "mode",
			modes[d->options.attach_mode], "attached", (int)l.attached, "note", l.note, "no_rings",
			hydnsd_lane_devices_unfit(&d->lanes->devices, l.index)));
	return list;
}

static json_t *sources(struct hydnsd *d)
{
	json_t *list = json_array();
	struct hydnsd_sources_state s;

	for (uint32_t i = 0; hydnsd_sources_get(d, i, &s); i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i, s:s, s:s}", "family", s.family, "rp_filter",
			s.rp_filter, "routes", (int)s.routes, "prefixes", (int)s.prefixes, "note", s.note, "mend", s.mend));
	return list;
}

struct service_filter {
	json_t *list;
	uint32_t resolver;
};

static json_t *service_text(const struct hydns_service_key *key)
{
	char text[HYDNSD_SERVICE_TEXT];

	return json_string(hydnsd_service_text(key, text));
}

static void add_service(const struct hydns_service_key *key, uint32_t resolver, void *arg)
{
	struct service_filter *f = arg;

	if (resolver == f->resolver)
		json_array_append_new(f->list, service_text(key));
}

static void add_missing(const struct hydns_service_key *key, const char *why, void *list)
{
	json_array_append_new(list, json_pack("{s:o, s:s}", "service",
		key->port ? service_text(key) : json_string("a socket"), "why", why));
}

/* The program sees no queries of this host itself. */
static bool is_this_host(const struct hydnsd *d, const struct hydns_acl_entry *e)
{
	static const uint8_t loopback[13] = { [10] = 0xff, [11] = 0xff, [12] = 127 };

	return (e->prefixlen >= 104 && memcmp(e->addr, loopback, sizeof(loopback)) == 0) ||
	       (e->prefixlen == 128 && hydnsd_addresses_have(d, e->addr));
}

static int clients_allowed(const struct hydnsd *d, const struct hydnsd_resolver *a)
{
	int allowed = 0;

	for (uint32_t i = 0; i < a->acl_count; i++)
		allowed += a->acl[i].action != HYDNS_ACL_PASS && !is_this_host(d, &a->acl[i]);
	return allowed;
}

/* Notes of one kind; HYDNS_NOTES: all. */
static json_t *notes(const struct hydnsd_resolver *a, enum hydns_note_kind kind)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < a->note_count; i++)
		if (kind == HYDNS_NOTES || a->note[i].kind == kind)
			json_array_append_new(list, json_string(a->note[i].text));
	return list;
}

/* JSON's integers are signed, and a plugin may have written anything. */
static json_t *said(uint64_t n)
{
	return number(n & INT64_MAX);
}

static json_t *lane(struct hydnsd *d, const struct hydnsd_lane *l)
{
	const struct hydnsd_lane_device *device = hydnsd_lane_devices_find(&d->lanes->devices, l->key.ifindex);
	struct hydns_lane_level level;

	hydnsd_session_lane_level(d, d->resolver[l->record.resolver].session, l->record.number, &level);
	return json_pack("{s:s, s:i, s:i, s:i, s:b, s:o, s:o, s:o, s:o}",
		"interface", device ? device->name : "", "queue", (int)l->key.queue, "number", l->record.number,
		"threads", l->record.threads, "open", l->state == HYDNSD_LANE_OPEN, "waiting", said(level.waiting),
		"unsent", said(level.unsent), "free", said(level.free), "dropped", said(level.dropped));
}

static json_t *lanes(struct hydnsd *d, uint32_t i)
{
	json_t *list = json_array();

	for (const struct hydnsd_lane *l = d->lanes->lane; l < d->lanes->lane + HYDNS_LANES; l++)
		if (l->record.resolver == i && (l->state == HYDNSD_LANE_GIVEN || l->state == HYDNSD_LANE_OPEN))
			json_array_append_new(list, lane(d, l));
	return list;
}

/* Logged answers. */
static const char *log_mode(const struct hydns_resolver_config *c)
{
	return !(c->flags & HYDNS_RESOLVER_LOGS) ? "no" : c->flags & HYDNS_RESOLVER_LOGS_ALL ? "complete" : "sample";
}

static json_t *log_state(struct hydnsd *d, uint32_t i)
{
	const struct hydns_resolver_config *c = &d->resolver[i].config;
	struct hydns_tap_level level;

	hydnsd_session_log_level(d, d->resolver[i].session, &level);
	return json_pack("{s:s, s:o, s:b}", "mode", log_mode(c), "one_in", said(c->log_one_in ? c->log_one_in : 1),
			 "connected", level.connected != 0);
}

static json_t *log_counts(struct hydnsd *d, uint32_t i)
{
	struct hydns_log_count n = { 0 };
	struct hydns_tap_level level;

	hydns_kern_log_counts(d->kern, i, &n);
	hydnsd_session_log_level(d, d->resolver[i].session, &level);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "logged", number(n.logged), "skipped", number(n.skipped), "lost", number(n.lost),
			 "written", said(level.written), "own", said(level.own), "failures", said(level.failures));
}

static json_t *limits(struct hydnsd *d, uint32_t i)
{
	const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, i);
	struct hydns_limits l = { 0 };

	if (page && (d->resolver[i].config.flags & HYDNS_RESOLVER_LIMITS))
		l = (struct hydns_limits){ page->limits.queries, page->limits.with_cookie, page->limits.slip, page->limits.backoff };
	return json_pack("{s:o, s:o, s:o, s:b}", "queries", number(l.queries), "with_cookie", number(l.with_cookie),
			 "slip", number(l.slip), "backoff", l.backoff != 0);
}

static json_t *rates(struct hydnsd *d, uint32_t i)
{
	const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, i);
	struct hydns_rates r = { 0 };

	if (page && (d->resolver[i].config.flags & HYDNS_RESOLVER_RATES))
		r = page->rates;
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:i, s:i}",
		"responses", r.most[HYDNS_RATE_ANSWER], "nodata", r.most[HYDNS_RATE_NODATA], "nxdomains", r.most[HYDNS_RATE_NXDOMAIN],
		"referrals", r.most[HYDNS_RATE_REFERRAL], "errors", r.most[HYDNS_RATE_ERROR], "all", r.most[HYDNS_RATE_ALL],
		"window", r.window, "slip", r.slip, "log_only", (r.flags & HYDNS_RATES_LOG_ONLY) != 0,
		"log_drops", (r.flags & HYDNS_RATES_LOG_DROPS) != 0, "ipv4_prefix", r.ipv4_prefix, "ipv6_prefix", r.ipv6_prefix);
}

static json_t *stale(struct hydnsd *d, uint32_t i)
{
	const struct hydnsd_resolver *a = &d->resolver[i];
	bool serving = a->state == HYDNSD_RESOLVER_STALE;

	return json_pack("{s:b, s:o, s:i, s:i, s:o}", "serving", (int)serving,
		"since_ms", number(serving ? hydnsd_now_ms() - a->stale_since_ms : 0), "ttl", (int)a->hello.stale_ttl,
		"longest", (int)a->hello.stale_longest, "replies", number(hydnsd_rules_stale_replies(d->rules, i)));
}

static json_t *resolver_status(struct hydnsd *d, uint32_t i)
{
	const struct hydnsd_resolver *a = &d->resolver[i];
	uint64_t age = hydnsd_resolver_age(d, i);
	struct service_filter services = { json_array(), i };
	json_t *missing = json_array();
	struct hydns_queue_count queued;
	struct hydns_counts counts;

	hydnsd_rules_counts(d->rules, i, &counts);
	hydnsd_resolver_queued(d, i, &queued);
	hydnsd_services_each(d, add_service, &services);
	hydnsd_services_missing(d, i, add_missing, missing);
	return json_pack("{s:i, s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"authority", (int)i, "identity", a->hello.identity, "version", a->hello.version,
		"pid", (int)a->hello.pid, "state", hydnsd_resolver_state_name(d, i),
		"rules", number(counts.rules), "preloaded", number(hydnsd_rules_kept(d->rules, i)), "epoch", number(hydnsd_resolver_epoch(d, i)),
		"heartbeat_age_ms", age == UINT64_MAX ? json_null() : number(age / HYDNS_NS_PER_MS),
		"services", services.list, "missing", missing, "acl_entries", (int)a->acl_count,
		"clients_allowed", clients_allowed(d, a), "lanes", lanes(d, i),
		"rings_full", number(queued.full), "no_rings", hydnsd_lanes_why_none(d, i),
		"no_upstream_rings", d->lanes->no_upstream[i], "parking", hydnsd_pending_limits(d, i),
		"forwarding", hydnsd_forwards_state(d, i), "log", log_state(d, i),
		"limits", limits(d, i), "rates", rates(d, i), "stale", stale(d, i), "notes", notes(a, HYDNS_NOTES),
		"obstacles", notes(a, HYDNS_NOTE_OBSTACLE));
}

static json_t *each_resolver(struct hydnsd *d, json_t *(*one)(struct hydnsd *, uint32_t))
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		if (d->resolver[i].state != HYDNSD_RESOLVER_FREE &&
		    d->resolver[i].state != HYDNSD_RESOLVER_CLOSING)
			json_array_append_new(list, one(d, i));
	return list;
}

static json_t *plugin_sockets(const struct hydnsd *d)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < d->options.plugin_socket.count; i++)
		json_array_append_new(list, json_string(d->options.plugin_socket.item[i]));
	return list;
}

static json_t *other_versions(const struct hydnsd *d)
{
	const struct hydnsd_other_abi *o;
	json_t *list = json_array();
	uint32_t at = 0;

	while ((o = hydnsd_other_abi_next(d, &at)))
		json_array_append_new(list, json_pack("{s:i, s:s, s:i}", "pid", (int)o->pid, "process", o->process, "abi", (int)o->version));
	return list;
}

json_t *hydnsd_report_status(struct hydnsd *d)
{
	__u64 bytes = 0;
	bool paused = false;

	hydns_kern_memory(d->kern, &bytes);
	hydns_kern_paused(d->kern, &paused);
	return json_pack("{s:s, s:i, s:i, s:s, s:o, s:b, s:b, s:b, s:b, s:b, s:b, s:o, s:o, s:o, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:i, s:i, s:i, s:o, s:o, s:o}",
		"version", PACKAGE_VERSION, "abi", hydns_abi_version(), "pid", (int)getpid(), "config", d->options.config,
		"uptime_s", number((hydnsd_now_ns() - d->started_ns) / HYDNS_NS_PER_S),
		"paused", (int)paused, "paused_kept", (int)hydns_pause_is_recorded(d->options.state_dir), "adopted", (int)d->adopted,
		"ipv6", (int)d->with.ipv6, "vlan", (int)d->with.vlan,
		"routed", (int)d->with.fib, "interfaces", interfaces(d),
		"sources", sources(d), "plugin_sockets", plugin_sockets(d),
		"capacity", (int)d->options.capacity, "fitting", (int)hydnsd_rules_fitting(d->rules),
		"rules", (int)hydns_store_count(hydnsd_rules_store(d->rules)),
		"limbo", (int)hydnsd_rules_retired(d->rules),
		"slot_bytes", number(hydns_store_slot_bytes(hydnsd_rules_store(d->rules))), "memory_bytes", number(bytes),
		"daemon_bytes", number(hydnsd_rules_bytes(d->rules) + hydnsd_missing_bytes() + hydnsd_pending_bytes(d)),
		"plugin_connections", (int)hydnsd_sessions_count(d),
		"plugin_connections_most", (int)d->options.plugin_connections, "pending_max", (int)d->options.pending_max,
		"composition", hydnsd_composed(d), "resolvers", each_resolver(d, resolver_status),
		"other_versions", other_versions(d));
}

/* -- stats --------------------------------------------------------------------------------------------- */
static json_t *reasons_object(const uint64_t *reasons)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < HYDNS_REASONS; i++)
		json_object_set_new(o, hydns_reason_name((enum hydns_reason)i), number(reasons[i]));
	return o;
}

static uint64_t passed(const uint64_t *reasons)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < HYDNS_REASONS; i++)
		if (hydns_reason_passes((enum hydns_reason)i))
			sum += reasons[i];
	return sum;
}

static json_t *rejections_object(const struct hydnsd *d)
{
	json_t *o = json_object();

	for (unsigned i = HYDNSD_ACCEPTED + 1; i < HYDNSD_REJECTIONS; i++)
		json_object_set_new(o, hydnsd_rejection_name((enum hydnsd_rejection)i),
				    number(d->rejected[i]));
	return o;
}

static struct hydnsd_histogram took(const struct hydns_queue_counts *c)
{
	struct hydnsd_histogram h = { .sum_s = (double)c->took_us * HYDNS_NS_PER_US / HYDNS_NS_PER_S };

	for (unsigned i = 0; i < HYDNS_WAITS; i++)
		h.count[i] = c->took[i];
	return h;
}

static json_t *packet_rings(const struct hydns_queue_counts *c, const struct hydns_queue_count *given)
{
	const struct hydnsd_histogram h = took(c);
	json_t *detours = json_object();

	for (unsigned i = 0; i < HYDNS_DETOURS; i++)
		json_object_set_new(detours, hydns_detour_name(i), said(c->detour[i]));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"queries", number(given->queries), "answers", number(given->answers), "full", number(given->full),
		"received", said(c->received), "received_answers", said(c->answers), "sent", said(c->sent),
		"sent_upstream", said(c->upstream), "strays", said(c->strays), "bad", said(c->bad), "wakeups", said(c->wakeups),
		"took", hydnsd_report_histogram(&h, HYDNSD_SCALE_WAIT), "detours", detours);
}

json_t *hydnsd_report_histogram(const struct hydnsd_histogram *h, enum hydnsd_scale scale)
{
	json_t *counts = json_object();

	for (unsigned i = 0; i < HYDNSD_BUCKETS; i++)
		json_object_set_new(counts, hydnsd_histogram_bound(scale, i), said(h->count[i]));
	return json_pack("{s:o, s:f}", "counts", counts, "sum_s", h->sum_s);
}

static json_t *resolver_stats(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_ring_counts rings;
	struct hydns_queue_count queued;
	struct hydns_counts c;

	hydnsd_resolver_queued(d, i, &queued);
	hydnsd_resolver_counts_swept(d, i, &c);
	hydnsd_session_ring_counts(d, d->resolver[i].session, &rings);
	return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"authority", (int)i, "identity", d->resolver[i].hello.identity,
		"answered", number(c.answered), "ipv6", number(c.ipv6), "edns", number(c.edns),
		"edns_do", number(c.edns_do), "ad", number(c.ad), "secure", number(c.secure),
		"cookie_valid", number(c.cookie_valid), "cookie_client", number(c.cookie_client),
		"cookie_invalid", number(c.cookie_invalid), "limited", number(c.limited), "slipped", number(c.slipped),
		"rules", number(c.rules), "octets", number(c.octets),
		"noerror", number(c.rcode[0]), "nxdomain", number(c.rcode[3]),
		"queries_seen", said(rings.queries), "offered", said(rings.offered), "dropped_offers", said(rings.dropped),
		"answer_age", hydnsd_report_histogram(hydnsd_rules_ages(d->rules, i), HYDNSD_SCALE_AGE),
		"parking", hydnsd_pending_counts(d, i), "forwarding", hydnsd_forwards_counts(d, i), "packet_rings", packet_rings(&rings.packet_rings, &queued),
		"log", log_counts(d, i));
}

/* How often clients came up against each bound, by the name of its option. */
static json_t *bounds_object(const struct hydnsd *d)
{
	const struct hydnsd_bound_counts *r = &d->bound_counts;

	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "plugin-connections", number(r->plugin_connections),
		"plugin-connections-per-user", number(r->plugin_connections_per_user),
		"plugin-requests", number(r->plugin_requests), "plugin-rate", number(r->plugin_rate),
		"plugin-log-rate", number(hydnsd_log_left_out()));
}

json_t *hydnsd_report_stats(struct hydnsd *d, bool now)
{
	const struct hydnsd_rules_counters *c = hydnsd_rules_counters(d->rules);
	uint64_t reasons[HYDNS_REASONS] = { 0 };
	json_t *offers;

	hydns_kern_stats(d->kern, (__u64 *)reasons);
	if (now)
		hydnsd_rules_sweep_of(d->rules, HYDNSD_ANY_RESOLVER, hydnsd_now_ns());
	offers = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "received", number(d->offers_received),
		"admitted", number(c->admitted), "replaced", number(c->replaced),
		"evicted", number(c->evicted), "changed", number(d->changed),
		"rejected", rejections_object(d));
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "reasons", reasons_object(reasons),
		"answered", number(reasons[HYDNS_R_ANSWERED]), "passed", number(passed(reasons)),
		"offers", offers, "expired", number(c->expired), "withdrawn", number(c->withdrawn),
		"renewed", number(c->renewed), "dropped_sessions", number(d->sessions_dropped),
		"held_back", number(d->bound_counts.plugin_requests + d->bound_counts.plugin_rate),
		"bounds", bounds_object(d), "stale_replies", number(c->stale_replies), "withdrawals_waiting", number(hydnsd_withdrawals_waiting(d->withdrawals)),
		"resolvers", each_resolver(d, resolver_stats), "monitor", hydnsd_monitored(d),
		"guard", hydnsd_guard_figures(d));
}

/* -- rules --------------------------------------------------------------------------------------------- */
json_t *hydnsd_report_rule(struct hydnsd *d, uint32_t handle)
{
	const struct hydns_rule *r = hydns_store_rule(hydnsd_rules_store(d->rules), handle);
	char name[HYDNSD_NAME_TEXT], type[HYDNSD_TYPE_TEXT];
	int64_t left = (int64_t)(r->base_ns / HYDNS_NS_PER_MS + r->expire_ms) - (int64_t)hydnsd_now_ms();

	return json_pack("{s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:f, s:i, s:i, s:b}",
		"name", hydnsd_name_text(hydns_rule_name(r), r->name_len, name),
		"type", hydnsd_type_text(ntohs(r->qtype), type), "variant", (int)r->variant & HYDNS_VARIANTS,
		"authority", (int)r->resolver, "ttl", number(r->expire_ms / 1000),
		"expires_in_ms", json_integer(left > 0 ? left : 0),
		"hits", number(hydns_store_hits(hydnsd_rules_store(d->rules), handle)),
		"rate", (double)hydnsd_rules_rate(d->rules, handle) / 1e6,
		"size", HYDNSD_HEADER + r->name_len + 4 + r->answer_len,
		"rcode", ntohs(r->reply_flags) & HYDNS_FLAGS_RCODE, "secure", r->flags & HYDNS_RULE_SECURE);
}

/* The hottest rules so far are a heap with the coldest at its root. */
static void sift_down(struct hydnsd_ranked *heap, uint32_t count, uint32_t at)
{
	for (;;) {
		uint32_t child = 2 * at + 1;
		struct hydnsd_ranked hold = heap[at];

		if (child >= count)
			return;
		if (child + 1 < count && heap[child + 1].rate < heap[child].rate)
			child++;
		if (heap[child].rate >= hold.rate)
			return;
		heap[at] = heap[child];
		heap[child] = hold;
		at = child;
	}
}

static int hotter_first(const void *a, const void *b)
{
	uint64_t x = ((const struct hydnsd_ranked *)a)->rate, y = ((const struct hydnsd_ranked *)b)->rate;

	return x < y ? 1 : x > y ? -1 : 0;
}

uint32_t hydnsd_report_hottest(struct hydnsd *d, struct hydnsd_ranked *heap, uint32_t limit, int resolver)
{
	struct hydns_store *s = hydnsd_rules_store(d->rules);
	uint32_t count = 0;

	for (uint32_t h = hydns_store_next(s, 0); h; h = hydns_store_next(s, h)) {
		struct hydnsd_ranked r = { hydnsd_rules_rate(d->rules, h), h };

		if (resolver >= 0 && hydns_store_rule(s, h)->resolver != resolver)
			continue;
		if (count < limit) {
			heap[count++] = r;
			if (count == limit)
				for (uint32_t i = limit / 2 + 1; i-- > 0; )
					sift_down(heap, count, i);
		} else if (limit && r.rate > heap[0].rate) {
			heap[0] = r;
			sift_down(heap, count, 0);
		}
	}
	qsort(heap, count, sizeof(*heap), hotter_first);
	return count;
}

static json_t *hottest_rules(struct hydnsd *d, uint32_t limit, int resolver)
{
	struct hydnsd_ranked *heap = calloc(limit + 1, sizeof(*heap));
	json_t *list = json_array();
	uint32_t count = heap ? hydnsd_report_hottest(d, heap, limit, resolver) : 0;

	for (uint32_t i = 0; i < count; i++)
		json_array_append_new(list, hydnsd_report_rule(d, heap[i].handle));
	free(heap);
	return list;
}

json_t *hydnsd_report_rules(struct hydnsd *d, uint32_t limit, int resolver)
{
	return json_pack("{s:o}", "rules", hottest_rules(d, limit, resolver));
}
