/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>
#include "feed.h"

static void put(const struct frame *f)
{
	uint16_t len = htons(f->len);

	fwrite(&len, sizeof(len), 1, stdout);
	fwrite(f->data, 1, f->len, stdout);
}

void feed_rule(const struct query *q)
{
	struct query other = *q;
	struct frame f;

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		other.ipv6 = ipv6;
		frame_query(&f, &other);
		put(&f);
	}
}

static int get(struct frame *f)
{
	uint16_t len;

	memset(f, 0, sizeof(*f));
	if (fread(&len, sizeof(len), 1, stdin) != 1)
		return 0;
	f->len = ntohs(len);
	return f->len <= FRAME_MAX && fread(f->data, 1, f->len, stdin) == f->len ? 1 : -1;
}

int feed(struct kernel *k)
{
	struct frame f = { .len = 0 };
	int more;

	put(&f);
	while ((more = get(&f)) > 0) {
		int action = kernel_shoot(k, &f);

		putchar(action < 0 ? FEED_NOT_RUN : action);
		put(&f);
	}
	if (more < 0)
		fprintf(stderr, "input ends within a frame, or a frame has more than %d octets\n", FRAME_MAX);
	return more < 0;
}
