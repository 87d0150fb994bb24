/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Names, types and addresses as operators write and read them. */
#ifndef HYDNSD_CONTROL_TEXT_H
#define HYDNSD_CONTROL_TEXT_H

#include <netinet/in.h>
#include <stdbool.h>
#include "hydns/resolver.h"
#include "hydnsd/rules/wire.h"

#define HYDNSD_NAME_TEXT (4 * HYDNS_NAME_MAX + 1) /* if every octet is \ddd */
#define HYDNSD_TYPE_TEXT 16
#define HYDNSD_ADDRESS_TEXT INET6_ADDRSTRLEN
#define HYDNSD_SERVICE_TEXT (HYDNSD_ADDRESS_TEXT + 8) /* [2001:db8::1]:53 */

/* wire: valid. Returns out. */
const char *hydnsd_name_text(const uint8_t *wire, size_t len, char out[HYDNSD_NAME_TEXT]);
/* Lower-cased; false when text is no domain name. */
bool hydnsd_name_parse(const char *text, struct hydnsd_name *out);
/* The same, but the letters stay as they are. */
bool hydnsd_name_letters(const char *text, struct hydnsd_name *out);
const char *hydnsd_type_text(uint16_t type, char out[HYDNSD_TYPE_TEXT]);
/* Number of a mnemonic or TYPEn; 0: neither. */
uint16_t hydnsd_type_parse(const char *text);
/* IPv4-mapped or IPv6, network order. */
const char *hydnsd_address_text(const uint8_t addr[16], char out[HYDNSD_ADDRESS_TEXT]);
const char *hydnsd_service_text(const struct hydns_service_key *key, char out[HYDNSD_SERVICE_TEXT]);

#endif
