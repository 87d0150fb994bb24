/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The producer's side of a ring (hydns/ring.h): one thread writes frames, hydnsd copies them out. Never waits: if
 * the ring is full, the frame is not written.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "plugin/offers/offers.h"

static int ring_memfd(void)
{
	int fd = memfd_create("hydns-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	/* Sealed, so that hydnsd, which maps it, does not fault on a shrunk file. */
	if (ftruncate(fd, HYDNS_RING_SIZE) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
		int error = -errno;

		close(fd);
		return error;
	}
	return fd;
}

int hydns_producer_open(struct hydns_producer *r)
{
	int fd = ring_memfd();
	void *map;

	if (fd < 0)
		return fd;
	map = mmap(NULL, HYDNS_RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		int error = -errno;

		close(fd);
		return error;
	}
	*r = (struct hydns_producer){ .ring = map, .fd = fd };
	return 0;
}

void hydns_producer_close(struct hydns_producer *r)
{
	if (!r->ring)
		return;
	munmap(r->ring, HYDNS_RING_SIZE);
	close(r->fd);
	r->ring = NULL;
}

static struct hydns_frame *frame_at(const struct hydns_producer *r, uint32_t position)
{
	uint8_t *data = (uint8_t *)r->ring + HYDNS_RING_DATA;

	return (struct hydns_frame *)(data + (position & (HYDNS_RING_BYTES - 1)));
}

void *hydns_producer_reserve(struct hydns_producer *r, uint32_t len, uint32_t spare)
{
	uint32_t used = r->head - __atomic_load_n(&r->ring->tail, __ATOMIC_ACQUIRE);
	uint32_t to_end = HYDNS_RING_BYTES - (r->head & (HYDNS_RING_BYTES - 1));
	uint32_t pad = len > to_end ? to_end : 0;

	/* More than the size: the tail is broken. Taken as full. */
	if (used > HYDNS_RING_BYTES || HYDNS_RING_BYTES - used < len + pad + spare) {
		__atomic_store_n(&r->ring->dropped, r->ring->dropped + 1, __ATOMIC_RELAXED);
		return NULL;
	}
	if (pad) {
		*frame_at(r, r->head) = (struct hydns_frame){ .len = pad, .type = HYDNS_FRAME_PAD };
		r->head += pad;        /* published together with the frame that follows */
	}
	return frame_at(r, r->head);
}

uint32_t hydns_producer_peek(const struct hydns_producer *r, uint32_t position, uint32_t end, void *out, size_t room)
{
	uint32_t left = end - position, in_one_piece = HYDNS_RING_BYTES - (position & (HYDNS_RING_BYTES - 1));
	struct hydns_frame head;

	if (left < sizeof(head) || left > HYDNS_RING_BYTES || position % 8)
		return 0;
	memcpy(&head, frame_at(r, position), sizeof(head));
	if (head.len < sizeof(head) || head.len % 8 || head.len > left || head.len > in_one_piece)
		return 0;
	memcpy(out, frame_at(r, position), head.len < room ? head.len : room);
	memcpy(out, &head, sizeof(head)); /* as it was checked, whatever hydnsd has written since */
	return head.len;
}

bool hydns_producer_roomy(const struct hydns_producer *r)
{
	return r->head - __atomic_load_n(&r->ring->tail, __ATOMIC_ACQUIRE) < HYDNS_RING_BYTES / 2;
}

/* Whether hydnsd asks for the doorbell after a frame of this type. */
static bool wakes(const struct hydns_producer *r, uint32_t type)
{
	switch (__atomic_load_n(&r->ring->need_wakeup, __ATOMIC_RELAXED)) {
	case HYDNS_WAKEUP_ALL:
		return true;
	case HYDNS_WAKEUP_CHANGES:
		return type != HYDNS_FRAME_OFFER ||
		       r->head - __atomic_load_n(&r->ring->tail, __ATOMIC_RELAXED) > HYDNS_RING_PATIENT;
	default:
		return false;
	}
}

bool hydns_producer_commit(struct hydns_producer *r, uint32_t len)
{
	const uint32_t type = frame_at(r, r->head)->type;

	r->head += len;
	__atomic_store_n(&r->ring->head, r->head, __ATOMIC_RELEASE);
	/* Either hydnsd, about to sleep, sees this head, or this thread sees its need_wakeup. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return wakes(r, type) &&
	       __atomic_exchange_n(&r->ring->need_wakeup, HYDNS_WAKEUP_NONE, __ATOMIC_SEQ_CST) != HYDNS_WAKEUP_NONE;
}
