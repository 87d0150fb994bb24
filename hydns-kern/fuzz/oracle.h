/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A second opinion on a frame: plain code for the headers, ldns for the message. It shares with the program only the layouts
 * of hydns/rule.h and hydns/resolver.h, and the hash function of userspace.
 */
#ifndef HYDNS_FUZZ_ORACLE_H
#define HYDNS_FUZZ_ORACLE_H

#include "stages.h"

/* NULL, or what is wrong with the outcome for this frame of len octets. */
const char *oracle_judge(const uint8_t *frame, size_t len, const struct stages_settings *s,
			 const struct stages_outcome *o);

/* For the targets: runs the program twice over a frame, with different octets in its scratch memory. Aborts with a message if
 * an outcome is wrong, if it depends on these octets, or if the frame has changed. */
void oracle_examine(const uint8_t *frame, size_t len, const struct stages_settings *s);

#endif
