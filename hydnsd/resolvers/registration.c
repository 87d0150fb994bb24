/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/registration.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/daemon.h"
#include "hydnsd/daemon/log.h"
#include "hydnsd/forwarding/forwarding.h"
#include "hydnsd/parking/parking.h"
#include "hydnsd/resolvers/access_list.h"
#include "hydnsd/resolvers/configuration.h"
#include "hydnsd/resolvers/cookies.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/services.h"

#define SERIAL_SHIFT 16                /* first epoch = page serial << 16; flags leave 14 bits to the serial */

/* Another for each page; neither 0, which stands for none, nor one with a flag. */
static uint32_t first_epoch(struct hydnsd *d)
{
	uint32_t epoch;

	do {
		epoch = (hydns_kern_next_page_serial(d->kern) << SERIAL_SHIFT) & ~HYDNS_EPOCH_FLAGS;
	} while (!epoch);
	return epoch;
}

static void take_hello(struct hydnsd_resolver *r, const struct hydns_hello *h)
{
	r->hello = *h;
	r->state = HYDNSD_RESOLVER_CONFIGURING;
	r->has_log_ring = r->has_budgets = r->all_read = false;
	hydnsd_configuration_forget(r);
}

/* -- a page that the plugin holds already --------------------------------------------------------------- */
/* The resolver that holds the page, or a negative errno. */
static int find_page(const struct hydnsd *d, int page_fd)
{
	int i = page_fd < 0 ? -ENOENT : hydns_kern_page_find(d->kern, page_fd);

	if (i < 0)
		return i;
	if (!hydns_kern_page(d->kern, (uint32_t)i) || d->resolver[i].state == HYDNSD_RESOLVER_CLOSING ||
	    d->resolver[i].state == HYDNSD_RESOLVER_STALE ||
	    d->resolver[i].state == HYDNSD_RESOLVER_FREE)
		return -ENOENT;
	return i;
}

uint64_t hydnsd_resolver_session(const struct hydnsd *d, int page_fd)
{
	int i = find_page(d, page_fd);

	return i < 0 ? 0 : d->resolver[i].session;
}

/* hydnsd does not know what was withdrawn before this session. So it discards offers that are older than the last change
 * on the page: one that has lain in a ring since may hold withdrawn data. */
static void discard_older(struct hydnsd_resolver *r, const volatile struct hydns_resolver_page *page)
{
	if (page->generation > r->min_generation)
		r->min_generation = page->generation;
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

/* -- a new page --------------------------------------------------------------------------------------- */
static int find_free(struct hydnsd *d)
{
	for (int i = 0; i < HYDNS_RESOLVERS; i++)
		if (d->resolver[i].state == HYDNSD_RESOLVER_FREE)
			return i;
	return -ENOSPC;
}

static int make_page(struct hydnsd *d, struct hydns_welcome *welcome, int *new_page, char *why, size_t room)
{
	uint32_t epoch;
	int rc, i = find_free(d);

	if (i < 0) {
		hydnsd_resolver_release_disconnected(d);
		snprintf(why, room, "all %d places for resolvers are taken: stop one, then try again", HYDNS_RESOLVERS);
		return i;
	}
	hydns_kern_log_ring_delete(d->kern, (uint32_t)i);
	hydns_kern_budgets_delete(d->kern, (uint32_t)i);
	hydns_kern_names_delete(d->kern, (uint32_t)i);
	hydnsd_cookies_wipe(d, (uint32_t)i, true); /* the numbers of sets begin again with a new page */
	epoch = first_epoch(d);
	rc = hydns_kern_page_new(d->kern, (uint32_t)i, epoch, new_page, why);
	if (rc)
		return rc;
	*welcome = (struct hydns_welcome){ .resolver = (uint32_t)i, .epoch = epoch };
	d->resolver[i] = (struct hydnsd_resolver){ .epoch_seen = epoch };
	hydnsd_rules_counts_reset(d->rules, (uint32_t)i, hydnsd_now_ns());
	hydns_kern_below_types_clear(d->kern, (uint32_t)i);
	hydnsd_forwarding_begin(d, (uint32_t)i);
	hydnsd_parking_begin(d, (uint32_t)i);
	hydns_kern_resolver_counts(d->kern, (uint32_t)i, &hydns_kern_tallies(d->kern)->base[i]);
	hydns_kern_queue_counts(d->kern, (uint32_t)i, &hydns_kern_tallies(d->kern)->queued_base[i]);
	return i;
}

/* -- HELLO, RESET, READY ------------------------------------------------------------------------------- */
int hydnsd_resolver_begin(struct hydnsd *d, uint64_t session, const struct hydns_hello *h, int page_fd,
			  struct hydns_welcome *welcome, int *new_page, char *why, size_t room)
{
	struct hydnsd_resolver *r;
	int i = adopt_page(d, page_fd, welcome);

	*new_page = -1;
	if (i < 0)
		i = make_page(d, welcome, new_page, why, room);
	if (i < 0)
		return i;
	r = &d->resolver[i];
	take_hello(r, h);
	r->session = session;
	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %d is %s %s, process %u%s", i, h->identity, h->version,
		   h->pid, welcome->adopted ? ", back with its page" : "");
	return i;
}

void hydnsd_resolver_reset(struct hydnsd *d, uint32_t i, const struct hydns_hello *h)
{
	hydnsd_forwarding_forbid(d, i);
	hydnsd_parking_forbid(d, i);
	hydnsd_configuration_write(d, i, false);
	hydnsd_cookies_wipe(d, i, false);
	take_hello(&d->resolver[i], h);
}

int hydnsd_resolver_ready(struct hydnsd *d, uint32_t i, char *why, size_t room)
{
	struct hydnsd_resolver *r = &d->resolver[i];
	struct hydns_resolver_config c = {
		.flags = r->hello.flags, .edns_size = r->hello.edns_size, .max_udp = r->hello.max_udp,
		.acl_half = !r->config.acl_half, .log_one_in = r->hello.log_one_in,
	};
	int rc = hydnsd_access_list_fill(d, i, &c);

	if (rc) {
		snprintf(why, room, "cannot fill the access-control map: %s", strerror(-rc));
		return rc;
	}
	r->config = c;
	r->state = HYDNSD_RESOLVER_READY;
	hydnsd_services_sync(d);
	hydnsd_configuration_write(d, i, true);
	hydnsd_parking_allow(d, i);
	hydnsd_log_client(HYDNSD_LOG_INFO, "resolver %u is ready: %u sockets, %u refused, %u access-control prefixes", i,
		   r->socket_count, r->refusal_count, r->acl_count);
	return 0;
}
