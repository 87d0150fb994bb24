/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A second opinion on a frame: plain code for the headers, ldns for the message. It shares nothing with
 * the program but the layouts of hydns/rule.h and hydns/resolver.h and the one-shot hash that userspace uses.
 */
#ifndef HYDNS_FUZZ_ORACLE_H
#define HYDNS_FUZZ_ORACLE_H

#include "stages.h"

/* NULL, or what is wrong with the outcome for this frame of len octets. */
const char *oracle_judge(const uint8_t *frame, size_t len, const struct stages_settings *s,
			 const struct stages_outcome *o);

/* For the targets: runs the program over a frame twice, with different octets in its scratch memory, and
 * aborts with a message if an outcome is wrong or depends on them, or if the frame was changed. */
void oracle_examine(const uint8_t *frame, size_t len, const struct stages_settings *s);

#endif
