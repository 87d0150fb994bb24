# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""DNSSEC: Ed25519 (RFC 8080), whose signatures are deterministic; keys come from the seed and the validity
is fixed, so that equal seeds give equal files. For closed test networks only: who knows the seed has the keys.
"""

import base64
import hashlib
import subprocess
from pathlib import Path

import dns.dnssec
import dns.name
import dns.rdtypes.ANY.DNSKEY
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ALGORITHM = 15
KEY_FLAGS = 257                           # one key signs all of its zone (RFC 7583's CSK)
INCEPTION, EXPIRATION = "20200101000000", "20370101000000"


class Key:
    def __init__(self, zone_name, seed):
        self.zone_name = zone_name
        self.secret = hashlib.sha256(f"hydns-zones key {seed} {zone_name}.".encode()).digest()
        public = Ed25519PrivateKey.from_private_bytes(self.secret).public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        self.dnskey = dns.rdtypes.ANY.DNSKEY.DNSKEY(1, 48, KEY_FLAGS, 3, ALGORITHM, public)
        self.tag = dns.dnssec.key_id(self.dnskey)

    def ds(self):
        return dns.dnssec.make_ds(dns.name.from_text(self.zone_name + "."), self.dnskey, "SHA256").to_text()

    def write(self, directory):
        """Writes files as ldns-signzone reads them; returns their base name."""
        base = Path(directory) / f"K{self.zone_name or 'root'}.+{ALGORITHM:03}+{self.tag:05}"
        Path(f"{base}.key").write_text(f"{self.zone_name}.\t3600\tIN\tDNSKEY\t{self.dnskey.to_text()}\n")
        Path(f"{base}.private").write_text(
            f"Private-key-format: v1.2\nAlgorithm: {ALGORITHM} (ED25519)\n"
            f"PrivateKey: {base64.b64encode(self.secret).decode()}\n")
        return base


def sign(key, path, key_directory, options=()):
    """Signs the zone file in place, with NSEC unless other options for ldns-signzone say otherwise."""
    base = key.write(key_directory)
    signed = Path(f"{path}.signed")
    done = subprocess.run(["ldns-signzone", *options, "-i", INCEPTION, "-e", EXPIRATION, "-o", key.zone_name or ".",
                           "-f", str(signed), str(path), str(base)], capture_output=True, text=True)
    if done.returncode or not signed.exists():
        raise RuntimeError(f"ldns-signzone of {path} failed (Debian: ldnsutils): {done.stderr.strip()}")
    signed.replace(path)
