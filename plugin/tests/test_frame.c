/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Frames taken apart and put together: against frames of another implementation (Scapy), every bit of them turned, every
 * length, and a million random ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "plugin/queue/frame.h"
#include "plugin/tests/path_back.h"

#define MTU     1500
#define DNS     0x12, 0x34, 0x01, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 'w', 'w', 'w', 0x07, 'e', 'x', \
		'a', 'm', 'p', 'l', 'e', 0x00, 0x00, 0x01, 0x00
#define L2      14

/* 192.0.2.1 port 40000 -> 198.51.100.53 port 53 */
static const uint8_t ipv4[] = {
	0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00,
	0x45, 0x00, 0x00, 0x39, 0x43, 0x21, 0x00, 0x00, 0x40, 0x11, 0x4b, 0x29, 0xc0, 0x00, 0x02, 0x01, 0xc6, 0x33, 0x64, 0x35,
	0x9c, 0x40, 0x00, 0x35, 0x00, 0x25, 0x8d, 0x04, DNS, 0x01,
};
/* 2001:db8::1 port 40000 -> 2001:db8:53::53 port 53, tags 7 (802.1ad, priority 3) and 100, flow label 0x12345; an odd length */
static const uint8_t ipv6[] = {
	0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00, 0x00, 0x00, 0x01, 0x88, 0xa8, 0x60, 0x07, 0x81, 0x00, 0x00, 0x64,
	0x86, 0xdd, 0x60, 0x01, 0x23, 0x45, 0x00, 0x24, 0x11, 0x40, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x20, 0x01, 0x0d, 0xb8, 0x00, 0x53, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x53, 0x9c, 0x40, 0x00, 0x35, 0x00, 0x24, 0x1e, 0x58, DNS,
};
static const uint8_t dns[] = { DNS, 0x01 };

/* From an allocation of exactly len octets: a read beyond them is seen by AddressSanitizer and valgrind. */
static bool reads(struct hydns_datagram *d, const uint8_t *frame, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);
	bool good;

	assert_non_null(copy);
	memcpy(copy, frame, len);
	good = hydns_frame_read(d, copy, len, false);
	if (good)
		d->payload = frame + (d->payload - copy);
	free(copy);
	return good;
}

static void ipv4_is_read(void **state)
{
	struct hydns_datagram d;

	(void)state;
	assert_true(reads(&d, ipv4, sizeof(ipv4)));
	assert_false(d.path.ipv6);
	assert_int_equal(d.path.l2_len, L2);
	assert_memory_equal(d.path.l2, ipv4 + 6, 6);
	assert_memory_equal(d.path.l2 + 6, ipv4, 6);
	assert_memory_equal(d.path.remote, ((uint8_t[16]){ 192, 0, 2, 1 }), 16);
	assert_memory_equal(d.path.local, ((uint8_t[16]){ 198, 51, 100, 53 }), 16);
	assert_int_equal(d.path.remote_port, 40000);
	assert_int_equal(d.path.local_port, 53);
	assert_int_equal(d.len, sizeof(dns));
	assert_memory_equal(d.payload, dns, sizeof(dns));
	assert_int_equal(hydns_frame_payload(&d.path), d.payload - ipv4);
}

static void ipv6_with_tags_is_read(void **state)
{
	struct hydns_datagram d;

	(void)state;
	assert_true(reads(&d, ipv6, sizeof(ipv6)));
	assert_true(d.path.ipv6);
	assert_int_equal(d.path.l2_len, HYDNS_L2_MAX);
	assert_memory_equal(d.path.l2 + 12, ipv6 + 12, 10);
	assert_memory_equal(d.path.remote, ipv6 + 30, 16);
	assert_memory_equal(d.path.local, ipv6 + 46, 16);
	assert_int_equal(d.len, sizeof(dns) - 1);
	assert_memory_equal(d.payload, dns, sizeof(dns) - 1);
}

static void assert_written(const uint8_t *frame, size_t len, const struct hydns_ip_options *o)
{
	struct hydns_datagram d;
	struct hydns_path p;
	uint8_t out[sizeof(ipv6) + 8];

	assert_true(hydns_frame_read(&d, frame, len, false));
	p = path_back(&d.path);
	assert_int_equal(hydns_frame_len(&p, d.len, o->mtu), len);
	assert_int_equal(hydns_frame_write(out, len - 1, &p, o, d.payload, d.len), 0);
	assert_int_equal(hydns_frame_write(out, len, &p, o, d.payload, d.len), len);
	assert_memory_equal(out, frame, len);
	/* the payload is there already */
	memmove(out + hydns_frame_payload(&p), d.payload, d.len);
	memset(out, 0xee, hydns_frame_payload(&p));
	assert_int_equal(hydns_frame_write(out, sizeof(out), &p, o, out + hydns_frame_payload(&p), d.len), len);
	assert_memory_equal(out, frame, len);
}

static void frames_are_written_as_others_do(void **state)
{
	(void)state;
	assert_written(ipv4, sizeof(ipv4), &(struct hydns_ip_options){ .id = 0x4321, .hops = 64, .mtu = MTU });
	assert_written(ipv6, sizeof(ipv6), &(struct hydns_ip_options){ .flow = 0x12345, .hops = 64, .mtu = MTU });
}

static void dscp_stands_where_it_belongs(void **state)
{
	struct hydns_datagram d, again;
	uint8_t out[128];
	size_t len;

	(void)state;
	assert_true(hydns_frame_read(&d, ipv4, sizeof(ipv4), false));
	len = hydns_frame_write(out, sizeof(out), &d.path, &(struct hydns_ip_options){ .dscp = 46, .hops = 64, .mtu = MTU }, dns, sizeof(dns));
	assert_true(hydns_frame_read(&again, out, len, false));
	assert_int_equal(out[L2 + 1], 46 << 2);
	assert_true(hydns_frame_read(&d, ipv6, sizeof(ipv6), false));
	len = hydns_frame_write(out, sizeof(out), &d.path, &(struct hydns_ip_options){ .dscp = 46, .hops = 64, .mtu = MTU }, dns, sizeof(dns));
	assert_true(hydns_frame_read(&again, out, len, false));
	assert_int_equal((out[HYDNS_L2_MAX] & 15) << 4 | out[HYDNS_L2_MAX + 1] >> 4, 46 << 2);
}

/* A virtual interface hands over the sum of the pseudo-header alone: addresses, protocol, length. */
static void an_unfinished_checksum_counts_where_it_may(void **state)
{
	const uint8_t *frames[] = { ipv4, ipv6 };
	const size_t lens[] = { sizeof(ipv4), sizeof(ipv6) }, udp[] = { L2 + 20, HYDNS_L2_MAX + 40 };
	const size_t address[] = { L2 + 12, HYDNS_L2_MAX + 8 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint8_t frame[sizeof(ipv6) + sizeof(ipv4)];
		struct hydns_datagram d;
		uint32_t sum = 17 + (uint32_t)(frames[i][udp[i] + 4] << 8 | frames[i][udp[i] + 5]);

		memcpy(frame, frames[i], lens[i]);
		for (size_t at = address[i]; at < udp[i]; at += 2)
			sum += (uint32_t)(frame[at] << 8 | frame[at + 1]);
		sum = (sum & 0xffff) + (sum >> 16);
		sum = (sum & 0xffff) + (sum >> 16);
		frame[udp[i] + 6] = (uint8_t)(sum >> 8);
		frame[udp[i] + 7] = (uint8_t)sum;
		assert_false(hydns_frame_read(&d, frame, lens[i], false));
		assert_true(hydns_frame_read(&d, frame, lens[i], true));
		frame[udp[i] + 7] ^= 1;
		assert_false(hydns_frame_read(&d, frame, lens[i], true));
	}
}

/* Every bit from the IP header on is covered by a checksum or compared, but for what routers or hosts may change or
 * choose: traffic class, flow label and hop limit of IPv6. */
static void turned_bits_are_seen(void **state)
{
	static const struct { const uint8_t *frame; size_t len, l3; } frames[] = {
		{ ipv4, sizeof(ipv4), L2 }, { ipv6, sizeof(ipv6), HYDNS_L2_MAX },
	};

	(void)state;
	for (size_t f = 0; f < 2; f++) {
		for (size_t bit = frames[f].l3 * 8; bit < frames[f].len * 8; bit++) {
			size_t ip_bit = bit - frames[f].l3 * 8;
			bool free_to_choose = f == 1 && ((ip_bit >= 4 && ip_bit < 32) || ip_bit / 8 == 7);
			struct hydns_datagram d;
			uint8_t copy[sizeof(ipv6)];

			memcpy(copy, frames[f].frame, frames[f].len);
			copy[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
			assert_int_equal(reads(&d, copy, frames[f].len), free_to_choose);
		}
	}
}

static void every_length_is_survived(void **state)
{
	struct hydns_datagram d;

	(void)state;
	for (size_t len = 0; len < sizeof(ipv4); len++)
		assert_false(reads(&d, ipv4, len));
	for (size_t len = 0; len < sizeof(ipv6); len++)
		assert_false(reads(&d, ipv6, len));
}

static void padding_is_left_out(void **state)
{
	struct hydns_datagram d;
	uint8_t padded[sizeof(ipv4) + 9];

	(void)state;
	memset(padded, 0xff, sizeof(padded));
	memcpy(padded, ipv4, sizeof(ipv4));
	assert_true(reads(&d, padded, sizeof(padded)));
	assert_int_equal(d.len, sizeof(dns));
}

/* IPv4's header checksum, after a change of the header. */
static void seal(uint8_t *frame)
{
	uint32_t sum = 0;

	frame[L2 + 10] = frame[L2 + 11] = 0;
	for (size_t i = L2; i < L2 + 20; i += 2)
		sum += (uint32_t)frame[i] << 8 | frame[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	sum = ~sum;
	frame[L2 + 10] = (uint8_t)(sum >> 8);
	frame[L2 + 11] = (uint8_t)sum;
}

static bool reads_with(size_t at, uint8_t value)
{
	struct hydns_datagram d;
	uint8_t copy[sizeof(ipv4)];

	memcpy(copy, ipv4, sizeof(ipv4));
	copy[L2 + at] = value;
	seal(copy);
	return reads(&d, copy, sizeof(copy));
}

static void what_is_left_to_sockets(void **state)
{
	struct hydns_datagram d;
	uint8_t copy[sizeof(ipv6)];

	(void)state;
	assert_true(reads_with(8, 1));            /* the TTL: any */
	assert_true(reads_with(6, 0x40));         /* DF */
	assert_false(reads_with(6, 0x20));        /* more fragments */
	assert_false(reads_with(7, 1));           /* a later fragment */
	assert_false(reads_with(9, 6));           /* TCP */
	assert_false(reads_with(0, 0x46));        /* options */
	assert_false(reads_with(3, 27));          /* too short for UDP */
	memcpy(copy, ipv6, sizeof(ipv6));
	copy[HYDNS_L2_MAX + 6] = 0;               /* hop-by-hop options */
	assert_false(reads(&d, copy, sizeof(ipv6)));
	memcpy(copy, ipv4, sizeof(ipv4));
	copy[0] |= 1;                             /* a group */
	assert_false(reads(&d, copy, sizeof(ipv4)));
}

static void missing_checksum(void **state)
{
	struct hydns_datagram d;
	uint8_t copy[sizeof(ipv6)];

	(void)state;
	memcpy(copy, ipv4, sizeof(ipv4));
	copy[L2 + 26] = copy[L2 + 27] = 0;
	assert_true(reads(&d, copy, sizeof(ipv4)));
	copy[L2 + 25]--;                          /* UDP's length, which no checksum covers now */
	assert_false(reads(&d, copy, sizeof(ipv4)));
	memcpy(copy, ipv6, sizeof(ipv6));
	copy[HYDNS_L2_MAX + 46] = copy[HYDNS_L2_MAX + 47] = 0;
	assert_false(reads(&d, copy, sizeof(ipv6)));
}

/* A checksum that comes out as 0 is sent as 0xffff: 0 says that there is none. */
static void checksum_is_never_0(void **state)
{
	static const uint8_t payload[] = { 0x76, 0xfa };   /* found with Scapy, for the ends of the frame above */
	struct hydns_datagram d;
	struct hydns_path p;
	uint8_t out[64];
	size_t len;

	(void)state;
	assert_true(hydns_frame_read(&d, ipv4, sizeof(ipv4), false));
	p = path_back(&d.path);
	len = hydns_frame_write(out, sizeof(out), &p, &(struct hydns_ip_options){ .hops = 64, .mtu = MTU }, payload, sizeof(payload));
	assert_int_equal(len, L2 + 20 + 8 + 2);
	assert_int_equal(out[L2 + 26], 0xff);
	assert_int_equal(out[L2 + 27], 0xff);
	assert_true(hydns_frame_read(&d, out, len, false));
}

static void too_long_for_the_interface(void **state)
{
	struct hydns_datagram d;

	(void)state;
	assert_true(hydns_frame_read(&d, ipv4, sizeof(ipv4), false));
	assert_int_equal(hydns_frame_len(&d.path, MTU - 28, MTU), L2 + MTU);
	assert_int_equal(hydns_frame_len(&d.path, MTU - 27, MTU), 0);
	assert_int_equal(hydns_frame_len(&d.path, 0, 27), 0);
	assert_int_equal(hydns_frame_len(&d.path, SIZE_MAX, MTU), 0);
	assert_true(hydns_frame_read(&d, ipv6, sizeof(ipv6), false));
	assert_int_equal(hydns_frame_len(&d.path, HYDNS_IPV6_MTU_MIN - 48, 9000), HYDNS_L2_MAX + HYDNS_IPV6_MTU_MIN);
	assert_int_equal(hydns_frame_len(&d.path, HYDNS_IPV6_MTU_MIN - 47, 9000), 0);
	assert_int_equal(hydns_frame_len(&d.path, 1000, 1000), 0);
}

static void random_path(struct hydns_path *p)
{
	static const uint8_t l2_lens[] = { 14, 18, 22 };

	memset(p, 0, sizeof(*p));
	p->ipv6 = random() & 1;
	p->l2_len = l2_lens[random() % 3];
	for (size_t i = 0; i < 12; i++)
		p->l2[i] = (uint8_t)random();
	p->l2[0] &= 0xfe;
	p->l2[6] &= 0xfe;
	for (size_t i = 12; i + 2 < p->l2_len; i += 4) {
		memcpy(p->l2 + i, ((uint8_t[]){ 0x81, 0x00, 0x00, 0x64 }), 4);
	}
	memcpy(p->l2 + p->l2_len - 2, p->ipv6 ? (uint8_t[]){ 0x86, 0xdd } : (uint8_t[]){ 0x08, 0x00 }, 2);
	for (size_t i = 0; i < (p->ipv6 ? 16 : 4); i++) {
		p->local[i] = (uint8_t)random();
		p->remote[i] = (uint8_t)random();
	}
	p->local_port = (uint16_t)(1 + random() % 65535);
	p->remote_port = (uint16_t)(1 + random() % 65535);
}

static void what_is_written_is_read(void **state)
{
	uint8_t payload[MTU], out[MTU + HYDNS_L2_MAX];

	(void)state;
	srandom(1);
	for (int i = 0; i < 100000; i++) {
		struct hydns_ip_options o = { .id = (uint16_t)random(), .flow = (uint32_t)random(), .dscp = random() & 63, .hops = 64, .mtu = MTU };
		size_t n = (size_t)random() % (HYDNS_IPV6_MTU_MIN - 48), len;
		struct hydns_path p, came;
		struct hydns_datagram d;

		for (size_t j = 0; j < n; j++)
			payload[j] = (uint8_t)random();
		random_path(&p);
		len = hydns_frame_write(out, sizeof(out), &p, &o, payload, n);
		assert_int_equal(len, hydns_frame_len(&p, n, MTU));
		assert_true(hydns_frame_read(&d, out, len, false));
		came = path_back(&d.path);
		assert_memory_equal(&came, &p, sizeof(p));
		assert_int_equal(d.len, n);
		assert_memory_equal(d.payload, payload, n);
	}
}

/* Random changes of a good frame, resealed half of the time so that they get beyond the checksum. */
static void anything_is_survived(void **state)
{
	struct hydns_datagram d;

	(void)state;
	srandom(2);
	for (int i = 0; i < 1000000; i++) {
		uint8_t copy[sizeof(ipv6)];
		bool six = random() & 1;
		size_t len = six ? sizeof(ipv6) : sizeof(ipv4);

		memcpy(copy, six ? ipv6 : ipv4, len);
		for (long n = 1 + random() % 6; n; n--)
			copy[random() % (long)len] = (uint8_t)random();
		if (!six && (random() & 1))
			seal(copy);
		if (random() % 4 == 0)
			len = (size_t)random() % len;
		if (hydns_frame_read(&d, copy, len, false)) {
			assert_true(d.payload >= copy && d.payload + d.len <= copy + len);
			assert_true(d.path.l2_len <= HYDNS_L2_MAX);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_is_read),
		cmocka_unit_test(ipv6_with_tags_is_read),
		cmocka_unit_test(frames_are_written_as_others_do),
		cmocka_unit_test(dscp_stands_where_it_belongs),
		cmocka_unit_test(an_unfinished_checksum_counts_where_it_may),
		cmocka_unit_test(turned_bits_are_seen),
		cmocka_unit_test(every_length_is_survived),
		cmocka_unit_test(padding_is_left_out),
		cmocka_unit_test(what_is_left_to_sockets),
		cmocka_unit_test(missing_checksum),
		cmocka_unit_test(checksum_is_never_0),
		cmocka_unit_test(too_long_for_the_interface),
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(anything_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
