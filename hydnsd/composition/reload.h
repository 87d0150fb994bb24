/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Reading the configuration again while hydnsd runs. */
#ifndef HYDNSD_COMPOSITION_RELOAD_H
#define HYDNSD_COMPOSITION_RELOAD_H

#include "hydnsd/daemon/daemon.h"

struct hydnsd_reloaded {
	char error[HYDNSD_OPTION_ERROR];   /* "": none; else nothing has changed */
	char changed[HYDNSD_OPTION_ERROR]; /* options with other values, which hold once the composition has settled; spaces between */
	char restart[HYDNSD_OPTION_ERROR]; /* options with other values that hold only after a restart */
};

/* Reads options again and takes those that may change. */
void hydnsd_reload(struct hydnsd *d, struct hydnsd_reloaded *out);
/* Opens the log as these options say. */
void hydnsd_options_log(const struct hydnsd_options *o);

#endif
