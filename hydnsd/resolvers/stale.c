/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/stale.h"

#include <arpa/inet.h>
#include <string.h>

#include "hydns/dns.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/daemon.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/resolvers/configuration.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/services.h"
#include "hydnsd/resolvers/withdrawals.h"

/* As long as a heartbeat counts, so that the rules of a crashed resolver outlive hydnsd no longer than the resolver. */
#define LEASE_NS HYDNS_HEARTBEAT_STALE_NS

/* Why its rules must go although its configuration wants stale answers; NULL: they need not. */
static const char *obstacle(const struct hydnsd *d, uint32_t i)
{
	const struct hydnsd_resolver *r = &d->resolver[i];

	if (!r->live)
		return "its configuration was not complete";
	if (!r->all_read)
		return "hydnsd has not read all that it had said";
	if (r->config.flags & HYDNS_RESOLVER_ACCOUNTS)
		return "it logs or limits its clients, which nobody does now";
	if (hydnsd_resolver_suspended(d, i))
		return "some of its rules waited for hydnsd";
	if (!hydnsd_rules_of(d->rules, i))
		return "it has no rules";
	return NULL;
}

/* An EDNS option (RFC 8914): code, length, code of the error, text. */
static void write_error(const struct hydns_hello *h, struct hydnsd_stale_terms *t)
{
	uint16_t len = (uint16_t)strlen(h->stale_text);
	const uint16_t head[] = { htons(HYDNS_OPTION_ERROR), htons((uint16_t)(2 + len)), htons(HYDNS_ERROR_STALE_ANSWER) };

	_Static_assert(sizeof(head) + HYDNS_STALE_TEXT_LEN <= HYDNSD_STALE_ERROR_MOST, "room for the text");
	if (!h->stale_error)
		return;
	memcpy(t->error, head, sizeof(head));
	memcpy(t->error + sizeof(head), h->stale_text, len);
	t->error_len = (uint16_t)(sizeof(head) + len);
}

static void lend(struct hydnsd *d, uint32_t i)
{
	d->resolver[i].config.stale_until_ns = hydnsd_now_ns() + LEASE_NS;
	hydnsd_configuration_write(d, i, false);
}

/* The rules that do not outlive the resolver answer until they are withdrawn, in some milliseconds, as before its end. */
static bool withdraw_others(struct hydnsd *d, uint32_t i)
{
	const struct hydnsd_withdrawal_end nobody = { .done = NULL };
	const struct hydnsd_withdrawal w = {
		.resolver = i, .scope = HYDNS_SCOPE_ALL, .keep_epoch = hydnsd_resolver_epoch(d, i), .keep_stale = true,
	};

	return !hydnsd_withdrawals_begin(d, &w, 1, &nobody);
}

bool hydnsd_stale_begin(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	struct hydnsd_stale_terms terms = { .ttl = r->hello.stale_ttl, .longest = r->hello.stale_longest };
	const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, i);
	const char *why;

	/* a resolver that stops in order zeroes the heartbeat */
	if (!terms.longest || !page || !page->heartbeat_ns)
		return false;
	why = obstacle(d, i);
	if (why) {
		hydnsd_log_client(HYDNSD_LOG_WARNING, "resolver %u (%s) has crashed, and there are no stale answers: %s", i,
				  r->hello.identity, why);
		return false;
	}
	write_error(&r->hello, &terms);
	hydnsd_rules_stale_begin(d->rules, i, &terms);
	if (!withdraw_others(d, i)) {
		hydnsd_rules_stale_end(d->rules, i);
		return false;
	}
	r->state = HYDNSD_RESOLVER_STALE;
	r->stale_since_ms = hydnsd_now_ms();
	hydnsd_services_sync(d);
	lend(d, i);
	hydnsd_log(HYDNSD_LOG_WARNING, "resolver %u (%s, process %u) has crashed: its %u rules go on, with TTL %u once their own "
		   "is over and for %u s from then, until a process listens at its address again: start the resolver", i,
		   r->hello.identity, r->hello.pid, hydnsd_rules_of(d->rules, i), terms.ttl, terms.longest);
	return true;
}

void hydnsd_stale_tick(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	struct hydns_resolver_config c = r->config;

	if (!hydns_kern_resolver_config_get(d->kern, i, &c) && !c.stale_until_ns)
		hydnsd_resolver_release(d, i, "a process listens at its address again");
	else if (!hydnsd_rules_of(d->rules, i))
		hydnsd_resolver_release(d, i, "its last rule has ended");
	else if (hydnsd_now_ns() + LEASE_NS / 2 > c.stale_until_ns)
		lend(d, i);
}

void hydnsd_stale_end(struct hydnsd *d, uint32_t i, const char *cause)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	uint64_t ms = hydnsd_now_ms() - r->stale_since_ms;

	hydnsd_rules_sweep_of(d->rules, i, hydnsd_now_ns());
	r->config.stale_until_ns = 0;
	hydnsd_log(HYDNSD_LOG_WARNING, "stale answers of resolver %u (%s) end after %llu.%llu s and %llu stale replies: %s", i,
		   r->hello.identity, (unsigned long long)ms / 1000, (unsigned long long)ms / 100 % 10,
		   (unsigned long long)hydnsd_rules_stale_replies(d->rules, i), cause);
}
