/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include "plugin/internal.h"
#include "plugin/log.h"

#define LINE_MAX_OCTETS 512   /* longer lines are cut: they hold paths and hydnsd's texts */

void hydns_log(const struct hydns_plugin *p, enum hydns_log_level level, const char *format, ...)
{
	char line[LINE_MAX_OCTETS];
	va_list args;

	if (!p->o.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	p->o.log(level, line);
}
