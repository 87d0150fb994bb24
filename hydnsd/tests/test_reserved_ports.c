/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which ports queries to upstream leave from: the list's text, and the command that mends one without a long run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "hydnsd/netdev/reserved_ports.h"

#define WHY 256                        /* as large as hydnsd's lines are */

static bool own_namespace;

struct row {
	const char *text;
	bool enough;
	unsigned first, count;         /* of the longest run; 0, 0: there is none */
};

static void the_longest_run_is_found(void **state)
{
	static const struct row rows[] = {
		{ "", false, 0, 0 },
		{ "\n", false, 0, 0 },
		{ "16384-32767", true, 16384, 16384 },
		{ "16384-32767\n", true, 16384, 16384 },
		{ "8080,16384-32767\n", true, 16384, 16384 },
		{ "16384-32767,40000-60000", true, 40000, 20001 },
		{ "40000-60000,2000-3000", true, 40000, 20001 },
		{ "10000-14999,20000-24999", true, 10000, 5000 },       /* of several, the first */
		{ "10000-14095", true, 10000, 4096 },
		{ "10000-14094", false, 10000, 4095 },                  /* one less than enough */
		{ "8080", false, 8080, 1 },
		{ "0-65535", true, 1024, 64512 },
		{ "1-5119", true, 1024, 4096 },
		{ "1-5118", false, 1024, 4095 },                        /* what lies below 1024 does not count */
		{ "1-1023", false, 0, 0 },
		{ "53,1024-65535", true, 1024, 64512 },
		{ "61440-65535", true, 61440, 4096 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hydns_port_run run = { 9, 9 };

		print_message("'%s'\n", rows[i].text);
		assert_int_equal(hydns_longest_run(rows[i].text, &run), rows[i].enough);
		assert_int_equal(run.count, rows[i].count);
		assert_int_equal(run.first, rows[i].first);
	}
}

static void other_texts_are_refused(void **state)
{
	static const char *const texts[] = {
		"all", "-", "-5", "-5-9000", "+2000-9000", " 2000-9000", "2000 -9000", "2000- 9000", "2000-", "2000--9000", "2000-9000-",
		"2000-9000x", "2000-9000 ", "2000-9000;", "2000-9000,x", "2000-9000,,30000", ",2000-9000", "2000-65536", "65536",
		"9000-2000", "4294967296-4294967297", "2000-18446744073709551615", "0x2000-0x9000", "2000-9000,20000-10000",
	};
	struct hydns_port_run run;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		print_message("'%s'\n", texts[i]);
		assert_false(hydns_longest_run(texts[i], &run));
	}
}

static void a_command_keeps_what_is_reserved(void **state)
{
	char out[HYDNSD_RESERVED_MEND], list[1024] = "8080";

	(void)state;
	hydnsd_reserved_ports_command("", out);
	assert_string_equal(out, "sysctl -w net.ipv4.ip_local_reserved_ports=16384-32767");
	hydnsd_reserved_ports_command("8080,9148", out);
	assert_string_equal(out, "sysctl -w net.ipv4.ip_local_reserved_ports=8080,9148,16384-32767");
	while (strlen(list) < 500) {
		hydnsd_reserved_ports_command(list, out);
		assert_true(strlen(out) < sizeof(out) - 1);             /* it has not been cut */
		assert_true(strstr(out, list) || strstr(out, "\"$(cat /proc/sys/net/ipv4/ip_local_reserved_ports),16384-32767\""));
		strcat(list, ",9");
	}
}

/* -- the kernel's list ----------------------------------------------------------------------------------- */
static void need_namespace(void)
{
	if (!own_namespace)
		skip();
}

/* By one write: the kernel takes each for a list of its own. */
static void reserve(const char *list)
{
	int fd = open(HYDNS_RESERVED_PORTS, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, list, strlen(list)), strlen(list));
	close(fd);
}

static void read_list(char *out, int room)
{
	FILE *f = fopen(HYDNS_RESERVED_PORTS, "re");

	assert_non_null(f);
	assert_non_null(fgets(out, room, f));
	fclose(f);
}

static void the_kernels_list_is_read(void **state)
{
	struct hydns_port_run run;
	char why[WHY] = "";

	(void)state;
	need_namespace();
	reserve("8080,20000-24999");
	assert_true(hydnsd_reserved_ports(&run, why, sizeof(why)));
	assert_int_equal(run.first, 20000);
	assert_int_equal(run.count, 5000);
	assert_string_equal(why, "");
}

/* Runs the command in a line of hydnsd's. */
static void paste(const char *why)
{
	const char *begin = strchr(why, '`'), *end = begin ? strstr(begin, "', and restart the resolver") : NULL;
	char command[WHY];

	assert_non_null(end);
	snprintf(command, sizeof(command), "%.*s >/dev/null", (int)(end - begin - 1), begin + 1);
	assert_int_equal(system(command), 0);
}

static void mend(const char *list)
{
	struct hydns_port_run run;
	char why[WHY] = "", before[4096], after[4096];

	reserve(list);
	read_list(before, sizeof(before));
	before[strcspn(before, "\n")] = '\0';
	assert_false(hydnsd_reserved_ports(&run, why, sizeof(why)));
	paste(why);
	assert_true(hydnsd_reserved_ports(&run, why, sizeof(why)));
	assert_int_equal(run.first, 16384);
	assert_int_equal(run.count, 16384);
	read_list(after, sizeof(after));
	assert_memory_equal(before, after, strlen(before));             /* what was reserved still is */
}

static void the_line_mends_it(void **state)
{
	char list[2048] = "1025";

	(void)state;
	need_namespace();
	mend("\n");
	mend("8080,9000-9100");
	for (unsigned port = 1027; port < 1600; port += 2) {
		char one[8];

		snprintf(one, sizeof(one), ",%u", port);
		strcat(list, one);
	}
	mend(list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_run_is_found),
		cmocka_unit_test(other_texts_are_refused),
		cmocka_unit_test(a_command_keeps_what_is_reserved),
		cmocka_unit_test(the_kernels_list_is_read),
		cmocka_unit_test(the_line_mends_it),
	};

	own_namespace = unshare(CLONE_NEWNET) == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
