/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The option table: precedence of defaults, file and command line, and what a reload may change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "hydns-kern/loader/loader.h"
#include "hydnsd/daemon/options.h"

static char file[] = "/tmp/hydnsd-options-XXXXXX";

static void write_file(const char *text)
{
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int make_file(void **state)
{
	int fd = mkstemp(file);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(file);
}

/* Arguments after --config FILE, NULL at the end. */
static int read_options(struct hydnsd_options *o, char *error, ...)
{
	char *argv[16] = { "hydnsd", "--config", file };
	int argc = 3;
	va_list args;

	va_start(args, error);
	while ((argv[argc] = va_arg(args, char *)))
		argc++;
	va_end(args);
	return hydnsd_options_read(argc, argv, o, error);
}

static void defaults_stand(void **state)
{
	char error[HYDNSD_OPTION_ERROR];
	struct hydnsd_options o;

	(void)state;
	write_file("");
	assert_int_equal(read_options(&o, error, NULL), 0);
	assert_int_equal(o.capacity, 100000);
	assert_int_equal(o.ipv6, HYDNSD_AUTO);
	assert_int_equal(o.pending_max, 65536);
	assert_int_equal(o.partial_checksum, HYDNSD_AUTO);
	assert_string_equal(o.pin_dir, HYDNS_PIN_DIR);
	assert_int_equal(o.plugin_socket.count, 1);
	assert_int_equal(o.interface.count, 0);
	hydnsd_options_free(&o);
}

static void the_command_line_prevails(void **state)
{
	char error[HYDNSD_OPTION_ERROR];
	struct hydnsd_options o;

	(void)state;
	write_file("capacity: 7 # seven\n  interface : a\ninterface: b\nattach-mode: generic\n");
	assert_int_equal(read_options(&o, error, NULL), 0);
	assert_int_equal(o.interface.count, 2);
	assert_int_equal(o.capacity, 7);
	hydnsd_options_free(&o);
	assert_int_equal(read_options(&o, error, "--interface=c", "--capacity", "8", "--keep-on-exit",
				      NULL), 0);
	assert_int_equal(o.interface.count, 1);
	assert_string_equal(o.interface.item[0], "c");
	assert_int_equal(o.capacity, 8);
	assert_int_equal(o.attach_mode, HYDNS_ATTACH_GENERIC);
	assert_int_equal(o.keep_on_exit, 1);
	hydnsd_options_free(&o);
}

static void nothing_is_written_on_failure(void **state)
{
	char error[HYDNSD_OPTION_ERROR] = "";
	struct hydnsd_options o = { .capacity = 42 };

	(void)state;
	write_file("capacity: 10\nattach-mode: sideways\n");
	assert_int_equal(read_options(&o, error, NULL), -1);
	assert_int_equal(o.capacity, 42);
	assert_non_null(strstr(error, "line 2"));
}

/* A mistake is refused, and the error says where it is. */
static void mistakes_are_named(void **state)
{
	static const struct { const char *text, *said; } c[] = {
		{ "capacity: 0\n", "'0' is not a number from 1 to" }, { "capacity: 32000001\n", "is not a number from 1 to" },
		{ "capacity: 10x\n", "is not a number" }, { "capacity: -1\n", "is not a number" },
		{ "capacity: 18446744073709551616\n", "is not a number" }, { "capacity:\n", "no value" },
		{ "pending-max: 1000001\n", "'1000001' is not a number from 0 to 1000000" },
		{ "capacity: 10\n\ncapacity: 20\n", "line 3: capacity stands there twice" },
		{ "capicity: 10\n", "unknown option 'capicity'" }, { "check: yes\n", "unknown option 'check'" },
		{ "config: /etc/passwd\n", "unknown option 'config'" }, { "capacity 10\n", "has no colon" },
		{ "capacity: 10\nlog-level: inf", "line 2: the line has no end" },
	};
	char error[HYDNSD_OPTION_ERROR];
	struct hydnsd_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		write_file(c[i].text);
		error[0] = '\0';
		assert_int_equal(read_options(&o, error, NULL), -1);
		if (!strstr(error, c[i].said))
			fail_msg("%s: %s", c[i].text, error);
	}
	write_file("capacity: 32000000\n");
	assert_int_equal(read_options(&o, error, NULL), 0);
	hydnsd_options_free(&o);
}

static void a_reload_names_what_needs_a_restart(void **state)
{
	char error[HYDNSD_OPTION_ERROR], changed[HYDNSD_OPTION_ERROR], restart[HYDNSD_OPTION_ERROR];
	struct hydnsd_options current, fresh;

	(void)state;
	write_file("capacity: 10\ninterface: a\nlog-level: info\n");
	assert_int_equal(read_options(&current, error, NULL), 0);
	write_file("capacity: 20\ninterface: a\ninterface: b\nlog-level: debug\nipv6: no\npending-max: 0\n");
	assert_int_equal(read_options(&fresh, error, NULL), 0);
	hydnsd_options_apply(&current, &fresh, changed, restart, sizeof(restart));
	assert_string_equal(changed, "interface ipv6 log-level");
	assert_string_equal(restart, "capacity pending-max");
	assert_int_equal(current.capacity, 10);
	assert_int_equal(current.interface.count, 2);
	hydnsd_options_free(&current);
	hydnsd_options_free(&fresh);
}

static void lists_have_an_end(void **state)
{
	char error[HYDNSD_OPTION_ERROR], text[64 * HYDNSD_LIST_MAX] = "";
	struct hydnsd_options o;

	(void)state;
	for (int i = 0; i <= HYDNSD_LIST_MAX; i++)
		sprintf(text + strlen(text), "interface: eth%d\n", i);
	write_file(text);
	assert_int_equal(read_options(&o, error, NULL), -1);
	assert_non_null(strstr(error, "more than"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_stand),
		cmocka_unit_test(the_command_line_prevails),
		cmocka_unit_test(nothing_is_written_on_failure),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(a_reload_names_what_needs_a_restart),
		cmocka_unit_test(lists_have_an_end),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
