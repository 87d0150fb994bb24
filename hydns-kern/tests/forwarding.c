/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include "forwarding.h"
#include "hydns/hash.h"
#include "hydns-kern/loader/kern.h"

const uint8_t server4[4] = { 198, 51, 100, 9 }, source4[4] = { 192, 0, 2, 77 };
const uint8_t server6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 9 }, source6[16] = { 0x20, 0x01, 0x0d, 0xb8, [15] = 77 };
const uint8_t hop_mac[6] = { 2, 0, 0, 0, 0, 9 }, own_mac[6] = { 2, 0, 0, 0, 0, 77 };

/* The hash as the loader makes it. */
void forwarding_zone(struct forwarding *f, const char *name, __u32 upstreams, bool add)
{
	const __u64 *seed = kernel_geometry(f->parking.k)->seed;
	struct hydns_forward_zone value = { .upstreams = upstreams, .zone = ZONE };
	struct hydns_forward_zone_key key = { .hash = HYDNS_FORWARD_HASH_ROOT(seed), .number = NUMBER, .resolver = RESOLVER };
	int map = kernel_map(f->parking.k, "hydns_fwd_zones");
	__u64 label[128];
	__u32 labels = 0;
	__u8 wire[256];

	name_wire(name, wire);
	for (unsigned at = 0; wire[at]; at += 1U + wire[at]) {
		label[labels] = HYDNS_FORWARD_LABEL(seed);
		for (unsigned i = 1; i <= wire[at]; i++)
			label[labels] = HYDNS_FORWARD_OCTET(label[labels], (__u64)wire[at + i]);
		labels++;
	}
	for (unsigned i = labels; i; i--)
		key.hash = HYDNS_FORWARD_NAME(key.hash, label[i - 1]);
	if (add) {
		assert_int_equal(bpf_map_update_elem(map, &key, &value, BPF_ANY), 0);
		f->told->depths |= 1U << labels;
	} else {
		bpf_map_delete_elem(map, &key);
	}
}

static void to_mapped(__u8 addr[16], const uint8_t ipv4[4])
{
	memset(addr, 0, 10);
	memset(addr + 10, 0xff, 2);
	memcpy(addr + 12, ipv4, 4);
}

void forwarding_way(struct forwarding *f, unsigned upstream, bool ipv6)
{
	struct hydns_forward_way *w = &f->told->way[upstream];

	*w = (struct hydns_forward_way){ .port = htons(53), .ifindex = PARKED_HERE };
	if (ipv6) {
		memcpy(w->addr, server6, 16);
		memcpy(w->source, source6, 16);
	} else {
		to_mapped(w->addr, server4);
		to_mapped(w->source, source4);
	}
	memcpy(w->macs, hop_mac, 6);
	memcpy(w->macs + 6, own_mac, 6);
	f->told->usable |= 1U << upstream;
}

void forwarding_open(struct forwarding *f, struct kernel *k)
{
	struct hydns_mapping m;

	parking_open(&f->parking, k);
	f->parking.k = k;
	assert_int_equal(hydns_map_memory(kernel_map(k, "hydns_forward"), true, &m), 0);
	f->told = (struct hydns_forwarding *)m.at + RESOLVER;
	*f->told = (struct hydns_forwarding){ .number = NUMBER };
	forwarding_way(f, SERVER, false);
	forwarding_zone(f, "example.com", 1U << SERVER, true);
	kernel_page(k)->forward = NUMBER;
	kernel_page(k)->generation = GENERATION;
	kernel_upstream(k, FIRST, PORTS);
}

static void empty(const struct kernel *k, const char *name)
{
	__u8 key[64];

	while (!bpf_map_get_next_key(kernel_map(k, name), NULL, key))
		bpf_map_delete_elem(kernel_map(k, name), key);
}

void forwarding_close(struct forwarding *f)
{
	struct kernel *k = f->parking.k;
	const __u64 none = 0;

	empty(k, "hydns_fwd_open");
	empty(k, "hydns_fwd_zones");
	for (__u32 port = FIRST; port < FIRST + PORTS; port++)
		bpf_map_update_elem(kernel_map(k, "hydns_ports"), &port, &none, BPF_ANY);
	kernel_page(k)->forward = 0;
	kernel_page(k)->epoch = EPOCH;
	kernel_config(k, NULL);
	parking_close(&f->parking);
}

struct frame forwarding_reply(const struct frame *request, bool ipv6)
{
	struct frame f = *request;
	uint8_t *ip = f.data + f.l3, addr[16], port[2];
	size_t at = ipv6 ? 8 : 12, len = ipv6 ? 16 : 4;

	memcpy(addr, ip + at, len);
	memcpy(ip + at, ip + at + len, len);
	memcpy(ip + at + len, addr, len);
	memcpy(port, f.data + f.udp, 2);
	memcpy(f.data + f.udp, f.data + f.udp + 2, 2);
	memcpy(f.data + f.udp + 2, port, 2);
	f.data[f.dns + 2] = 0x81;
	f.data[f.dns + 3] = 0x80;
	frame_seal(&f);
	return f;
}

void forwarding_tags(struct frame *f, const uint8_t *tags, size_t len)
{
	if (!len)
		return;
	memmove(f->data + 12 + len, f->data + 12, f->len - 12);
	memcpy(f->data + 12, tags, len);
	f->len += len;
	f->l3 += len;
	f->udp += len;
	f->dns += len;
}
