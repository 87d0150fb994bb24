/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/resolver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hydns/clients.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/daemon.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/sources.h"
#include "hydnsd/resolvers/cookies.h"
#include "hydnsd/resolvers/counts.h"
#include "hydnsd/resolvers/withdrawals.h"
#include "hydnsd/resolvers/services.h"

#define SESSION_SHIFT 16               /* first epoch = session << 16; 14 bits are left for the session */

static uint32_t page_epoch(const struct hydnsd *d, uint32_t i)
{
	const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, i);

	return page ? page->epoch : 0;
}

uint32_t hydnsd_resolver_epoch(const struct hydnsd *d, uint32_t i)
{
	return page_epoch(d, i) & ~HYDNS_EPOCH_FLAGS;
}

bool hydnsd_resolver_suspended(const struct hydnsd *d, uint32_t i)
{
	return page_epoch(d, i) & HYDNS_EPOCH_FLAGS;
}

static bool marked(const volatile struct hydns_resolver_page *page, const struct hydns_rule *rule)
{
	for (unsigned n = 0; n < rule->place_count; n++) {
		__u16 place = hydns_rule_place(rule, n);

		if (page->marks[place / 64] >> place % 64 & 1)
			return true;
	}
	return rule->place_count == 0;
}

bool hydnsd_resolver_suspends(const struct hydnsd *d, const struct hydns_rule *rule)
{
	uint32_t epoch = page_epoch(d, rule->resolver);

	return epoch & HYDNS_EPOCH_SUSPENDED ||
	       (epoch & HYDNS_EPOCH_MARKED && marked(hydns_kern_page(d->kern, rule->resolver), rule));
}

/* Neither 0, which stands for none, nor one that looks suspended. */
static uint32_t first_epoch(struct hydnsd *d)
{
	uint32_t epoch;

	do {
		epoch = (hydns_kern_next_page_serial(d->kern) << SESSION_SHIFT) & ~HYDNS_EPOCH_FLAGS;
	} while (!epoch);
	return epoch;
}

uint64_t hydnsd_resolver_age(const struct hydnsd *d, uint32_t i)
{
	const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, i);
	uint64_t beat = page ? page->heartbeat_ns : 0, now = hydnsd_now_ns();

	if (!beat)
		return UINT64_MAX;
	return now > beat ? now - beat : 0;
}

static bool fresh(const struct hydnsd *d, uint32_t i)
{
	return hydnsd_resolver_age(d, i) < HYDNS_HEARTBEAT_STALE_NS;
}

static void forget_configuration(struct hydnsd_resolver *a)
{
	free(a->acl);
	free(a->sockets);
	free(a->refusals);
	for (uint32_t i = 0; i < a->note_count; i++)
		free(a->note[i].text);
	a->acl_stale = false;
	a->acl = NULL;
	a->sockets = NULL;
	a->refusals = NULL;
	a->acl_count = a->socket_count = a->refusal_count = a->note_count = 0;
}

static void write_config(struct hydnsd *d, uint32_t i, bool live)
{
	struct hydnsd_resolver *a = &d->resolver[i];
	int rc;

	a->live = live;
	a->config.flags = live ? a->config.flags | HYDNS_RESOLVER_READY :
				 a->config.flags & (uint16_t)~HYDNS_RESOLVER_READY;
	rc = hydns_kern_resolver_config(d->kern, i, &a->config);
	if (rc)
		hydnsd_log(HYDNSD_LOG_ERROR, "cannot write the configuration of resolver %u: %s", i,
			   strerror(-rc));
}

/* -- withdrawing a resolver's rules -------------------------------------------------------------------- */
static void withdraw_rules(struct hydnsd *d, uint32_t i, uint32_t keep_epoch,
			   const struct hydnsd_withdrawal_end *end)
{
	const struct hydnsd_withdrawal w = {
		.resolver = i, .scope = HYDNS_SCOPE_ALL, .keep_epoch = keep_epoch,
	};

	hydnsd_withdrawals_begin(d, &w, end);
}

static void closed(struct hydnsd *d, uint64_t client, uint32_t i, uint32_t withdrawn)
{
	(void)client;
	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %u is released; %u rules withdrawn", i, withdrawn);
	d->resolver[i] = (struct hydnsd_resolver){ .state = HYDNSD_RESOLVER_FREE };
}

void hydnsd_resolver_release(struct hydnsd *d, uint32_t i, const char *cause)
{
	const struct hydnsd_withdrawal_end end = { .done = closed, .tag = i };
	struct hydnsd_resolver *a = &d->resolver[i];

	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %u (%s) goes: %s", i, a->hello.identity, cause);
	a->state = HYDNSD_RESOLVER_CLOSING;
	a->session = 0;
	write_config(d, i, false);
	forget_configuration(a);
	hydnsd_services_sync(d);
	hydns_kern_page_delete(d->kern, i);
	hydnsd_cookies_wipe(d, i, false);
	withdraw_rules(d, i, 0, &end);
}

void hydnsd_resolver_adopt(struct hydnsd *d)
{
	const struct hydnsd_withdrawal_end end = { .done = closed }, nobody = { .done = NULL };

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydnsd_resolver *a = &d->resolver[i];
		const volatile struct hydns_resolver_page *page = hydns_kern_page(d->kern, i);
		struct hydnsd_withdrawal_end own = end;
		struct hydns_counts left;

		hydns_kern_resolver_config_get(d->kern, i, &a->config);
		a->live = a->config.flags & HYDNS_RESOLVER_READY;
		if (page) {
			a->state = HYDNSD_RESOLVER_DISCONNECTED;
			a->epoch_seen = hydnsd_resolver_epoch(d, i);
			withdraw_rules(d, i, a->epoch_seen, &nobody);
			continue;
		}
		if (a->live)
			write_config(d, i, false);
		hydnsd_cookies_wipe(d, i, true);
		hydnsd_rules_counts(d->rules, i, &left);
		if (!left.rules)
			continue;
		own.tag = i;
		a->state = HYDNSD_RESOLVER_CLOSING;
		withdraw_rules(d, i, 0, &own);
	}
}

/* -- a plugin comes ------------------------------------------------------------------------------------ */
static int find_free(struct hydnsd *d)
{
	for (int i = 0; i < HYDNS_RESOLVERS; i++)
		if (d->resolver[i].state == HYDNSD_RESOLVER_FREE)
			return i;
	return -ENOSPC;
}

/* Nobody may use up the indexes by connecting and leaving with a heart that goes on beating. */
static void release_an_orphan(struct hydnsd *d)
{
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		if (d->resolver[i].state == HYDNSD_RESOLVER_DISCONNECTED) {
			hydnsd_resolver_release(d, i, "its place is needed, and its plugin is not connected");
			return;
		}
}

static void take_hello(struct hydnsd_resolver *a, const struct hydns_hello *h)
{
	a->hello = *h;
	a->state = HYDNSD_RESOLVER_CONFIGURING;
	forget_configuration(a);
}

/* Nobody knows here what was withdrawn before this session began. An offer that lies in a ring since then, made before
 * the resolver's last change, may hold what is gone. */
static void discard_older(struct hydnsd_resolver *a, const volatile struct hydns_resolver_page *page)
{
	if (page->generation > a->min_generation)
		a->min_generation = page->generation;
}

/* The resolver that holds the page, or a negative errno. */
static int find_page(const struct hydnsd *d, int page_fd)
{
	int i = page_fd < 0 ? -ENOENT : hydns_kern_page_find(d->kern, page_fd);

	if (i < 0)
		return i;
	if (!hydns_kern_page(d->kern, (uint32_t)i) || d->resolver[i].state == HYDNSD_RESOLVER_CLOSING ||
	    d->resolver[i].state == HYDNSD_RESOLVER_FREE)
		return -ENOENT;
	return i;
}

uint64_t hydnsd_resolver_session(const struct hydnsd *d, int page_fd)
{
	int i = find_page(d, page_fd);

	return i < 0 ? 0 : d->resolver[i].session;
}

static int adopt_page(struct hydnsd *d, int page_fd, struct hydns_welcome *welcome)
{
	int i = find_page(d, page_fd);

	if (i < 0)
		return i;
	*welcome = (struct hydns_welcome){
		.resolver = (uint32_t)i, .epoch = hydnsd_resolver_epoch(d, (uint32_t)i), .adopted = 1,
	};
	discard_older(&d->resolver[i], hydns_kern_page(d->kern, (uint32_t)i));
	return i;
}

static int make_page(struct hydnsd *d, struct hydns_welcome *welcome, int *new_page, char *why,
		     size_t room)
{
	uint32_t epoch;
	int rc, i = find_free(d);

	if (i < 0) {
		release_an_orphan(d);
		snprintf(why, room, "all %d places for resolvers are taken: stop one, then try again",
			 HYDNS_RESOLVERS);
		return i;
	}
	hydnsd_cookies_wipe(d, (uint32_t)i, true); /* set numbers begin anew with the page */
	epoch = first_epoch(d);
	rc = hydns_kern_page_new(d->kern, (uint32_t)i, epoch, new_page, why);
	if (rc)
		return rc;
	*welcome = (struct hydns_welcome){ .resolver = (uint32_t)i, .epoch = epoch };
	d->resolver[i] = (struct hydnsd_resolver){ .epoch_seen = epoch };
	hydnsd_rules_counts_reset(d->rules, (uint32_t)i, hydnsd_now_ns());
	hydns_kern_resolver_counts(d->kern, (uint32_t)i, &hydns_kern_tallies(d->kern)->base[i]);
	return i;
}

int hydnsd_resolver_begin(struct hydnsd *d, uint64_t session, const struct hydns_hello *h,
			   int page_fd, struct hydns_welcome *welcome, int *new_page, char *why,
			   size_t room)
{
	struct hydnsd_resolver *a;
	int i = adopt_page(d, page_fd, welcome);

	*new_page = -1;
	if (i < 0)
		i = make_page(d, welcome, new_page, why, room);
	if (i < 0)
		return i;
	a = &d->resolver[i];
	take_hello(a, h);
	a->session = session;
	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %d is %s %s, process %u%s", i, h->identity, h->version,
		   h->pid, welcome->adopted ? ", back with its page" : "");
	return i;
}

int hydnsd_resolver_reset(struct hydnsd *d, uint32_t i, const struct hydns_hello *h)
{
	struct hydnsd_resolver *a = &d->resolver[i];

	write_config(d, i, false);
	hydnsd_cookies_wipe(d, i, false);
	take_hello(a, h);
	return 0;
}

int hydnsd_resolver_add_acl(struct hydnsd *d, uint32_t i, const struct hydns_acl_entry *e, uint32_t n,
			     char *why, size_t room)
{
	struct hydnsd_resolver *a = &d->resolver[i];
	struct hydns_acl_entry *more;

	if (n > HYDNS_ACL_ENTRIES - a->acl_count) {
		snprintf(why, room, "more than %d access-control prefixes: merge some", HYDNS_ACL_ENTRIES);
		return -E2BIG;
	}
	for (uint32_t k = 0; k < n; k++)
		if (e[k].prefixlen > 128 || e[k].action > HYDNS_ACL_ALLOW_COOKIE || e[k].why >= HYDNS_CLIENTS) {
			snprintf(why, room, "an access-control entry has prefix length %u and action %u: "
				 "use a plugin of this hydnsd's version", e[k].prefixlen, e[k].action);
			return -EINVAL;
		}
	more = realloc(a->acl, (a->acl_count + n + 1) * sizeof(*more));
	if (!more) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	a->acl = more;
	memcpy(a->acl + a->acl_count, e, n * sizeof(*e));
	a->acl_count += n;
	return 0;
}

static void drop_notes(struct hydnsd_resolver *a, enum hydns_note_kind kind)
{
	uint32_t kept = 0;

	for (uint32_t n = 0; n < a->note_count; n++)
		if (a->note[n].kind == kind)
			free(a->note[n].text);
		else
			a->note[kept++] = a->note[n];
	a->note_count = kept;
}

int hydnsd_resolver_add_note(struct hydnsd *d, uint32_t i, const struct hydns_note *n, size_t len)
{
	struct hydnsd_resolver *a = &d->resolver[i];
	char *copy;

	if (n->anew)
		drop_notes(a, n->kind);
	if (!len)
		return 0;
	if (a->note_count == HYDNSD_NOTES_MAX)
		return -ENOSPC;
	copy = strndup(n->text, len);
	if (!copy)
		return -ENOMEM;
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c > '~')
			*c = '?';
	a->note[a->note_count++] = (struct hydnsd_note){ .kind = n->kind, .text = copy };
	return 0;
}

/* Fills the half that c names, which the program does not use, and sets what flags follow. */
static int fill_acl(struct hydnsd *d, uint32_t i, struct hydns_resolver_config *c)
{
	static struct hydns_acl_entry entry[HYDNS_ACL_ENTRIES];
	const struct hydnsd_resolver *a = &d->resolver[i];
	__u16 flags;
	int n = hydnsd_sources_apply(d, a->acl, a->acl_count, entry, &flags);

	c->flags = (__u16)((c->flags & ~(HYDNS_RESOLVER_ALLOWS_IPV4 | HYDNS_RESOLVER_ALLOWS_IPV6)) | flags);
	return n < 0 ? n : hydns_kern_acl_fill(d->kern, i, c->acl_half, entry, (size_t)n);
}

/* Of one that a former hydnsd knew nothing is known here until its plugin is back: what is in the kernel stays. */
bool hydnsd_resolver_sources(struct hydnsd *d)
{
	bool failed = false;

	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydnsd_resolver *a = &d->resolver[i];
		struct hydns_resolver_config c = a->config;
		int rc;

		if ((!a->live && !a->acl_stale) || !a->acl_count)
			continue;
		c.acl_half = !c.acl_half;
		rc = fill_acl(d, i, &c);
		if (rc && !a->acl_stale)
			hydnsd_log(HYDNSD_LOG_ERROR, "cannot fill the access-control map of resolver %u: %s; nothing is "
				   "answered for it until hydnsd, which tries again by itself, can", i, strerror(-rc));
		if (!rc)
			a->config = c;
		a->acl_stale = rc;
		failed |= rc != 0;
		write_config(d, i, !rc);
	}
	return failed;
}

int hydnsd_resolver_ready(struct hydnsd *d, uint32_t i, char *why, size_t room)
{
	struct hydnsd_resolver *a = &d->resolver[i];
	struct hydns_resolver_config c = {
		.flags = a->hello.flags, .edns_size = a->hello.edns_size, .max_udp = a->hello.max_udp,
		.acl_half = !a->config.acl_half,
	};
	int rc = fill_acl(d, i, &c);

	if (rc) {
		snprintf(why, room, "cannot fill the access-control map: %s", strerror(-rc));
		return rc;
	}
	a->config = c;
	a->state = HYDNSD_RESOLVER_READY;
	hydnsd_services_sync(d);
	write_config(d, i, true);
	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %u is ready: %u sockets, %u refused, %u access-control prefixes", i,
		   a->socket_count, a->refusal_count, a->acl_count);
	return 0;
}

/* -- and goes ------------------------------------------------------------------------------------------ */
/* The kernel has unmapped a process's memory before it closes its sockets, so whoever can bind them anew finds the
 * page abandoned. */
bool hydnsd_resolver_ended(const struct hydnsd *d, uint32_t i)
{
	return hydns_kern_page_abandoned(d->kern, i);
}

/* Of an orphan, which has no session. */
static bool release_if_ended(struct hydnsd *d, uint32_t i)
{
	if (!hydnsd_resolver_ended(d, i))
		return false;
	hydnsd_resolver_release(d, i, "its process has ended");
	return true;
}

void hydnsd_resolver_leave(struct hydnsd *d, uint32_t i)
{
	struct hydnsd_resolver *a = &d->resolver[i];

	a->session = 0;
	if (a->state == HYDNSD_RESOLVER_READY || a->state == HYDNSD_RESOLVER_CONFIGURING)
		a->state = HYDNSD_RESOLVER_DISCONNECTED;
	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %u (%s) has closed its connection", i, a->hello.identity);
	if (a->state == HYDNSD_RESOLVER_DISCONNECTED)
		release_if_ended(d, i);
}

static void clean_epochs(struct hydnsd *d, uint32_t i)
{
	const struct hydnsd_withdrawal_end end = { .done = NULL };
	uint32_t epoch = hydnsd_resolver_epoch(d, i);

	if (!hydns_kern_page(d->kern, i) || epoch == d->resolver[i].epoch_seen)
		return;
	d->resolver[i].epoch_seen = epoch;
	withdraw_rules(d, i, epoch, &end);
}

void hydnsd_resolver_tick(struct hydnsd *d)
{
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++) {
		struct hydnsd_resolver *a = &d->resolver[i];

		if (a->state == HYDNSD_RESOLVER_FREE || a->state == HYDNSD_RESOLVER_CLOSING)
			continue;
		clean_epochs(d, i);
		if (a->state == HYDNSD_RESOLVER_DISCONNECTED && !release_if_ended(d, i) && !fresh(d, i))
			hydnsd_resolver_release(d, i, "no plugin and no heartbeat");
	}
}

/* -- looking ------------------------------------------------------------------------------------------- */
void hydnsd_resolver_counts(struct hydnsd *d, uint32_t i, struct hydns_counts *out)
{
	const struct hydns_resolver_count *base = &hydns_kern_tallies(d->kern)->base[i];
	struct hydns_resolver_count now = *base;

	hydnsd_rules_sweep_resolver(d->rules, i, hydnsd_now_ns());
	hydns_kern_resolver_counts(d->kern, i, &now);
	hydnsd_resolver_counts_sum(d->rules, i, &now, base, out);
}

const char *hydnsd_resolver_state_name(const struct hydnsd *d, uint32_t i)
{
	static const char *const names[] = {
		[HYDNSD_RESOLVER_FREE] = "free", [HYDNSD_RESOLVER_DISCONNECTED] = "disconnected",
		[HYDNSD_RESOLVER_CONFIGURING] = "configuring", [HYDNSD_RESOLVER_READY] = "ready",
		[HYDNSD_RESOLVER_CLOSING] = "closing",
	};
	enum hydnsd_resolver_state state = d->resolver[i].state;

	if (state == HYDNSD_RESOLVER_READY && !fresh(d, i))
		return "silent";
	return state == HYDNSD_RESOLVER_READY && hydnsd_resolver_suspended(d, i) ? "catching up" : names[state];
}
