/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Hostile configuration files through hydnsd's options, and the lines of monitor-condition in them: files of known and unknown options
 * with values that fit, almost fit, or are any octets. What is refused has a line that says why, and leaves nothing behind; what is
 * taken keeps the bounds, and reading it again changes nothing. With sanitizers.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hydnsd/monitor/conditions.h"
#include "test-harness/fuzz/target.h"

#define COUNT_DEFAULT 20000
#define FILE_MOST     2048
#define LINES_MOST    6

static const char *const names[] = {
	"capacity", "interface", "plugin-socket", "plugin-rate", "plugin-burst", "plugin-log-rate", "attach-mode", "ipv6", "reply-path",
	"pending-max", "guard", "guard-client-slip", "guard-ipv4-prefix", "guard-suffix-action", "monitor", "monitor-window",
	"monitor-condition", "monitor-analyser", "user", "log-level", "keep-on-exit", "config", "clean", "capacit", "plugin", "", "help",
};
static const char *const values[] = {
	"0", "1", "7", "64", "1000", "100000", "4294967295", "4294967296", "18446744073709551616", "-1", "1e3", "0x10", "yes", "no", "auto",
	"off", "enforce", "generic", "fib", "lo", "/run/x.sock", "rate off", "rate 200 100", "misses 80 60 100", "names nan 1", "drop",
	"distinct always", "", " ", "7 # seven", "a:b", "%s%n", "clients inf 1 1e308", "clients 1e14 1e-300 0", "misses 1 2",
};
static int file = -1;
static uint64_t read_well, refused;

static size_t add_text(char *to, size_t room, const char *text)
{
	size_t len = strlen(text);

	len = len < room ? len : room;
	memcpy(to, text, len);
	return len;
}

static size_t add_any(char *to, size_t room)
{
	size_t len = fuzz_below(24);

	len = len < room ? len : room;
	fuzz_fill((uint8_t *)to, len);
	return len;
}

static size_t add_line(char *to, size_t room)
{
	size_t n = 0;

	if (fuzz_below(16))
		n += add_text(to + n, room - n, names[fuzz_below(sizeof(names) / sizeof(names[0]))]);
	else
		n += add_any(to + n, room - n);
	n += add_text(to + n, room - n, fuzz_below(16) ? ": " : fuzz_below(2) ? "\t :" : " ");
	if (fuzz_below(8))
		n += add_text(to + n, room - n, values[fuzz_below(sizeof(values) / sizeof(values[0]))]);
	else
		n += add_any(to + n, room - n);
	n += add_text(to + n, room - n, fuzz_below(32) ? "\n" : "");
	return n;
}

static bool read_again(struct hydnsd_options *o, char error[HYDNSD_OPTION_ERROR])
{
	char path[40], *argv[] = { "hydnsd", "--config", path, NULL };

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	return hydnsd_options_read(3, argv, o, error) == 0;
}

static bool keeps_bounds(const struct hydnsd_options *o)
{
	return o->capacity >= 1 && o->capacity <= HYDNSD_CAPACITY_MAX && o->plugin_rate >= 1 && o->plugin_rate <= 1000 &&
	       o->plugin_connections >= 1 && o->plugin_connections <= HYDNSD_CONNECTIONS_MOST && o->guard_ipv4_prefix <= 32 &&
	       o->guard_ipv6_prefix <= 128 && o->interface.count <= HYDNSD_LIST_MAX && o->ipv6 <= HYDNSD_NO && o->pin_dir && o->control_socket;
}

static const char *judge_conditions(const struct hydnsd_options *o)
{
	struct hydnsd_condition c[HYDNSD_CONDITIONS];
	char error[HYDNSD_OPTION_ERROR] = "";

	if (hydnsd_conditions_read(&o->monitor_condition, c, error))
		return error[0] ? NULL : "a condition is refused without a cause";
	for (unsigned i = 0; i < HYDNSD_CONDITIONS; i++)
		if (!c[i].off && !(c[i].begin >= c[i].end && c[i].end > 0 && c[i].least >= 0))
			return "a condition that ends above where it begins";
	return NULL;
}

/* Live options of one reading replace those of another, which is the same. */
static const char *judge_again(struct hydnsd_options *o)
{
	char changed[HYDNSD_OPTION_ERROR * 4], restart[HYDNSD_OPTION_ERROR * 4], error[HYDNSD_OPTION_ERROR];
	struct hydnsd_options again = { 0 };

	if (!read_again(&again, error))
		return "read once, and then refused";
	hydnsd_options_apply(o, &again, changed, restart, sizeof(changed));
	hydnsd_options_free(&again);
	return changed[0] || restart[0] ? "the same file differs from itself" : NULL;
}

static const char *turn(void)
{
	char text[FILE_MOST], error[HYDNSD_OPTION_ERROR] = "";
	struct hydnsd_options o = { 0 };
	const char *wrong;
	size_t len = 0;

	for (unsigned lines = 1 + fuzz_below(LINES_MOST); lines; lines--)
		len += add_line(text + len, sizeof(text) - len);
	if (ftruncate(file, 0) || pwrite(file, text, len, 0) != (ssize_t)len)
		return "cannot write the file";
	if (!read_again(&o, error)) {
		refused++;
		return !error[0] || strchr(error, '\n') ? "refused without a line that says why" :
		       o.capacity || o.pin_dir ? "refused, and something written" : NULL;
	}
	read_well++;
	wrong = keeps_bounds(&o) ? judge_conditions(&o) : "a value out of its bounds";
	if (!wrong)
		wrong = judge_again(&o);
	hydnsd_options_free(&o);
	return wrong;
}

static int begin(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	file = memfd_create("hydnsd.conf", MFD_CLOEXEC);
	return file < 0;
}

static int end(void)
{
	printf("%" PRIu64 " files taken, %" PRIu64 " refused with a cause\n", read_well, refused);
	return !read_well || !refused;
}

const struct fuzz_target fuzz_target = {
	.name = "options", .one = "file", .count = COUNT_DEFAULT, .begin = begin, .turn = turn, .end = end,
};
