/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unsealed - whether our programs jail and seal themselves: always, but for a build with
 * AddressSanitizer.
 *
 * How      The build option `seal` (meson_options.txt) sets SBX_UNSEALED in a build with
 *          b_sanitize=address and nowhere else. Then jail_seal and jail_go_in do nothing, because a
 *          sanitizer's runtime opens, maps and executes what the lists refuse. This file does not
 *          compile when SBX_UNSEALED is set without AddressSanitizer, so a program that people run
 *          is always sealed.
 * Trust    Compiled into sbx-edge, sbx-egress, sbx-origin, sbx-ssh-agent, sbx-vault, sbx-notify,
 *          sbx-keeper and sbxd, and into their tests. Sees no input.
 * See      tests/lint/seal, meson.build
 */
#pragma once

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#ifdef SBX_UNSEALED
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
#error "SBX_UNSEALED is for builds with AddressSanitizer only: every other program seals itself"
#endif
#define JAIL_SEALS false
/* Tests divide what a program uses by this: the sanitizer surrounds each block, has a shadow of
 * it all, and keeps freed memory for a while. */
#define JAIL_MEMORY_FACTOR 20
#else
#define JAIL_SEALS true
#define JAIL_MEMORY_FACTOR 1
#endif
