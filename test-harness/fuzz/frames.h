/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Hostile frames: random octets, and right datagrams with some octets, lengths or the end changed. */
#ifndef FUZZ_FRAMES_H
#define FUZZ_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include "test-harness/fuzz/numbers.h"

#define FRAMES_MTU  1500
#define FRAMES_MOST (FRAMES_MTU + 18)    /* octets: with one tag, as many as a packet socket sends */

/* Writes the next frame, of least to FRAMES_MOST octets, and returns its length. */
size_t frames_next(uint8_t *frame, size_t least);
/* Prints its octets to standard error. */
void frames_show(const uint8_t *frame, size_t len);

#endif
