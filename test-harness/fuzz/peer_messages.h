/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a hostile plugin or control client sends to hydnsd: good messages, frames and requests, with some of their octets changed. */
#ifndef FUZZ_PEER_MESSAGES_H
#define FUZZ_PEER_MESSAGES_H

#include <stddef.h>
#include <stdint.h>

#include "hydns/ring.h"
#include "hydns/session.h"

#define PEER_PAYLOAD  (HYDNS_MSG_MAX - sizeof(struct hydns_msg))
#define PEER_REQUEST  6000             /* longer than hydnsd takes */
#define PEER_FRAME    1024

/* A message of a plugin: its type, its payload, and the payload's length. */
uint32_t peer_message(uint8_t payload[PEER_PAYLOAD], size_t *len);
/* HELLO with one ring, as hydnsd takes it. */
struct hydns_hello peer_hello(void);
/* A frame for a ring, a multiple of 8 octets long. epoch, now_ns: of the offers that could become rules. */
uint32_t peer_frame(uint8_t out[PEER_FRAME], uint32_t epoch, uint64_t now_ns);
/* A request of a control client, without a line end; returns its length. */
size_t peer_request(char out[PEER_REQUEST]);

#endif
