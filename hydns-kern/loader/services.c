/* SPDX-License-Identifier: GPL-2.0-only */
/* Services: which addresses and ports belong to which resolver. */
#include <errno.h>
#include <stdlib.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

/* Advances the serial that ends what CPUs remember of services. hydnsd is the only writer, so read and write need no lock. */
static int advance_serial(struct hydns_kern *k)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_svcserial), err;
	__u32 zero = 0;
	__u64 serial;

	/* A program that sees the new serial must see the change: system calls are not barriers on every architecture. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	err = bpf_map_lookup_elem(fd, &zero, &serial);
	if (err)
		return err;
	serial++;
	return bpf_map_update_elem(fd, &zero, &serial, BPF_ANY);
}

int hydns_kern_service_set(struct hydns_kern *k, const struct hydns_service_key *key, __u32 resolver)
{
	struct hydns_service value = { .resolver = resolver };
	int err;

	if (resolver >= HYDNS_RESOLVERS)
		return -EINVAL;
	err = bpf_map_update_elem(bpf_map__fd(k->skel->maps.hydns_services), key, &value, BPF_ANY);
	return err ? err : advance_serial(k);
}

int hydns_kern_service_delete(struct hydns_kern *k, const struct hydns_service_key *key)
{
	int err = bpf_map_delete_elem(bpf_map__fd(k->skel->maps.hydns_services), key);

	return err ? err : advance_serial(k);
}

/* All keys are read before the first call of fn, so fn may delete and add services. */
int hydns_kern_service_each(struct hydns_kern *k,
			    int (*fn)(const struct hydns_service_key *, __u32 resolver, void *), void *arg)
{
	int fd = bpf_map__fd(k->skel->maps.hydns_services), stop = 0;
	struct hydns_service_key *keys = calloc(HYDNS_SERVICES, sizeof(*keys)), *last = NULL;
	struct hydns_service value;
	unsigned n = 0;

	if (!keys)
		return -ENOMEM;
	while (n < HYDNS_SERVICES && !bpf_map_get_next_key(fd, last, &keys[n]))
		last = &keys[n++];
	for (unsigned i = 0; i < n && !stop; i++)
		if (!bpf_map_lookup_elem(fd, &keys[i], &value))
			stop = fn(&keys[i], value.resolver, arg);
	free(keys);
	return 0;
}
