/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/lane_requests.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hydnsd/daemon/log.h"
#include "hydnsd/netdev/reserved_ports.h"
#include "hydnsd/resolvers/hold.h"
#include "hydnsd/resolvers/lanes.h"
#include "hydnsd/resolvers/page.h"
#include "hydnsd/resolvers/session_internal.h"

#define FRAME_MIN 60U                  /* octets of the shortest Ethernet frame */

#define OTHER_RELEASE "install hydnsd and the plugin from one release"

static struct hydnsd_resolver *resolver_of(const struct hydnsd_session *s)
{
	return &s->daemon->resolver[s->resolver];
}

/* A plugin tries again and again: one line in the log is enough until something has changed. */
static bool refuse(struct hydnsd_session *s, uint32_t seq, const char *why)
{
	char *last = s->daemon->lanes->refusal[s->resolver];

	if (!last[0])
		hydnsd_session_complain(s, "refused packet rings", why);
	snprintf(last, HYDNS_WHY, "%s", why);
	return hydnsd_session_send_refusal(s, seq, why);
}

/* What a request of this length must be, and when it may come; NULL: good. */
static const char *fault_of(const struct hydnsd_session *s, const struct hydnsd_request *m, size_t len)
{
	if (m->head.len != len)
		return "a message about packet rings of another length: " OTHER_RELEASE;
	if (resolver_of(s)->state != HYDNSD_RESOLVER_READY)
		return "a message about packet rings before READY: " OTHER_RELEASE;
	if (m->head.type != HYDNS_MSG_QUEUE && !s->queue_parts)
		return "a message about packet rings before QUEUE: " OTHER_RELEASE;
	return NULL;
}

/* -- AF_XDP sockets ------------------------------------------------------------------------------------ */
/* An AF_XDP socket that can be bound to this interface alone (0: that is never bound), or a negative errno. */
static int make_socket(uint32_t ifindex)
{
	const int index = (int)ifindex;
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0), rc;

	if (fd < 0)
		return -errno;
	/* Its receiver can't change that: it lacks CAP_NET_RAW. */
	if (!index || setsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &index, sizeof(index)) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

static void explain_socket(int rc, char why[HYDNS_WHY])
{
	const char *mend = rc == -EPERM ? "hydnsd needs CAP_NET_RAW: start it as root, or with that right in the service's "
					  "CapabilityBoundingSet and AmbientCapabilities" :
			   rc == -EAFNOSUPPORT ? "the kernel needs CONFIG_XDP_SOCKETS, and the service AF_XDP in "
						 "RestrictAddressFamilies" :
			   rc == -EMFILE || rc == -ENFILE ? "raise LimitNOFILE of hydnsd" : "restart hydnsd";

	snprintf(why, HYDNS_WHY, "cannot make AF_XDP sockets: %s: %s", strerror(-rc), mend);
}

/* -- QUEUE and PLAN ------------------------------------------------------------------------------------ */
static void make_plan(const struct hydnsd_session *s, struct hydns_queue_plan *out)
{
	const struct hydnsd_lane_devices *all = &s->daemon->lanes->devices;

	*out = (struct hydns_queue_plan){ .parts = s->queue_parts, .resolver = (uint32_t)s->resolver };
	if (s->daemon->with.fib)
		out->parts |= HYDNS_QUEUE_ROUTED;
	if (s->queue_parts & HYDNS_QUEUE_UPSTREAM) {
		out->first_port = (uint16_t)s->daemon->lanes->ports.first;
		out->ports = (uint16_t)s->daemon->lanes->ports.count;
		hydns_kern_ports_seed(s->daemon->kern, out->seed);
	}
	for (uint32_t i = 0; i < all->count; i++)
		if (hydnsd_lane_devices_fits(&all->device[i].facts, s->rings))
			out->device[out->count++] = all->device[i].facts;
}

/* A gate is the resolver's alone: it ends with his last descriptor, and hydnsd must not have one. */
static bool send_plan_with_gate(struct hydnsd_session *s, uint32_t seq)
{
	struct hydns_queue_plan plan;
	char why[HYDNS_WHY];
	int gate = make_socket(0), rc = gate < 0 ? gate : hydns_kern_gate_set(s->daemon->kern, (uint32_t)s->resolver, gate);
	bool sent;

	if (rc < 0) {
		explain_socket(rc, why);
		sent = refuse(s, seq, why);
	} else {
		const int fd[2] = { gate, hydns_kern_ports_fd(s->daemon->kern) };

		make_plan(s, &plan);
		sent = hydnsd_session_send(s, HYDNS_MSG_PLAN, seq, &plan, sizeof(plan), fd,
					   plan.parts & HYDNS_QUEUE_UPSTREAM ? 2 : 1);
	}
	if (gate >= 0)
		close(gate);
	return sent;
}

static void explain_generic(const struct hydnsd_lane_device *device, char why[HYDNS_WHY])
{
	snprintf(why, HYDNS_WHY, "%s runs the program in generic mode, in which packet rings work for one thread alone: use "
		 "attach-mode native, or one thread", device->name);
}

/* A plan leaves out what a resolver of several threads can't have. It is told so here. */
static void note_generic(struct hydnsd_session *s)
{
	const struct hydnsd_lane_devices *all = &s->daemon->lanes->devices;
	char *why = s->daemon->lanes->refusal[s->resolver];

	for (uint32_t i = 0; i < all->count && !why[0]; i++)
		if (!hydnsd_lane_devices_fits(&all->device[i].facts, s->rings)) {
			explain_generic(&all->device[i], why);
			hydnsd_session_complain(s, "no packet rings", why);
		}
}

/* The ports of queries to upstream, as the host has reserved them now. False: there are none. */
static bool take_ports(struct hydnsd_session *s)
{
	struct hydnsd_lanes *l = s->daemon->lanes;
	char *why = l->no_upstream[s->resolver];

	why[0] = '\0';
	if (hydnsd_reserved_ports(&l->ports, why, HYDNS_WHY) && l->ports.count < HYDNS_PORTS &&
	    !hydns_kern_ports_range(s->daemon->kern, l->ports.first, l->ports.count))
		return true;
	hydnsd_session_complain(s, "no packet rings for queries to upstream", why);
	return false;
}

bool hydnsd_lane_requests_queue(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_queue_request *q = (const struct hydns_queue_request *)m->payload;
	const char *fault = fault_of(s, m, sizeof(*q));

	if (!fault && (!q->parts || q->parts & ~(HYDNS_QUEUE_CLIENTS | HYDNS_QUEUE_UPSTREAM)))
		fault = "a QUEUE of unknown parts: " OTHER_RELEASE;
	if (fault)
		return hydnsd_session_refuse(s, m->head.seq, fault);
	s->daemon->lanes->refusal[s->resolver][0] = '\0';
	if (s->daemon->options.queue == HYDNSD_QUEUE_NO)
		return refuse(s, m->head.seq, "hydnsd is configured to give no packet rings: remove `queue: no' from "
			      "hydnsd.conf, and restart hydnsd");
	if (hydnsd_lanes_look(s->daemon))
		hydnsd_lane_requests_tell(s->daemon);
	s->queue_parts = q->parts;
	if (q->parts & HYDNS_QUEUE_UPSTREAM && !take_ports(s))
		s->queue_parts &= ~HYDNS_QUEUE_UPSTREAM;
	if (!s->queue_parts)
		return hydnsd_session_send_refusal(s, m->head.seq, s->daemon->lanes->no_upstream[s->resolver]);
	note_generic(s);
	return send_plan_with_gate(s, m->head.seq);
}

bool hydnsd_lane_requests_wanted(const struct hydnsd *d)
{
	for (const struct hydnsd_session *s = d->sessions->first; s; s = s->next)
		if (!s->dead && s->queue_parts)
			return true;
	return false;
}

void hydnsd_lane_requests_tell(struct hydnsd *d)
{
	struct hydns_queue_plan plan;

	for (struct hydnsd_session *s = d->sessions->first; s; s = s->next) {
		if (s->dead || !s->queue_parts)
			continue;
		make_plan(s, &plan);
		if (d->stopping)
			plan.parts = plan.count = 0;
		if (!hydnsd_session_send(s, HYDNS_MSG_PLAN, 0, &plan, sizeof(plan), NULL, 0))
			hydnsd_session_end(s, "it does not read its replies");
	}
}

/* -- LANE and SOCKETS ---------------------------------------------------------------------------------- */
/* A resolver whose process has ended must not hold a receive queue. */
static void release_ended(struct hydnsd *d, uint32_t i)
{
	if (!hydnsd_resolver_ended(d, i))
		return;
	hydnsd_session_drop(d, d->resolver[i].session, NULL); /* which releases it, if it has a session */
	if (d->resolver[i].state != HYDNSD_RESOLVER_CLOSING && d->resolver[i].state != HYDNSD_RESOLVER_FREE)
		hydnsd_resolver_release(d, i, "its process has ended");
}

/* Whether the resolver may have this lane, of this device. False: why says why not. */
static bool may_have(struct hydnsd_session *s, const struct hydns_lane_key *key, const struct hydnsd_lane_device *device,
		     char why[HYDNS_WHY])
{
	struct hydnsd *d = s->daemon;
	const struct hydnsd_lane *l = hydnsd_lanes_find(d, key);
	uint32_t holder = l ? l->record.resolver : (uint32_t)s->resolver;

	if (l && l->state != HYDNSD_LANE_HELD && holder != (uint32_t)s->resolver)
		release_ended(d, holder);
	l = hydnsd_lanes_find(d, key);
	if (!device)
		snprintf(why, HYDNS_WHY, "interface number %u has no packet rings: use those of the plan", key->ifindex);
	else if (key->queue >= device->facts.rx_queues || key->queue >= HYDNS_QUEUE_QUEUES)
		snprintf(why, HYDNS_WHY, "%s has no receive queue %u that may have packet rings: it has %u, and the first %d "
			 "may: use those of the plan", device->name, key->queue, device->facts.rx_queues, HYDNS_QUEUE_QUEUES);
	else if (!hydnsd_lane_devices_fits(&device->facts, s->rings))
		explain_generic(device, why);
	else if (l && l->state == HYDNSD_LANE_HELD)
		snprintf(why, HYDNS_WHY, "process %d has still sockets of receive queue %u of %s, and only one process can: they "
			 "go with its end", (int)l->process.pid, key->queue, device->name);
	else if (l && l->record.resolver != (uint32_t)s->resolver)
		snprintf(why, HYDNS_WHY, "receive queue %u of %s is resolver %u's (%s, process %u), and only one can have it: "
			 "stop that one, or let one of the two do without packet rings", key->queue, device->name, holder,
			 d->resolver[holder].hello.identity, d->resolver[holder].hello.pid);
	else
		return true;
	return false;
}

static void close_all(const int *fd, uint32_t n)
{
	while (n)
		close(fd[--n]);
}

/* Makes a socket for each thread and shows it to the program. 0 or a negative errno; fd[] is the caller's on success. */
static int make_sockets(struct hydnsd *d, const struct hydnsd_lane *l, int fd[HYDNS_THREADS_MAX])
{
	int rc = 0;

	for (uint32_t t = 0; t < l->record.threads; t++) {
		fd[t] = make_socket(l->key.ifindex);
		rc = fd[t] < 0 ? fd[t] : hydns_kern_ring_set(d->kern, l->record.number, t, fd[t]);
		if (rc) {
			close_all(fd, t + (fd[t] >= 0));
			return rc;
		}
	}
	return 0;
}

static struct hydnsd_process process_of(const struct hydnsd_session *s)
{
	return (struct hydnsd_process){ .pid = s->pid, .uid = s->uid };
}

static bool give(struct hydnsd_session *s, uint32_t seq, const struct hydnsd_lane_device *device, uint32_t queue)
{
	struct hydnsd *d = s->daemon;
	struct hydnsd_lane *l = hydnsd_lanes_give(d, (uint32_t)s->resolver, device, queue, s->rings);
	struct hydns_lane_number n = { .number = l ? l->record.number : 0 };
	int fd[HYDNS_THREADS_MAX], rc;
	char why[HYDNS_WHY];
	bool sent;

	if (!l)
		return refuse(s, seq, "every lane is taken: ask again");
	l->process = process_of(s);
	rc = make_sockets(d, l, fd);
	if (rc) {
		hydnsd_lanes_close(d, l);
		hydnsd_lanes_settle(d, NULL, 0, 0);
		explain_socket(rc, why);
		return refuse(s, seq, why);
	}
	sent = hydnsd_session_send(s, HYDNS_MSG_SOCKETS, seq, &n, sizeof(n), fd, l->record.threads);
	close_all(fd, l->record.threads); /* at once: a copy here would keep a dead resolver's ring */
	return sent;
}

/* A lane that the resolver has already ends, and it gets another number for new sockets. */
bool hydnsd_lane_requests_lane(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_lane_key *key = (const struct hydns_lane_key *)m->payload;
	const char *fault = fault_of(s, m, sizeof(*key));
	const struct hydnsd_lane_device *device;
	struct hydnsd_lane *former;
	char why[HYDNS_WHY];

	if (fault)
		return hydnsd_session_refuse(s, m->head.seq, fault);
	device = hydnsd_lane_devices_find(&s->daemon->lanes->devices, key->ifindex);
	if (!may_have(s, key, device, why))
		return refuse(s, m->head.seq, why);
	former = hydnsd_lanes_find(s->daemon, key);
	if (former) {
		hydnsd_lanes_close(s->daemon, former);
		hydnsd_lanes_settle(s->daemon, NULL, 0, 0);
	}
	return give(s, m->head.seq, device, key->queue);
}

/* -- OPEN and CLOSE ------------------------------------------------------------------------------------ */
/* The resolver's lane, or one that its process has kept from an earlier registration. */
static struct hydnsd_lane *own_or_held(const struct hydnsd_session *s, uint32_t number)
{
	const struct hydnsd_process p = process_of(s);
	struct hydnsd_lane *l = hydnsd_lanes_own(s->daemon, number, (uint32_t)s->resolver);

	return l ? l : hydnsd_lanes_held(s->daemon, number, &p);
}

static struct hydnsd_lane *lane_to_open(const struct hydnsd_session *s, uint32_t number)
{
	struct hydnsd_lane *l = own_or_held(s, number);

	if (!l || l->record.threads != s->rings)
		return NULL;
	l->record.resolver = (uint8_t)s->resolver;
	l->process = process_of(s);    /* of a lane that a former hydnsd gave it was not known */
	return l;
}

bool hydnsd_lane_requests_open(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_lane_open *o = (const struct hydns_lane_open *)m->payload;
	const char *fault = fault_of(s, m, sizeof(*o));
	struct hydnsd_lane *l;

	if (!fault && o->frame_max < FRAME_MIN)
		fault = "an OPEN whose frames have an impossible length: " OTHER_RELEASE;
	if (!fault && o->place >= HYDNS_LANES_MOST)
		fault = "an OPEN of an impossible place: " OTHER_RELEASE;
	if (fault)
		return hydnsd_session_refuse(s, m->head.seq, fault);
	l = lane_to_open(s, o->number);
	if (!l)
		return refuse(s, m->head.seq, "the lane to open is not this resolver's, or no longer: ask for it anew");
	if (hydnsd_lanes_open(s->daemon, l, o->frame_max, (uint8_t)o->place))
		return refuse(s, m->head.seq, "the lane's record cannot be written: restart hydnsd");
	s->daemon->lanes->refusal[s->resolver][0] = '\0';
	return hydnsd_session_acknowledge(s, m->head.seq);
}

static void closed(struct hydnsd *d, uint64_t client, uint32_t seq)
{
	struct hydnsd_session *s = hydnsd_session_find(d, client);

	if (s)
		hydnsd_hold_end_pending(s, hydnsd_session_acknowledge(s, seq));
}

/* A lane that hydnsd has closed itself meanwhile is acknowledged like the others: nothing is redirected to it. */
bool hydnsd_lane_requests_close(struct hydnsd_session *s, const struct hydnsd_request *m)
{
	const struct hydns_lane_number *n = (const struct hydns_lane_number *)m->payload;
	const char *fault = fault_of(s, m, sizeof(*n));
	struct hydnsd_lane *l;

	if (!fault && n->number >= HYDNS_LANES)
		fault = "a CLOSE of an impossible lane: " OTHER_RELEASE;
	if (fault)
		return hydnsd_session_refuse(s, m->head.seq, fault);
	l = own_or_held(s, n->number);
	if (l)
		hydnsd_lanes_close(s->daemon, l);
	hydnsd_hold_add_pending(s);    /* first: closed() may come before hydnsd_lanes_settle() returns */
	hydnsd_lanes_settle(s->daemon, closed, s->id, m->head.seq);
	return true;
}
