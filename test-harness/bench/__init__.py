# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What hydns-bench measures, one module a question; README.md says how."""
