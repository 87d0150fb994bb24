/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Prints the structs and numbers of the C code that Python uses, as one JSON object: "structs" by name, with size and fields
 * {name: [offset, octets of an element, elements]}; and "numbers".
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "hydns/parking.h"
#include "hydns/resolver.h"
#include "hydns/ring.h"
#include "hydns/rule.h"
#include "hydns/session.h"
#include "twins.h"

static const struct {
	const char *of, *name;
	size_t size, offset, octets, elements;
} fields[] = {
#define FIELDS(type, name, octets, elements) \
	{ #type, #name, sizeof(struct type), offsetof(struct type, name), octets, elements },
#define ONE(type, name) FIELDS(type, name, sizeof(((struct type *)0)->name), 1)
#define ARRAY(type, name) FIELDS(type, name, sizeof(((struct type *)0)->name[0]), \
				 sizeof(((struct type *)0)->name) / sizeof(((struct type *)0)->name[0]))
	ONE(hydns_geometry, abi_version)
	ONE(hydns_msg, type) ONE(hydns_msg, seq) ONE(hydns_msg, len)
	ONE(hydns_hello, abi_version) ONE(hydns_hello, threads) ONE(hydns_hello, capacity) ONE(hydns_hello, min_ttl)
	ONE(hydns_hello, max_ttl) ONE(hydns_hello, flags) ONE(hydns_hello, edns_size) ONE(hydns_hello, max_udp)
	ONE(hydns_hello, refresh_percent) ONE(hydns_hello, pid) ONE(hydns_hello, admission) ARRAY(hydns_hello, seed)
	ONE(hydns_hello, identity) ONE(hydns_hello, version)
	ONE(hydns_withdraw, generation) ONE(hydns_withdraw, scope) ONE(hydns_withdraw, name_len) ONE(hydns_withdraw, name)
	ONE(hydns_guard_report, failures) ONE(hydns_guard_report, waiting) ONE(hydns_guard_report, len) ONE(hydns_guard_report, suffix)
	ONE(hydns_parking, heartbeat_ns) ONE(hydns_parking, waiting) ONE(hydns_resolver_page, queue) ONE(hydns_resolver_page, under_way) ONE(hydns_under_way, word)
	ONE(twins_query, number) ONE(twins_query, timeout_ms) ONE(twins_query, group) ONE(twins_query, flags)
	ARRAY(twins_query, len)
	ONE(twins_report, number) ONE(twins_report, finished) ONE(twins_report, in_kernel) ARRAY(twins_report, sent)
	ARRAY(twins_report, got) ARRAY(twins_report, reply_len) ARRAY(twins_report, len) ONE(twins_report, group)
	ONE(twins_report, differs) ONE(twins_report, by_kernel)
};

static const struct {
	const char *name;
	unsigned long long value;
} numbers[] = {
#define NUMBER(name) { #name, name },
	NUMBER(HYDNS_ABI_VERSION) NUMBER(HYDNS_ACL_ENTRIES) NUMBER(HYDNS_THREADS_MAX) NUMBER(HYDNS_MSG_MAX) NUMBER(HYDNS_RING_SIZE)
	NUMBER(HYDNS_MSG_HELLO) NUMBER(HYDNS_MSG_WELCOME) NUMBER(HYDNS_MSG_SERVICE) NUMBER(HYDNS_MSG_ACL)
	NUMBER(HYDNS_MSG_RESET) NUMBER(HYDNS_MSG_READY) NUMBER(HYDNS_MSG_WITHDRAW) NUMBER(HYDNS_MSG_WITHDRAW_NAMES) NUMBER(HYDNS_MSG_PRELOAD) NUMBER(HYDNS_MSG_PRELOADED) NUMBER(HYDNS_MSG_GUARD) NUMBER(HYDNS_MSG_STATS)
	NUMBER(HYDNS_MSG_COUNTS) NUMBER(HYDNS_MSG_NOTE) NUMBER(HYDNS_MSG_BYE) NUMBER(HYDNS_MSG_ACK)
	NUMBER(HYDNS_MSG_REFUSED) NUMBER(HYDNS_MSG_COOKIES) NUMBER(HYDNS_MSG_CATCH_UP)
	NUMBER(HYDNS_PARKING_STALE_NS) NUMBER(HYDNS_HEARTBEAT_BEAT_NS)
	NUMBER(HYDNS_RESOLVERS) NUMBER(HYDNS_UNDER_WAY_BUCKETS) NUMBER(HYDNS_UNDER_WAY_ENTRIES) NUMBER(HYDNS_FORWARD_DEVICE)
	NUMBER(DIRECT) NUMBER(KERNEL) NUMBER(AGAIN) NUMBER(REFERENCE)
	NUMBER(FULL) NUMBER(ALONE) NUMBER(TOGETHER) NUMBER(DIFFERS_KERNEL) NUMBER(DIFFERS_REFERENCE) NUMBER(SILENCE)
	NUMBER(HYDNS_SCOPE_NAME) NUMBER(HYDNS_SCOPE_SUBTREE) NUMBER(HYDNS_SCOPE_ALL)
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int main(void)
{
	const char *of = "";

	printf("{\"structs\": {");
	for (size_t i = 0; i < COUNT(fields); i++) {
		if (strcmp(of, fields[i].of) != 0)
			printf("%s\n\"%s\": {\"size\": %zu, \"fields\": {", i ? "}}," : "", fields[i].of, fields[i].size);
		else
			printf(", ");
		of = fields[i].of;
		printf("\"%s\": [%zu, %zu, %zu]", fields[i].name, fields[i].offset, fields[i].octets, fields[i].elements);
	}
	printf("}}},\n\"numbers\": {");
	for (size_t i = 0; i < COUNT(numbers); i++)
		printf("%s\"%s\": %llu", i ? ", " : "", numbers[i].name, numbers[i].value);
	puts("}}");
	return 0;
}
