/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Lines for the resolver's log. Nothing here is for resolvers. */
#ifndef PLUGIN_LOG_H
#define PLUGIN_LOG_H

#include "plugin/plugin.h"

void hydns_log(const struct hydns_plugin *p, enum hydns_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
