/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The log, to stderr or syslog: a line for each event, with cause and mend. */
#ifndef HYDNSD_DAEMON_LOG_H
#define HYDNSD_DAEMON_LOG_H

#include <stdint.h>

enum hydnsd_log_level {
	HYDNSD_LOG_ERROR,
	HYDNSD_LOG_WARNING,
	HYDNSD_LOG_INFO,
	HYDNSD_LOG_DEBUG,
};
enum hydnsd_log_target { HYDNSD_LOG_STDERR, HYDNSD_LOG_SYSLOG };

/* May be called again to change either. Before the first call: stderr, INFO. */
void hydnsd_log_open(enum hydnsd_log_target target, enum hydnsd_log_level level);

void hydnsd_log(enum hydnsd_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Limits the lines that clients cause: at_once after a pause, then rate a second (1 to 1000). May be called again. Before the
 * first call: 1 and 1. */
void hydnsd_log_limit(uint32_t at_once, uint32_t rate);
/* How many of those lines were left out so far. */
uint64_t hydnsd_log_left_out(void);
/* For lines that clients cause, under this limit. A later line says how many were left out. */
void hydnsd_log_client(enum hydnsd_log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
