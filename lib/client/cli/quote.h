/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quote - a text as one word of a shell command.
 *
 * How      The text in single quotes; a single quote in it ends them, is escaped, and begins them
 *          again.
 * Trust    Runs in sbx and sbx-prove. Any text without NUL; sh, dash, bash and zsh read the result
 *          as that text.
 * Owns     The result is on the heap and belongs to the caller.
 */
#pragma once

char *quote_sh(const char *text);
