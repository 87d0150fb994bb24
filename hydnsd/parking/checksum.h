/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* UDP checksums that a virtual driver leaves to the receiver (CHECKSUM_PARTIAL): what is replayed has no such note beside it. */
#ifndef HYDNSD_PARKING_CHECKSUM_H
#define HYDNSD_PARKING_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Completes the UDP checksum of a frame of len octets if it is unfinished, that is, if the field holds the sum of the
 * pseudo-header alone. dns_off: where the message begins, behind an IPv4 header without options or an IPv6 header without
 * extensions, and a UDP header. Changes nothing when the lengths do not fit.
 */
void hydnsd_checksum_complete(uint8_t *frame, uint32_t len, uint32_t dns_off, bool ipv6);

#endif
