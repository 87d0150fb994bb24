/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The kill switch on disk: a file in the state directory, which exists while the operator wants a pause. The kill switch in the
 * maps ends with these, at a stop, a change of capacity or a reboot; the pause does not. hydnsd and hydnsctl share this.
 */
#ifndef HYDNSD_DAEMON_PAUSE_H
#define HYDNSD_DAEMON_PAUSE_H

#include <stdbool.h>

#define HYDNS_STATE_DIR "/var/lib/hydns"

/* Makes the directory if it is missing. No error: a failure shows when a pause is recorded. */
void hydns_pause_prepare(const char *state_dir);
bool hydns_pause_is_recorded(const char *state_dir);
/* Records a pause, or its end. 0, also if nothing changes, or a negative errno. */
int hydns_pause_record(const char *state_dir, bool on);
/* Returns when the record is on disk and survives a loss of power. May take long. */
int hydns_pause_sync(const char *state_dir);

#endif
