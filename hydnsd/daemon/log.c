/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <syslog.h>
#include <unistd.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/tokens.h"

static enum hydnsd_log_target log_target = HYDNSD_LOG_STDERR;
static enum hydnsd_log_level log_level = HYDNSD_LOG_INFO;
static uint32_t lines_at_once = 1;     /* caused by clients */
static uint64_t line_ns = HYDNS_NS_PER_S;
static uint64_t left_out;              /* of those lines */

static const struct {
	const char *word;
	int priority;
} levels[] = {
	[HYDNSD_LOG_ERROR] = { "error", LOG_ERR },
	[HYDNSD_LOG_WARNING] = { "warning", LOG_WARNING },
	[HYDNSD_LOG_INFO] = { "info", LOG_INFO },
	[HYDNSD_LOG_DEBUG] = { "debug", LOG_DEBUG },
};

void hydnsd_log_open(enum hydnsd_log_target target, enum hydnsd_log_level level)
{
	if (target == HYDNSD_LOG_SYSLOG && log_target != HYDNSD_LOG_SYSLOG)
		openlog("hydnsd", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	log_target = target;
	log_level = level;
}

/* A line may have text from clients, which must not start a line of its own. */
static void make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

static void write_line(enum hydnsd_log_level level, const char *format, va_list args)
{
	char text[1024];

	if (level > log_level)
		return;
	vsnprintf(text, sizeof(text), format, args);
	make_printable(text);
	if (log_target == HYDNSD_LOG_SYSLOG)
		syslog(levels[level].priority, "%s", text);
	else
		dprintf(STDERR_FILENO, "hydnsd: %s: %s\n", levels[level].word, text);
}

void hydnsd_log(enum hydnsd_log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	write_line(level, format, args);
	va_end(args);
}

void hydnsd_log_limit(uint32_t at_once, uint32_t rate)
{
	lines_at_once = at_once;
	line_ns = hydnsd_tokens_each_ns(rate);
}

uint64_t hydnsd_log_left_out(void)
{
	return left_out;
}

void hydnsd_log_client(enum hydnsd_log_level level, const char *format, ...)
{
	static struct hydnsd_tokens lines;
	static uint64_t said;          /* how many of those left out were logged */
	va_list args;

	if (level > log_level)
		return;
	if (!hydnsd_tokens_take(&lines, lines_at_once, line_ns, hydnsd_now_ns())) {
		left_out++;
		return;
	}
	if (left_out > said)
		hydnsd_log(HYDNSD_LOG_WARNING, "%llu lines about plugins were left out here",
			   (unsigned long long)(left_out - said));
	said = left_out;
	va_start(args, format);
	write_line(level, format, args);
	va_end(args);
}
