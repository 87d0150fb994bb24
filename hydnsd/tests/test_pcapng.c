/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The octets of a pcap-ng file. That others read it, test-harness/tests/test_capture.py shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/capture/pcapng.h"

static struct {
	char *octets;
	size_t len;
	struct pcapng p;
} file;

static FILE *begin(void)
{
	FILE *f = open_memstream(&file.octets, &file.len);

	assert_non_null(f);
	return f;
}

/* The block that begins at *at has this type, and says its size at both ends. Returns its body. */
static const char *block(size_t *at, uint32_t type, uint32_t size)
{
	uint32_t head[2], tail;
	const char *body = file.octets + *at + sizeof(head);

	assert_true(*at + size <= file.len);
	memcpy(head, file.octets + *at, sizeof(head));
	memcpy(&tail, file.octets + *at + size - sizeof(tail), sizeof(tail));
	assert_int_equal(head[0], type);
	assert_int_equal(head[1], size);
	assert_int_equal(tail, size);
	*at += size;
	return body;
}

static void test_blocks(void **state)
{
	static const char section[] = "\x4d\x3c\x2b\x1a\1\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\4\0\5\0hydns\0\0\0\0\0\0";
	static const char interface[] = "\1\0\0\0\xff\7\0\0\2\0\4\0eth0\11\0\1\0\11\0\0\0\0\0\0";
	static const char packet[] = "\0\0\0\0\2\0\0\0\1\0\0\0\3\0\0\0\x40\0\0\0abc\0\2\0\4\0\2\0\0\0\1\0\6\0passed\0\0\0\0\0";
	static const char statistics[] = "\0\0\0\0\0\0\0\0\5\0\0\0\4\0\10\0\6\0\0\0\0\0\0\0\5\0\10\0\7\0\0\0\0\0\0\0\0\0\0";
	const struct pcapng_packet abc = {.at_ns = (2ULL << 32) + 1, .octets = "abc", .len = 3, .whole = 64,
					  .direction = PCAPNG_OUTBOUND, .comment = "passed"};
	FILE *f = begin();
	size_t at = 0;

	(void)state;
	pcapng_begin(&file.p, f, "hydns");
	pcapng_interface(&file.p, "eth0", 2047);
	pcapng_packet(&file.p, &abc);
	pcapng_statistics(&file.p, 0, 5, 6, 7);
	fclose(f);
	assert_false(file.p.failed);
	assert_int_equal(file.p.written, file.len);
	assert_memory_equal(block(&at, 0x0a0d0d0a, 12 + sizeof(section)), section, sizeof(section));
	assert_memory_equal(block(&at, 1, 12 + sizeof(interface)), interface, sizeof(interface));
	assert_int_equal(pcapng_packet_size(&abc), 12 + sizeof(packet));
	assert_memory_equal(block(&at, 6, 12 + sizeof(packet)), packet, sizeof(packet));
	assert_memory_equal(block(&at, 5, 12 + sizeof(statistics)), statistics, sizeof(statistics));
	assert_int_equal(at, file.len);
	free(file.octets);
}

/* A comment that is too long is cut, and every length is padded. */
static void test_lengths(void **state)
{
	char comment[PCAPNG_COMMENT + 100];

	(void)state;
	memset(comment, 'c', sizeof(comment));
	comment[sizeof(comment) - 1] = 0;
	for (uint32_t len = 0; len < 9; len++) {
		const struct pcapng_packet p = {.octets = "abcdefgh", .len = len, .whole = len, .direction = PCAPNG_INBOUND,
						.comment = len & 1 ? comment : comment + sizeof(comment) - 1 - len};
		FILE *f = begin();
		uint64_t before;
		size_t at;

		pcapng_begin(&file.p, f, "");
		at = before = file.p.written;
		pcapng_packet(&file.p, &p);
		assert_int_equal(file.p.written - before, pcapng_packet_size(&p));
		fclose(f);
		block(&at, 6, pcapng_packet_size(&p));
		free(file.octets);
	}
}

static void test_full_device(void **state)
{
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	setvbuf(f, NULL, _IONBF, 0);
	pcapng_begin(&file.p, f, "hydns");
	assert_true(file.p.failed);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocks), cmocka_unit_test(test_lengths), cmocka_unit_test(test_full_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
