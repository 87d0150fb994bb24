/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* States of the connection, each logged once. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "plugin/link/thread.h"
#include "plugin/log.h"

void hydns_link_log_state(struct hydns_link *l, enum hydns_log_level level, const char *format, ...)
{
	char text[HYDNS_LOGGED_LEN];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!strcmp(text, l->logged))
		return;
	memcpy(l->logged, text, sizeof(text));
	hydns_log(l->p, level, "%s", text);
}
