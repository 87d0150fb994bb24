/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a resolver says of its clients, numbered by its place in clients.def. */
#ifndef HYDNS_CLIENTS_H
#define HYDNS_CLIENTS_H

enum hydns_client {
#define HYDNS_CLIENT(name, text) HYDNS_CLIENT_##name,
#include "hydns/clients.def"
#undef HYDNS_CLIENT
	HYDNS_CLIENTS
};

#endif
