/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/lanes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/log.h"
#include "hydnsd/resolvers/lane_requests.h"

#define FOR_EACH(l, d) for (struct hydnsd_lane *l = (d)->lanes->lane; l < (d)->lanes->lane + HYDNS_LANES; l++)

static bool in_use(const struct hydnsd_lane *l)
{
	return l->state == HYDNSD_LANE_GIVEN || l->state == HYDNSD_LANE_OPEN || l->state == HYDNSD_LANE_HELD;
}

static bool is_of(const struct hydnsd_lane *l, uint32_t i)
{
	return in_use(l) && l->state != HYDNSD_LANE_HELD && l->record.resolver == i;
}

static void end_left(struct hydnsd *d);

/* -- one lane ------------------------------------------------------------------------------------------ */
struct hydnsd_lane *hydnsd_lanes_find(struct hydnsd *d, const struct hydns_lane_key *key)
{
	end_left(d);
	FOR_EACH(l, d)
		if (in_use(l) && l->key.ifindex == key->ifindex && l->key.queue == key->queue)
			return l;
	return NULL;
}

struct hydnsd_lane *hydnsd_lanes_own(struct hydnsd *d, uint32_t number, uint32_t i)
{
	struct hydnsd_lane *l = number < HYDNS_LANES ? &d->lanes->lane[number] : NULL;

	return l && is_of(l, i) ? l : NULL;
}

struct hydnsd_lane *hydnsd_lanes_give(struct hydnsd *d, uint32_t i, const struct hydnsd_lane_device *device, uint32_t queue,
				      uint32_t threads)
{
	for (uint32_t n = 0; n < HYDNS_LANES; n++) {
		struct hydnsd_lane *l = &d->lanes->lane[d->lanes->next++ % HYDNS_LANES];

		if (l->state != HYDNSD_LANE_FREE)
			continue;
		*l = (struct hydnsd_lane){
			.state = HYDNSD_LANE_GIVEN, .key = { .ifindex = device->facts.ifindex, .queue = queue },
			.record = { .number = (uint16_t)(l - d->lanes->lane), .threads = (uint8_t)threads,
				    .resolver = (uint8_t)i, .device = (uint8_t)device->facts.device },
		};
		return l;
	}
	return NULL;
}

int hydnsd_lanes_open(struct hydnsd *d, struct hydnsd_lane *l, uint16_t frame_max, uint8_t place)
{
	int rc;

	l->record.frame_max = frame_max;
	l->record.place = place;
	rc = hydns_kern_lane_set(d->kern, &l->key, &l->record);
	if (!rc)
		l->state = HYDNSD_LANE_OPEN;
	return rc;
}

static void delete_record(struct hydnsd *d, const struct hydnsd_lane *l)
{
	int rc = l->state == HYDNSD_LANE_OPEN ? hydns_kern_lane_delete(d->kern, &l->key) : 0;

	if (rc)
		hydnsd_log(HYDNSD_LOG_ERROR, "cannot take lane %u from the program: %s", l->record.number, strerror(-rc));
}

void hydnsd_lanes_close(struct hydnsd *d, struct hydnsd_lane *l)
{
	delete_record(d, l);
	l->state = HYDNSD_LANE_CLOSING;
	l->closing = d->lanes->closings + 1;
}

/* -- the grace period after it --------------------------------------------------------------------------- */
struct settlement {
	struct hydnsd *daemon;
	uint64_t number;
	void (*done)(struct hydnsd *d, uint64_t client, uint32_t tag);
	uint64_t client;
	uint32_t tag;
};

/* A program that ran when the record was deleted may have used the number. Now nobody does. */
static void settled(const struct settlement *s)
{
	struct hydnsd *d = s->daemon;

	FOR_EACH(l, d)
		if (l->state == HYDNSD_LANE_CLOSING && l->closing <= s->number) {
			hydns_kern_rings_delete(d->kern, l->record.number);
			*l = (struct hydnsd_lane){ .state = HYDNSD_LANE_FREE };
		}
	if (s->done)
		s->done(d, s->client, s->tag);
}

static void after_grace(void *arg)
{
	settled(arg);
	free(arg);
}

void hydnsd_lanes_settle(struct hydnsd *d, void (*done)(struct hydnsd *d, uint64_t client, uint32_t tag), uint64_t client,
			 uint32_t tag)
{
	const struct settlement now = { d, ++d->lanes->closings, done, client, tag };
	struct settlement *later = d->grace ? malloc(sizeof(*later)) : NULL;

	if (later) {
		*later = now;
		if (!hydnsd_grace_after(d->grace, after_grace, later))
			return;
		free(later);
	}
	hydnsd_grace_wait();           /* at the start, or without memory */
	settled(&now);
}

/* Closes the lanes that are unfit. */
static void close_if(struct hydnsd *d, bool (*unfit)(struct hydnsd *d, const struct hydnsd_lane *l, uint32_t arg), uint32_t arg)
{
	unsigned closed = 0;

	FOR_EACH(l, d)
		if (in_use(l) && unfit(d, l, arg)) {
			hydnsd_lanes_close(d, l);
			closed++;
		}
	if (closed)
		hydnsd_lanes_settle(d, NULL, 0, 0);
}

/* -- interfaces ---------------------------------------------------------------------------------------- */
static bool of_interface(struct hydnsd *d, const struct hydnsd_lane *l, uint32_t ifindex)
{
	d->lanes->tell |= l->key.ifindex == ifindex;
	return l->key.ifindex == ifindex;
}

static bool without_queue(struct hydnsd *d, const struct hydnsd_lane *l, uint32_t arg)
{
	const struct hydnsd_lane_device *device = hydnsd_lane_devices_find(&d->lanes->devices, l->key.ifindex);

	(void)arg;
	return !device || l->key.queue >= device->facts.rx_queues || l->record.device != device->facts.device ||
	       !hydnsd_lane_devices_fits(&device->facts, l->record.threads);
}

void hydnsd_lanes_interface_news(struct hydnsd *d, unsigned leaves)
{
	if (!d->lanes)
		return;
	d->lanes->look = true;
	if (leaves)
		close_if(d, of_interface, leaves);
}

bool hydnsd_lanes_look(struct hydnsd *d)
{
	bool news = hydnsd_lane_devices_read(d, &d->lanes->devices);

	d->lanes->look = false;
	close_if(d, without_queue, 0);
	return news;
}

void hydnsd_lanes_tick(struct hydnsd *d)
{
	end_left(d);
	/* reading costs system calls: only for somebody who wants to know */
	if (!d->lanes->look || !hydnsd_lane_requests_wanted(d) || (!hydnsd_lanes_look(d) && !d->lanes->tell))
		return;
	d->lanes->tell = false;
	hydnsd_lane_requests_tell(d);
}

/* -- held lanes ---------------------------------------------------------------------------------------- */
static void hold(struct hydnsd *d, struct hydnsd_lane *l)
{
	delete_record(d, l);
	l->state = HYDNSD_LANE_HELD;
}

static bool is_left(struct hydnsd *d, const struct hydnsd_lane *l, uint32_t spare)
{
	return l->state == HYDNSD_LANE_HELD &&
	       !hydns_kern_rings_open(d->kern, l->record.number, l->record.threads, (int)spare);
}

/* Ends the held lanes whose sockets are all closed. */
static void end_left(struct hydnsd *d)
{
	bool any = false;
	int spare;

	FOR_EACH(l, d)
		any = any || l->state == HYDNSD_LANE_HELD;
	spare = any ? socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0) : -1;
	if (spare < 0)
		return;
	close_if(d, is_left, (uint32_t)spare);
	close(spare);
}

struct hydnsd_lane *hydnsd_lanes_held(struct hydnsd *d, uint32_t number, const struct hydnsd_process *p)
{
	struct hydnsd_lane *l = number < HYDNS_LANES ? &d->lanes->lane[number] : NULL;

	end_left(d);
	return l && l->state == HYDNSD_LANE_HELD && p->pid > 0 && l->process.pid == p->pid && l->process.uid == p->uid &&
	       !without_queue(d, l, 0) ? l : NULL;
}

/* -- resolvers ----------------------------------------------------------------------------------------- */
/* Of a process that hydnsd does not know nobody could say later that it is the same. */
static bool of_resolver(struct hydnsd *d, const struct hydnsd_lane *l, uint32_t i)
{
	(void)d;
	return is_of(l, i) && (l->state != HYDNSD_LANE_OPEN || !l->process.pid);
}

void hydnsd_lanes_release(struct hydnsd *d, uint32_t i)
{
	d->lanes->refusal[i][0] = d->lanes->no_upstream[i][0] = '\0';
	hydns_kern_gate_delete(d->kern, i);
	close_if(d, of_resolver, i);
	FOR_EACH(l, d)
		if (is_of(l, i))
			hold(d, l);
}

/* -- at the start -------------------------------------------------------------------------------------- */
static void remember_device(const struct hydns_lane_key *key, const struct hydns_lane *lane, void *arg)
{
	struct hydnsd *d = arg;

	if (lane->device < HYDNS_QUEUE_DEVICES)
		d->lanes->devices.holder[lane->device] = key->ifindex;
}

static bool fits(struct hydnsd *d, const struct hydnsd_lane *l)
{
	const struct hydns_lane *r = &l->record;

	return d->options.queue == HYDNSD_QUEUE_AUTO && r->number < HYDNS_LANES && r->resolver < HYDNS_RESOLVERS &&
	       hydns_kern_page(d->kern, r->resolver) && !in_use(&d->lanes->lane[r->number]) && !without_queue(d, l, 0);
}

static void adopt(const struct hydns_lane_key *key, const struct hydns_lane *lane, void *arg)
{
	const struct hydnsd_lane l = { .state = HYDNSD_LANE_OPEN, .key = *key, .record = *lane };
	struct hydnsd *d = arg;

	if (fits(d, &l))
		d->lanes->lane[lane->number] = l;
	else
		hydns_kern_lane_delete(d->kern, key);
}

static void adopt_all(struct hydnsd *d)
{
	hydns_kern_lane_each(d->kern, remember_device, d);
	hydnsd_lane_devices_read(d, &d->lanes->devices);
	hydns_kern_lane_each(d->kern, adopt, d);
	for (uint32_t i = 0; i < HYDNS_RESOLVERS; i++)
		if (!hydns_kern_page(d->kern, i))
			hydns_kern_gate_delete(d->kern, i);
}

int hydnsd_lanes_start(struct hydnsd *d, char *why, size_t room)
{
	d->lanes = calloc(1, sizeof(*d->lanes));
	if (!d->lanes) {
		snprintf(why, room, "out of memory");
		return -ENOMEM;
	}
	if (d->adopted)
		adopt_all(d);
	return 0;
}

void hydnsd_lanes_leave(struct hydnsd *d)
{
	d->stopping = true;
	if (d->lanes && d->sessions)
		hydnsd_lane_requests_tell(d);
}

void hydnsd_lanes_stop(struct hydnsd *d)
{
	free(d->lanes);
	d->lanes = NULL;
}

const char *hydnsd_lanes_why_none(const struct hydnsd *d, uint32_t i)
{
	return d->lanes->refusal[i];
}
