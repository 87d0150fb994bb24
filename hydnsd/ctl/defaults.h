/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The default control socket. The default pin directory is in hydns/common.h. */
#ifndef HYDNSD_CTL_DEFAULTS_H
#define HYDNSD_CTL_DEFAULTS_H

#ifndef HYDNS_CONTROL_SOCKET
#define HYDNS_CONTROL_SOCKET "/run/hydns/control.sock"
#endif

#endif
