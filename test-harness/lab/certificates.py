# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Certificates by OpenSSL: an authority of one's own, and what it signs."""

import subprocess
from collections import namedtuple

Certificate = namedtuple("Certificate", "certificate key")
"""Paths of PEM files."""


def _make(folder, name, *options):
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                    "-subj", f"/CN={name}", "-out", made.certificate, "-keyout", made.key, *options], check=True, capture_output=True)
    return made


def authority(folder, name="authority"):
    return _make(folder, name)


def signed(folder, by, name):
    """For a server or client of this name."""
    return _make(folder, name, "-CA", by.certificate, "-CAkey", by.key, "-addext", f"subjectAltName=DNS:{name}",
                 "-addext", "basicConstraints=critical,CA:FALSE")
