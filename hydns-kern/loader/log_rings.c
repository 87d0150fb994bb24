/* SPDX-License-Identifier: GPL-2.0-only */
/* Log rings: a BPF ring buffer for each resolver that logs its clients' messages. The map hydns_log_rings alone keeps them, so they
 * outlive hydnsd. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

static void forget(struct hydns_kern *k, __u32 i)
{
	if (k->log_fd[i] >= 0)
		close(k->log_fd[i]);
	k->log_fd[i] = -1;
}

void hydns_log_rings_close(struct hydns_kern *k)
{
	for (__u32 i = 0; i < HYDNS_RESOLVERS; i++)
		forget(k, i);
}

/* The kernel returns from a change of this map when no program uses its former value. */
int hydns_kern_log_ring_new(struct hydns_kern *k, __u32 i, __u32 octets, int *map_fd, char why[HYDNS_WHY])
{
	int fd, err = 0;

	if (octets < HYDNS_LOG_RING_LEAST || octets > HYDNS_LOG_RING_MOST || (octets & (octets - 1)))
		return hydns_fail(why, -EINVAL, "a log ring of %u octets: it must be a power of 2 from %u to %u", octets,
				  HYDNS_LOG_RING_LEAST, HYDNS_LOG_RING_MOST);
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "hydns_log_ring", 0, 0, octets, NULL);
	if (fd < 0)
		return hydns_fail(why, fd, "can't make a log ring: %s", strerror(-fd));
	*map_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (*map_fd < 0 || bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_log_rings), &i, &fd, BPF_ANY))
		err = -errno;
	if (err) {
		if (*map_fd >= 0)
			close(*map_fd);
		close(fd);
		return hydns_fail(why, err, "can't use a log ring: %s", strerror(-err));
	}
	forget(k, i);
	k->log_fd[i] = fd;
	return 0;
}

void hydns_kern_log_ring_delete(struct hydns_kern *k, __u32 i)
{
	struct hydns_log_count *zero = calloc(hydns_kern_geometry(k)->cpus, sizeof(*zero));

	bpf_map_delete_elem(bpf_map__fd(k->skel->maps.hydns_log_rings), &i);
	forget(k, i);
	if (zero)
		bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_logs), &i, zero, BPF_ANY);
	free(zero);
}

int hydns_kern_log_counts(struct hydns_kern *k, __u32 i, struct hydns_log_count *sum)
{
	return hydns_percpu_sum(bpf_map__fd(k->skel->maps.hydns_logs), hydns_kern_geometry(k)->cpus, i,
				sizeof(*sum) / sizeof(__u64), (__u64 *)sum);
}
