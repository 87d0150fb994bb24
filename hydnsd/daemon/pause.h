/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The kill switch on disk: a file in the state directory, there while the operator wants a pause. The map that stops the
 * program ends with the maps, by a stop, another capacity or a reboot; the pause does not. hydnsd and hydnsctl share this.
 */
#ifndef HYDNSD_DAEMON_PAUSE_H
#define HYDNSD_DAEMON_PAUSE_H

#include <stdbool.h>

#define HYDNS_STATE_DIR "/var/lib/hydns"

/* Makes the directory if it is missing; what fails shows when something is to be noted. */
void hydns_pause_prepare(const char *state_dir);
bool hydns_pause_noted(const char *state_dir);
/* 0, also if it was so before, or a negative errno. */
int hydns_pause_note(const char *state_dir, bool on);
/* Returns when what was noted is on the disk, so that it holds over a loss of power. May take long. */
int hydns_pause_sync(const char *state_dir);

#endif
