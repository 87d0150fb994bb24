/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Reads a BPF ring buffer, as the kernel lays it out: a page with the reader's position, one with the writer's, and the data twice in
 * a row, so that each record is in one piece. What is read keeps its place until it is done with. */
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "plugin/dnstap/dnstap.h"

/* The size of a ring buffer is in its fdinfo: asking for it by bpf(2) would need rights that a resolver has not. */
static size_t ring_size(int map_fd)
{
	unsigned size = 0, type = 0, n;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", map_fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "map_type: %u", &n) == 1)
			type = n;
		if (sscanf(line, "max_entries: %u", &n) == 1)
			size = n;
	}
	if (f)
		fclose(f);
	return type == BPF_MAP_TYPE_RINGBUF && (size & (size - 1)) == 0 ? size : 0;
}

bool hydns_log_reader_open(struct hydns_log_reader *r, int map_fd)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = ring_size(map_fd);
	void *own, *theirs;

	if (size < page) {
		errno = EINVAL;
		return false;
	}
	own = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, map_fd, 0);
	if (own == MAP_FAILED)
		return false;
	theirs = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, map_fd, (off_t)page);
	if (theirs == MAP_FAILED) {
		munmap(own, page);
		return false;
	}
	*r = (struct hydns_log_reader){ .fd = map_fd, .size = size, .page = page, .consumer = own, .producer = theirs,
					.data = (const uint8_t *)theirs + page };
	hydns_log_reader_again(r);
	return true;
}

void hydns_log_reader_close(struct hydns_log_reader *r)
{
	if (r->fd < 0)
		return;
	munmap((void *)r->consumer, r->page);
	munmap((void *)(uintptr_t)(r->data - r->page), r->page + 2 * r->size);
	close(r->fd);
	*r = (struct hydns_log_reader){ .fd = -1 };
}

static bool is_record(const struct hydns_logged *r, size_t len)
{
	return len >= sizeof(*r) && r->query_len > HYDNS_LOGGED_NAME && r->query_len <= HYDNS_QUERY_MAX && r->reply_len >= 12 &&
	       r->reply_len <= HYDNS_LOGGED_REPLY &&
	       len - sizeof(*r) >= (size_t)r->query_len + r->reply_len;
}

const struct hydns_logged *hydns_log_reader_next(struct hydns_log_reader *r, size_t *len)
{
	while (r->fd >= 0 && r->at < atomic_load_explicit(r->producer, memory_order_acquire)) {
		const uint8_t *at = r->data + (r->at & (r->size - 1));
		uint32_t head = atomic_load_explicit((const _Atomic uint32_t *)at, memory_order_acquire);
		const struct hydns_logged *record = (const void *)(at + BPF_RINGBUF_HDR_SZ);

		if (head & BPF_RINGBUF_BUSY_BIT)
			return NULL;
		*len = head & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		r->at += (*len + BPF_RINGBUF_HDR_SZ + 7) & ~7ULL;
		if (!(head & BPF_RINGBUF_DISCARD_BIT) && is_record(record, *len))
			return record;
	}
	return NULL;
}

size_t hydns_logged_name(const struct hydns_logged *r)
{
	const uint8_t *query = (const uint8_t *)(r + 1);
	size_t at = HYDNS_LOGGED_NAME;

	while (at < r->query_len && query[at])
		at += (size_t)query[at] + 1;
	return at + 1 - HYDNS_LOGGED_NAME;
}

void hydns_log_reader_done(struct hydns_log_reader *r)
{
	if (r->fd >= 0)
		atomic_store_explicit(r->consumer, r->at, memory_order_release);
}

void hydns_log_reader_again(struct hydns_log_reader *r)
{
	if (r->fd >= 0)
		r->at = atomic_load_explicit(r->consumer, memory_order_relaxed);
}
