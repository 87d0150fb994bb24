/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The list of commands and arguments (commands.def, protocol.def) against a request. */
#ifndef HYDNSD_CONTROL_PROTOCOL_H
#define HYDNSD_CONTROL_PROTOCOL_H

#include <jansson.h>

/* What is wrong with the arguments of this command's request, as a new JSON string; NULL: nothing. */
json_t *hydnsd_protocol_fault(const char *command, const json_t *request);

#endif
