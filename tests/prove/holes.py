# SPDX-License-Identifier: Apache-2.0
"""Holes in our own programs, for mutations that neither a setting nor a guest can make. Each group
adds its own with HOLES += [...] in its table."""
HOLES = []
