/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Packet rings: hydnsd's plan says which receive queues may become lanes of this resolver, and each of them is opened, or
 * tried again. Lanes outlive the connection, as long as hydnsd's maps do: the program goes on using them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "plugin/link/thread.h"
#include "plugin/log.h"

#define RETRY_MIN_MS 50U
#define RETRY_MAX_MS 4000U   /* each attempt wakes hydnsd and this thread some times for a lane */
#define DRAIN_MS     500U    /* for the resolver's threads to read what lies in a lane that closes */

void hydns_link_begin_lanes(struct hydns_link *l)
{
	l->lanes.asked = false;
	l->lanes.look = l->p->lanes;
	l->lanes.known = 0;
	l->lanes.retry_ns = 0;
	l->lanes.retry_ms = RETRY_MIN_MS;
}

/* What has changed before is read first: until then nobody has followed the routes. */
static void route_replies(struct hydns_link *l)
{
	const bool routed = l->lanes.plan.parts & HYDNS_QUEUE_ROUTED;

	if (routed)
		hydns_ways_follow(l->p->ways);
	hydns_lanes_route(l->p->lanes, routed ? l->p->ways : NULL);
}

static void set_plan(struct hydns_link *l, const struct hydns_queue_plan *plan)
{
	l->lanes.plan = *plan;
	if (l->lanes.plan.count > HYDNS_QUEUE_DEVICES)
		l->lanes.plan.count = HYDNS_QUEUE_DEVICES;
	route_replies(l);
}

bool hydns_link_uses_ways(const struct hydns_link *l)
{
	return l->p->upstream || l->lanes.plan.parts & HYDNS_QUEUE_ROUTED;
}

void hydns_link_take_plan(struct hydns_link *l, const struct hydns_queue_plan *plan)
{
	set_plan(l, plan);
	if (l->p->upstream && !(plan->parts & HYDNS_QUEUE_UPSTREAM))
		hydns_ports_pause(hydns_upstream_ports(l->p->upstream));
	l->lanes.known = 0;            /* hydnsd may have closed some */
	l->lanes.look = l->p->lanes;
	l->lanes.retry_ns = 0;
	l->lanes.retry_ms = RETRY_MIN_MS;
}

uint64_t hydns_link_lanes_due(const struct hydns_link *l)
{
	return l->lanes.look ? l->lanes.retry_ns : UINT64_MAX;
}

/* -HYDNS_EREFUSED ends no connection. */
static int unless_refused(int error)
{
	return error == -HYDNS_EREFUSED ? 0 : error;
}

/* A process's descriptors are closed from the highest on: with the gate, all redirections end at once. */
static void raise_gate(struct hydns_plugin *p)
{
	const int above = hydns_lanes_highest_fd(p->lanes);
	int copy;

	if (p->gate < 0 || p->gate > above)
		return;
	copy = fcntl(p->gate, F_DUPFD_CLOEXEC, above + 1);
	if (copy < 0)
		return;
	close(p->gate);
	p->gate = copy;
}

/* Queries to upstream leave by rings from here on. fd: of the map of ports. */
static void use_ports(struct hydns_link *l, int fd)
{
	const struct hydns_queue_plan *plan = &l->lanes.plan;
	const struct hydns_port_range range = { .first = plan->first_port, .count = plan->ports, .resolver = plan->resolver,
						.seed = { plan->seed[0], plan->seed[1] } };
	int error = -ESTALE;

	if (range.first >= l->p->o.first_port && range.first + range.count <= l->p->o.first_port + l->p->o.ports)
		error = hydns_ports_use(hydns_upstream_ports(l->p->upstream), fd, &range);
	atomic_store(&l->p->upstream_open, !error);
	if (error == -ESTALE)
		hydns_log(l->p, HYDNS_LOG_WARNING, "queries to upstream take sockets: the host's reserved ports "
			  "(net.ipv4.ip_local_reserved_ports) have changed since this resolver began: restart it");
	else if (error)
		hydns_log(l->p, HYDNS_LOG_WARNING, "queries to upstream take sockets: hydnsd's ports cannot be used: %s",
			  strerror(-error));
}

/* First the sockets for what comes to the host's stack instead of a ring: without them such answers would be lost. */
static int begin_upstream(struct hydns_link *l, int ports)
{
	int error;

	if (!l->p->upstream)
		return 0;
	atomic_store(&l->p->upstream_open, false);
	if (!(l->lanes.plan.parts & HYDNS_QUEUE_UPSTREAM)) {
		hydns_ports_pause(hydns_upstream_ports(l->p->upstream));
		return 0;
	}
	error = hydns_link_call(l, HYDNS_MSG_STRAYS, NULL, 0, NULL, 0, HYDNS_MSG_STRAY_SOCKETS, HYDNS_REPLY_TIMEOUT_MS);
	if (error == -HYDNS_EREFUSED) {
		hydns_log(l->p, HYDNS_LOG_INFO, "queries to upstream take sockets: %s", hydns_link_refusal(l));
		hydns_ports_pause(hydns_upstream_ports(l->p->upstream));
		return 0;
	}
	if (error)
		return error;
	if (l->in.fds != 2 * l->p->o.threads) {
		hydns_channel_close_fds(&l->in);
		return -EPROTO;
	}
	l->in.fds = 0;
	error = hydns_upstream_use_strays(l->p->upstream, l->in.fd);
	if (error)
		hydns_ports_pause(hydns_upstream_ports(l->p->upstream));
	else if (!l->leaving)          /* which may have begun during the call: hydnsd will soon have forgotten the ports */
		use_ports(l, ports);
	return 0;
}

static int ask_plan(struct hydns_link *l)
{
	const struct hydns_queue_request q = { .parts = l->p->o.queue };
	int former = l->p->gate, ports = -1;
	int error = hydns_link_call(l, HYDNS_MSG_QUEUE, &q, sizeof(q), NULL, 0, HYDNS_MSG_PLAN, HYDNS_REPLY_TIMEOUT_MS);

	l->lanes.asked = !error || error == -HYDNS_EREFUSED;
	if (error == -HYDNS_EREFUSED) {
		hydns_log(l->p, HYDNS_LOG_INFO, "no packet rings: %s", hydns_link_refusal(l));
		set_plan(l, &(struct hydns_queue_plan){ 0 });
		return 0;
	}
	if (!error && (l->in.head.len != sizeof(l->lanes.plan) || l->in.fd[0] < 0))
		error = -EPROTO;
	if (!error) {
		set_plan(l, (const struct hydns_queue_plan *)l->in.payload);
		l->p->gate = l->in.fd[0];
		l->in.fd[0] = -1;
		raise_gate(l->p);
		if (former >= 0)
			close(former);
		ports = l->in.fd[1];
		l->in.fd[1] = -1;
	}
	hydns_channel_close_fds(&l->in);
	if (!error)
		error = begin_upstream(l, ports);
	if (ports >= 0)
		close(ports);
	return error;
}

/* --- one lane ------------------------------------------------------------------------------------------- */
static void beat(void *link)
{
	hydns_link_beat(link, false);
}

static void drop_lane(struct hydns_link *l, int place)
{
	hydns_lane_close(l->p->lanes, place, DRAIN_MS, beat, l);
	l->lanes.known &= ~(1ULL << place);
}

static int ask_with_number(struct hydns_link *l, uint32_t type, uint32_t number)
{
	const struct hydns_lane_number n = { .number = number };

	return hydns_link_ask(l, type, &n, sizeof(n));
}

static int close_lane(struct hydns_link *l, int place)
{
	int error = ask_with_number(l, HYDNS_MSG_CLOSE, hydns_lane_at(l->p->lanes, place)->number);

	drop_lane(l, place);
	return unless_refused(error);
}

static int tell_open(struct hydns_link *l, int place)
{
	const struct hydns_lane_open o = { .number = hydns_lane_at(l->p->lanes, place)->number,
					   .frame_max = HYDNS_FRAME_MOST, .place = (uint16_t)place };
	int error;

	hydns_lane_count_backlog(l->p->lanes, place, hydns_pages_backlogs(l->p->pages, place));
	error = hydns_link_ask(l, HYDNS_MSG_OPEN, &o, sizeof(o));
	if (!error)
		l->lanes.known |= 1ULL << place;
	return error;
}

/* Lanes that were not opened, and those of them for which the process may lock too little memory. */
struct missing {
	unsigned lanes, unlocked;
};

/* hydnsd's sockets, bound. Returns the lane's place; -HYDNS_EREFUSED: not now; another negative errno: the connection. */
static int get_lane(struct hydns_link *l, const struct hydns_queue_device *d, uint32_t queue, struct missing *m)
{
	const struct hydns_lane_key key = { .ifindex = d->ifindex, .queue = queue };
	struct hydns_lane_setup s = {
		.id = { .ifindex = d->ifindex, .queue = queue }, .mtu = d->mtu, .device = (uint8_t)d->device,
		.hops = { d->hops[0], d->hops[1] },
		.sends = queue < d->tx_queues, .unfinished = d->flags & HYDNS_QUEUE_DEVICE_UNFINISHED,
	};
	struct hydns_lane_number n;
	int place, error = hydns_link_call(l, HYDNS_MSG_LANE, &key, sizeof(key), NULL, 0, HYDNS_MSG_SOCKETS,
					   HYDNS_REPLY_TIMEOUT_MS);

	if (error)
		return error;
	if (l->in.head.len != sizeof(n) || l->in.fds != l->p->o.threads) {
		hydns_channel_close_fds(&l->in);
		return -EPROTO;
	}
	memcpy(&n, l->in.payload, sizeof(n));
	s.number = n.number;
	l->in.fds = 0;         /* the lane's, whatever comes of it */
	place = hydns_lane_open(l->p->lanes, &s, l->in.fd);
	if (place >= 0)
		return place;
	m->unlocked += place == -ENOBUFS;
	hydns_log(l->p, HYDNS_LOG_DEBUG, "no packet ring on receive queue %u of interface %u yet: %s", queue, d->ifindex,
		  strerror(-place));
	error = ask_with_number(l, HYDNS_MSG_CLOSE, n.number);
	return error ? error : -HYDNS_EREFUSED;
}

/* When the connection ends, the program may redirect to the lane already: it stays, and the next hydnsd is asked. */
static int open_lane(struct hydns_link *l, const struct hydns_queue_device *d, uint32_t queue, struct missing *m)
{
	int place = get_lane(l, d, queue, m), error;

	if (place < 0)
		return place;
	raise_gate(l->p);
	error = tell_open(l, place);
	if (error == -HYDNS_EREFUSED)
		drop_lane(l, place);
	return error;
}

/* --- all lanes ------------------------------------------------------------------------------------------- */
static bool planned(const struct hydns_queue_plan *plan, const struct hydns_lane_setup *s)
{
	for (uint32_t i = 0; i < plan->count; i++) {
		const struct hydns_queue_device *d = &plan->device[i];

		if (d->ifindex == s->id.ifindex)
			return s->id.queue < d->rx_queues && d->mtu == s->mtu && d->device == s->device &&
			       memcmp(d->hops, s->hops, sizeof(s->hops)) == 0 &&
			       s->sends == (s->id.queue < d->tx_queues);
	}
	return false;
}

/* Closes lanes that the plan has no longer, and those that this hydnsd does not take for ours. */
static int keep_or_close(struct hydns_link *l)
{
	int error = 0;

	for (int place = 0; place < HYDNS_LANES_MOST && !error; place++) {
		const struct hydns_lane_setup *s = hydns_lane_at(l->p->lanes, place);

		if (!s)
			continue;
		if (!planned(&l->lanes.plan, s))
			error = close_lane(l, place);
		else if (!(l->lanes.known >> place & 1)) {
			error = tell_open(l, place);
			if (error == -HYDNS_EREFUSED)
				drop_lane(l, place);
			error = unless_refused(error);
		}
	}
	return error;
}

static bool have(struct hydns_link *l, const struct hydns_queue_device *d, uint32_t queue)
{
	for (int place = 0; place < HYDNS_LANES_MOST; place++) {
		const struct hydns_lane_setup *s = hydns_lane_at(l->p->lanes, place);

		if (s && s->id.ifindex == d->ifindex && s->id.queue == queue)
			return true;
	}
	return false;
}

/* All lanes need as much memory: when it lacks for one, the others are not tried. */
static int open_missing(struct hydns_link *l, struct missing *m)
{
	const struct hydns_queue_plan plan = l->lanes.plan;     /* another may come meanwhile */

	for (uint32_t i = 0; i < plan.count; i++)
		for (uint32_t queue = 0; queue < plan.device[i].rx_queues && queue < HYDNS_QUEUE_QUEUES; queue++) {
			int error;

			if (have(l, &plan.device[i], queue))
				continue;
			if (m->unlocked) {
				m->unlocked++;
				m->lanes++;
				continue;
			}
			error = open_lane(l, &plan.device[i], queue, m);
			if (error == -HYDNS_EREFUSED)
				m->lanes++;
			else if (error)
				return error;
		}
	return 0;
}

static void count_lanes(struct hydns_link *l)
{
	const uint32_t before = l->lanes.open, now = (uint32_t)__builtin_popcountll(l->lanes.known);
	const uint32_t parts = now ? l->lanes.plan.parts & l->p->o.queue : 0;

	l->lanes.open = now;
	atomic_store(&l->p->clients_open, parts & HYDNS_QUEUE_CLIENTS);
	hydns_pages_set_queue(l->p->pages, parts);
	if (now != before)
		hydns_log(l->p, HYDNS_LOG_INFO, now ? "packet rings on %u receive queues" : "no packet rings: %u receive queues",
			  now);
}

/* For the operator: `auto` goes on without these rings. Logged once, though their number may change. */
static int tell_unlocked(struct hydns_link *l, unsigned unlocked)
{
	const char *note;
	char text[200];

	if (unlocked == l->lanes.unlocked)
		return 0;
	l->lanes.unlocked = unlocked;
	snprintf(text, sizeof(text), "no packet rings on %u receive queues: this process may not lock as much memory. Set LimitMEMLOCK="
		 "infinity in its unit, or ulimit -l unlimited before it starts", unlocked);
	note = text;
	if (!l->lanes.unlocked_logged)
		hydns_log(l->p, HYDNS_LOG_INFO, "%s", text);
	l->lanes.unlocked_logged = true;
	if (hydns_notes_set(&l->p->notes, HYDNS_NOTE_RINGS, &note, unlocked != 0))
		hydns_log(l->p, HYDNS_LOG_WARNING, "out of memory: hydnsctl shows too few notes");
	return hydns_link_send_notes(l);
}

void hydns_link_give_lanes_up(struct hydns_link *l)
{
	if (!l->p->lanes)
		return;
	if (l->p->gate >= 0)
		close(l->p->gate);     /* ends redirections, of a program that still has this resolver */
	l->p->gate = -1;
	set_plan(l, &(struct hydns_queue_plan){ 0 });
	if (l->p->upstream) {
		atomic_store(&l->p->upstream_open, false);
		hydns_ports_pause(hydns_upstream_ports(l->p->upstream));
	}
	for (int place = 0; place < HYDNS_LANES_MOST; place++)
		if (hydns_lane_at(l->p->lanes, place))
			drop_lane(l, place);
	l->lanes.look = false;
	count_lanes(l);
}

int hydns_link_work_lanes(struct hydns_link *l)
{
	struct missing missing = { 0 };
	int error = 0;

	if (!l->lanes.look || hydns_mono_ns() < l->lanes.retry_ns)
		return 0;
	l->lanes.look = false;
	if (!l->lanes.asked)
		error = ask_plan(l);
	if (!error)
		error = keep_or_close(l);
	if (!error)
		error = open_missing(l, &missing);
	if (!error)
		error = tell_unlocked(l, missing.unlocked);
	if (error)
		return error;
	count_lanes(l);
	if (missing.lanes) {
		l->lanes.look = true;
		l->lanes.retry_ns = hydns_mono_ns() + l->lanes.retry_ms * HYDNS_NS_PER_MS;
		l->lanes.retry_ms = l->lanes.retry_ms * 2 < RETRY_MAX_MS ? l->lanes.retry_ms * 2 : RETRY_MAX_MS;
	}
	return 0;
}
