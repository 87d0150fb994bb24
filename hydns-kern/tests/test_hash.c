/* SPDX-License-Identifier: GPL-2.0-only */
/* The key hash against vectors of another implementation, and lower-casing against a plain function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "hydns/common.h"
#include "hydns/hash.h"
#include "hydns-kern/tests/hash_vectors.h"
#include "hydns-kern/tests/plain_sip.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static unsigned char plain_lower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? c + 32 : c;
}

static void lower8_is_the_plain_way(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 200000; round++) {
		unsigned char in[8], out[8];
		__u64 w;

		for (int i = 0; i < 8; i++)
			in[i] = (unsigned char)(round < 256 ? round : rand());
		memcpy(&w, in, 8);
		w = hydns_lower8(w);
		memcpy(out, &w, 8);
		for (int i = 0; i < 8; i++)
			assert_int_equal(out[i], plain_lower(in[i]));
	}
}

static void sip_rounds_are_siphash(void **state)
{
	const __u64 key[2] = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL };
	unsigned char m[64];

	(void)state;
	for (unsigned i = 0; i < sizeof(m); i++)
		m[i] = (unsigned char)i;
	for (unsigned i = 0; i < COUNT(hydns_sip13_vectors); i++)
		assert_true(plain_sip(m, hydns_sip13_vectors[i].len, key, hydns_sip_word, hydns_sip_end) ==
			    hydns_sip13_vectors[i].hash);
}

static void key_hash_matches_golden_vectors(void **state)
{
	(void)state;
	for (unsigned i = 0; i < COUNT(hydns_hash_vectors); i++) {
		__u8 name[HYDNS_NAME_MAX];
		const __u64 seed[2] = { hydns_hash_vectors[i].seed[0], hydns_hash_vectors[i].seed[1] };

		assert_true(hydns_hash_vectors[i].name_len <= sizeof(name));
		for (unsigned at = 0; at < hydns_hash_vectors[i].name_len; at++)
			name[at] = plain_lower((unsigned char)hydns_hash_vectors[i].name[at]);
		assert_true(hydns_key_hash(name, (__u8)hydns_hash_vectors[i].name_len,
					   htons(hydns_hash_vectors[i].qtype),
					   hydns_hash_vectors[i].variant,
					   hydns_hash_vectors[i].resolver, seed) ==
			    hydns_hash_vectors[i].hash);
	}
}

static void other_bucket_is_another_and_its_own_inverse(void **state)
{
	(void)state;
	srand(2);
	for (int i = 0; i < 100000; i++) {
		__u32 mask = (1U << (1 + rand() % 24)) - 1, fp = (__u32)rand() * 3U, b = (__u32)rand() & mask;
		__u32 other = hydns_bucket_other(b, fp, mask);

		assert_true(other <= mask && other != b);
		assert_int_equal(hydns_bucket_other(other, fp, mask), b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lower8_is_the_plain_way),
		cmocka_unit_test(sip_rounds_are_siphash),
		cmocka_unit_test(key_hash_matches_golden_vectors),
		cmocka_unit_test(other_bucket_is_another_and_its_own_inverse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
