/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hostile frames through packet rings, with sanitizers: they are sent into one end of a virtual pair, and the lane at the other
 * end (plugin/tests/veth.h) takes them, looks for the query that they answer, and sends each datagram back. Each must come out
 * of the ring as plugin/queue/frame.c reads the frame that was sent, and go back with the same payload; no other one is
 * anybody's answer. Otherwise exits with status 1 and prints the frame.
 *
 * fuzz_rings [--count N] [--seed S]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "plugin/queue/ports.h"
#include "plugin/tests/veth.h"
#include "test-harness/fuzz/frames.h"

#define COUNT_DEFAULT 20000            /* a share small enough for every test run */
#define BATCH         64
#define TURNS_MOST    100000           /* in which a batch comes */
#define FIRST         1024             /* the range of ports; every one of it waits for the same answer */
#define PORTS         64

struct batch {
	struct fuzz_run run;
	uint64_t sent;                         /* frames before this batch */
	struct hydns_lane_thread *lanes;
	struct hydns_port_thread *ports;
	uint8_t frame[BATCH][FRAMES_MOST];
	size_t len[BATCH];
	struct hydns_datagram want[BATCH];
	unsigned which[BATCH], count;          /* numbers of the frames that are datagrams */
	unsigned taken, replies;
	unsigned back[BATCH];                  /* numbers of those that were sent back */
};

static _Noreturn void wrong(const struct batch *b, unsigned i, const char *what)
{
	fuzz_wrong(&b->run, "frame", b->sent + i, what);
	frames_show(b->frame[i], b->len[i]);
	exit(1);
}

static void take(void *arg, const struct hydns_datagram *d, const struct hydns_way *way)
{
	struct batch *b = arg;
	const unsigned i = b->taken < b->count ? b->which[b->taken] : 0;
	const struct hydns_datagram *want = &b->want[i];

	if (b->taken++ >= b->count)
		wrong(b, 0, "more datagrams than were sent");
	if (d->len != want->len || memcmp(d->payload, want->payload, d->len) != 0 ||
	    memcmp(&d->path, &want->path, sizeof(d->path)) != 0)
		wrong(b, i, "another datagram than was sent");
	if (hydns_port_owner(b->ports, &d->path, way->device))
		wrong(b, i, "somebody's answer");
	if (hydns_lanes_send(b->lanes, way, 0, d->payload, d->len))
		b->back[b->replies++] = i;
}

static void make_batch(struct batch *b)
{
	b->count = b->taken = b->replies = 0;
	for (unsigned i = 0; i < BATCH; i++) {
		b->len[i] = frames_next(b->frame[i], 14);
		if (hydns_frame_read(&b->want[i], b->frame[i], b->len[i], false))
			b->which[b->count++] = i;
	}
}

static void send_batch(struct batch *b, int wire)
{
	for (unsigned i = 0; i < BATCH; i++)
		while (send(wire, b->frame[i], b->len[i], 0) != (ssize_t)b->len[i])
			if (errno != ENOBUFS && errno != EAGAIN)
				wrong(b, i, "not sent");
}

static uint64_t taken_in_all(struct batch *b)
{
	const struct hydns_queue_counts *n = hydns_lanes_counts(b->lanes);

	return n->received + n->bad;
}

static void receive_batch(struct batch *b)
{
	for (unsigned turns = 0; taken_in_all(b) < b->sent + BATCH; turns++) {
		if (turns == TURNS_MOST || !veth_readable(b->lanes, VETH_WAIT_MS))
			wrong(b, 0, "a frame of this batch has not come");
		hydns_lanes_receive(b->lanes, 64, take, b);
	}
	if (b->taken != b->count)
		wrong(b, 0, "fewer datagrams than were sent");
}

static void take_replies(struct batch *b, int wire)
{
	static uint8_t frame[2 * FRAMES_MOST];

	for (unsigned k = 0; k < b->replies; k++) {
		const struct hydns_datagram *want = &b->want[b->back[k]];
		ssize_t n = recv(wire, frame, sizeof(frame), 0);
		struct hydns_datagram d;

		if (n < 0 || !hydns_frame_read(&d, frame, (size_t)n, false) || d.len != want->len ||
		    memcmp(d.payload, want->payload, d.len) != 0 || d.path.local_port != want->path.remote_port)
			wrong(b, b->back[k], "another reply");
	}
}

static uint32_t in_turn(void *arg, uint32_t n)
{
	uint32_t *number = arg;

	return (*number)++ % n;
}

/* Queries under way: to one server, from all ports. */
static struct hydns_ports *claim_ports(uint64_t **word)
{
	const struct hydns_port_range range = { .first = FIRST, .count = PORTS, .resolver = 3, .seed = { 11, 12 } };
	struct hydns_path p = { .remote_port = 53, .local = { 192, 0, 2, 1 }, .remote = { 198, 51, 100, 53 } };
	struct hydns_ports *ports = hydns_ports_new(VETH_THREADS);
	int fd = memfd_create("words", MFD_CLOEXEC);
	uint32_t number = 0;

	if (!ports || ftruncate(fd, HYDNS_PORTS * sizeof(**word)) || hydns_ports_use(ports, fd, &range))
		return NULL;
	for (unsigned i = 0; i < PORTS; i++)
		if (!hydns_port_claim(hydns_ports_thread(ports, 0), &p, VETH_DEVICE, ports, in_turn, &number))
			return NULL;
	*word = mmap(NULL, HYDNS_PORTS * sizeof(**word), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return *word == MAP_FAILED ? NULL : ports;
}

int main(int argc, char **argv)
{
	static struct batch b;
	struct hydns_ports *ports;
	uint64_t *word, datagrams = 0, replies = 0;
	struct veth v;

	if (!veth_possible()) {
		fprintf(stderr, "skipped: needs root and AF_XDP\n");
		return 77;
	}
	b.run = fuzz_begin(argc, argv, COUNT_DEFAULT);
	veth_begin(&v);
	veth_run("ip link set far mtu 1600");          /* what near takes with a tag is sent without one, too */
	veth_choose(&v, 0);
	ports = claim_ports(&word);
	if (!ports)
		return 1;
	b.lanes = hydns_lanes_thread(v.lanes, 0);
	b.ports = hydns_ports_thread(ports, 0);
	for (; b.sent < b.run.count; b.sent += BATCH) {
		make_batch(&b);
		send_batch(&b, v.wire);
		receive_batch(&b);
		take_replies(&b, v.wire);
		datagrams += b.count;
		replies += b.replies;
	}
	printf("%" PRIu64 " frames, %" PRIu64 " of them datagrams, %" PRIu64 " sent back (seed %" PRIu64 ")\n", b.sent, datagrams,
	       replies, b.run.seed);
	munmap(word, HYDNS_PORTS * sizeof(*word));
	hydns_ports_free(ports);
	veth_end(&v);
	return datagrams == 0 || replies == 0;
}
