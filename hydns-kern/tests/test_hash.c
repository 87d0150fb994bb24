/* SPDX-License-Identifier: GPL-2.0-only */
/* The key hash against vectors of another implementation, and lower-casing against a plain function. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include "hydns/common.h"
#include "hydns/hash.h"
#include "hydns/nsec3.h"
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

/* -- NSEC3 ------------------------------------------------------------------------------------------------------- */
static void sha1_is(const char *message, size_t len, const char *hex)
{
	struct hydns_sha1 s = { 0 };
	__u8 out[HYDNS_SHA1_OCTETS];
	char text[2 * HYDNS_SHA1_OCTETS + 1];

	hydns_sha1_octets(&s, (const __u8 *)message, (unsigned)len, out);
	for (unsigned i = 0; i < HYDNS_SHA1_OCTETS; i++)
		sprintf(text + 2 * i, "%02x", out[i]);
	assert_string_equal(text, hex);
}

/* FIPS 180-2, appendix A, and RFC 3174, section 7.3. */
static void sha1_matches_vectors(void **state)
{
	static char as[1000000];

	(void)state;
	memset(as, 'a', sizeof(as));
	sha1_is("", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
	sha1_is("abc", 3, "a9993e364706816aba3e25717850c26c9cd0d89d");
	sha1_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, "84983e441c3bd26ebaae4aa1f95129e5e54670f1");
	sha1_is(as, sizeof(as), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* RFC 5155, appendix A. */
static void names_have_the_hashes_of_the_rfc(void **state)
{
	static const struct { const char *name, *hash; } rows[] = {
		{ "\7example", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom" }, { "\1a\7example", "35mthgpgcu1qg68fab165klnsnk3dpvl" },
		{ "\2ai\7example", "gjeqe526plbf1g8mklp59enfd789njgi" }, { "\3ns1\7example", "2t7b4g4vsa5smi47k61mv5bv1a22bojr" },
		{ "\1*\1w\7example", "r53bq7cc2uvmubfu5ocmm6pers9tk9en" }, { "\1x\1y\1w\7example", "2vptu5timamqttgl4luu9kg21e0aor3s" },
		{ "\2xx\7example", "t644ebqk9bibcna874givr6joj62mlhv" },
	};
	const struct hydns_nsec3 how = { .iterations = 12, .salt_len = 4, .salt = { 0xaa, 0xbb, 0xcc, 0xdd } };

	(void)state;
	for (unsigned i = 0; i < COUNT(rows); i++) {
		__u8 hash[HYDNS_SHA1_OCTETS], back[HYDNS_SHA1_OCTETS], label[1 + HYDNS_HASHED_LABEL], name[HYDNS_HASHED_LEN + 3];

		hydns_nsec3_hash((const __u8 *)rows[i].name, (unsigned)strlen(rows[i].name) + 1, &how, hash);
		hydns_hash_to_label(hash, label);
		assert_int_equal(label[0], HYDNS_HASHED_LABEL);
		assert_memory_equal(label + 1, rows[i].hash, HYDNS_HASHED_LABEL);
		assert_true(hydns_hash_of_label(label, back));
		assert_memory_equal(back, hash, sizeof(hash));
		for (unsigned n = 1; n < sizeof(label); n++)
			label[n] = label[n] >= 'a' ? label[n] - 32 : label[n];
		assert_true(hydns_hash_of_label(label, back));
		assert_memory_equal(back, hash, sizeof(hash));
		hydns_hashed_name(hash, name);
		memcpy(name + HYDNS_HASHED_LEN, "\1", 2);
		assert_true(hydns_is_hashed_name(name, sizeof(name), back));
		assert_memory_equal(back, hash, sizeof(hash));
	}
}

static void other_labels_are_no_hashes(void **state)
{
	const __u8 hash[HYDNS_SHA1_OCTETS] = { 0 };
	__u8 label[1 + HYDNS_HASHED_LABEL], out[HYDNS_SHA1_OCTETS], name[HYDNS_HASHED_LEN + 1] = { 0 };

	(void)state;
	hydns_hash_to_label(hash, label);
	for (unsigned i = 0; i < sizeof(label); i++) {
		const __u8 was = label[i];

		for (const char *c = "w/:@W[`{\37\41\300"; *c; c++) {
			label[i] = (__u8)*c;
			assert_false(hydns_hash_of_label(label, out));
		}
		label[i] = was;
	}
	assert_true(hydns_hash_of_label(label, out));
	hydns_hashed_name(hash, name);
	assert_true(hydns_is_hashed_name(name, sizeof(name), out));      /* below the root */
	assert_false(hydns_is_hashed_name(name, sizeof(name) - 1, out));
	name[HYDNS_HASHED_LEN - 1] = 'x';
	assert_false(hydns_is_hashed_name(name, sizeof(name), out));
}

static void what_the_program_computes(void **state)
{
	(void)state;
	assert_true(hydns_nsec3_fits(1, HYDNS_NSEC3_ITERATIONS_MOST, HYDNS_NSEC3_SALT_MOST));
	assert_false(hydns_nsec3_fits(2, 0, 0));
	assert_false(hydns_nsec3_fits(1, HYDNS_NSEC3_ITERATIONS_MOST + 1, 0));
	assert_false(hydns_nsec3_fits(1, 0, HYDNS_NSEC3_SALT_MOST + 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lower8_is_the_plain_way),
		cmocka_unit_test(sip_rounds_are_siphash),
		cmocka_unit_test(key_hash_matches_golden_vectors),
		cmocka_unit_test(other_bucket_is_another_and_its_own_inverse),
		cmocka_unit_test(sha1_matches_vectors), cmocka_unit_test(names_have_the_hashes_of_the_rfc),
		cmocka_unit_test(other_labels_are_no_hashes), cmocka_unit_test(what_the_program_computes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
