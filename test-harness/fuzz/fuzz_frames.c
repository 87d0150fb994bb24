/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hostile frames through plugin/queue/frame.c, with sanitizers: a frame of any length and content is read from memory that ends
 * with it. What is a datagram is written as a reply, and read once more: the ends are exchanged, the payload is the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "plugin/queue/frame.h"
#include "plugin/tests/path_back.h"
#include "test-harness/fuzz/frames.h"
#include "test-harness/fuzz/target.h"

#define COUNT_DEFAULT 200000           /* a share small enough for every test run */

static const char *write_and_read(const struct hydns_datagram *d)
{
	const struct hydns_ip_options o = { .dscp = (uint8_t)fuzz_below(64), .hops = 64, .id = 7, .flow = fuzz_below(1 << 20),
					    .mtu = (uint16_t)(576 + fuzz_below(FRAMES_MTU - 576 + 1)) };
	const size_t room = hydns_frame_len(&d->path, d->len, o.mtu);
	uint8_t *out = malloc(room + 1);
	const char *wrong = NULL;
	struct hydns_path back;
	struct hydns_datagram r;

	if (room && hydns_frame_write(out, room - 1, &d->path, &o, d->payload, d->len))
		wrong = "written where there is no room";
	else if (hydns_frame_write(out, room, &d->path, &o, d->payload, d->len) != room)
		wrong = "written with another length";
	else if (room && (out[0] & 1 || out[6] & 1))
		wrong = "sent to or from a group";
	else if (room && !hydns_frame_read(&r, out, room, false))
		wrong = "written and not read";
	else if (room) {
		back = path_back(&d->path);
		if (r.len != d->len || memcmp(r.payload, d->payload, d->len) != 0)
			wrong = "another payload";
		else if (memcmp(&r.path, &back, sizeof(back)) != 0)
			wrong = "another path";
	}
	free(out);
	return wrong;
}

static uint64_t frames, datagrams;

static const char *turn(void)
{
	uint8_t frame[FRAMES_MOST];
	const size_t len = frames_next(frame, 0);
	uint8_t *exact = malloc(len ? len : 1);
	struct hydns_datagram d;
	const char *wrong = NULL;

	memcpy(exact, frame, len);
	if (hydns_frame_read(&d, exact, len, fuzz_below(2))) {
		datagrams++;
		if (d.payload < exact || d.payload + d.len > exact + len)
			wrong = "a payload beyond the frame";
		else
			wrong = write_and_read(&d);
	}
	if (wrong)
		frames_show(frame, len);
	free(exact);
	frames++;
	return wrong;
}

static int end(void)
{
	printf("%" PRIu64 " frames, %" PRIu64 " of them datagrams\n", frames, datagrams);
	return datagrams == 0 || datagrams == frames;
}

const struct fuzz_target fuzz_target = { .name = "frames", .one = "frame", .count = COUNT_DEFAULT, .turn = turn, .end = end };
