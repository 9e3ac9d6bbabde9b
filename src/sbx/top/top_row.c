/* SPDX-License-Identifier: Apache-2.0 */
#include "top_row.h"

#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/client/api/sandbox.h"
#include "lib/client/tui/tui_glyph.h"

#define FIXED 78 /* columns of the narrow line */
#define N_COLUMNS 10

enum { NAME, STATE, AGENT, BRANCH, CPU, MEMORY, DISK, NET, ASK, REVIEW };

static const struct column {
	const char *title;
	unsigned width, grows; /* grows: share of further width */
	bool is_right;
} columns[N_COLUMNS] = {
	[NAME] = {"SANDBOX", 14, 3, false},
	[STATE] = {"STATE", 9, 0, false},
	[AGENT] = {"AGENT", 7, 1, false},
	[BRANCH] = {"BRANCH", 10, 4, false},
	[CPU] = {"CPU", 5, 0, true},
	[MEMORY] = {"MEM", 5, 0, true},
	[DISK] = {"DISK", 5, 0, true},
	[NET] = {"NET/s", 5, 0, true},
	[ASK] = {"ASK", 3, 0, true},
	[REVIEW] = {"FILES", 6, 0, true},
};

/* "512M", "1.5G" in at most 5 characters. */
static void put_size(uint64_t bytes, char *buf, size_t size)
{
	static const char units[] = "BKMGTPE";
	double n = (double)bytes;
	size_t unit = 0;

	while (n >= 999.5 && unit < sizeof(units) - 2) {
		n /= 1024;
		unit++;
	}
	if (unit == 0)
		(void)snprintf(buf, size, "%.0f", n);
	else
		(void)snprintf(buf, size, n < 9.95 ? "%.1f%c" : "%.0f%c", n, units[unit]);
}

/* The text in exactly `width` columns. */
static void put_cell(FILE *f, const char *text, unsigned width, bool is_right)
{
	struct slice rest = slice_from_str(text);
	size_t columns_of = tui_glyph_columns(rest);
	unsigned at = 0;

	if (is_right && columns_of < width)
		at += (unsigned)fprintf(f, "%*s", (int)(width - columns_of), "");
	while (rest.n) {
		struct tui_glyph glyph;
		bool is_hidden;

		tui_glyph_next(rest, at, &glyph);
		is_hidden = glyph.escape[0] || rest.p[0] == '\t';
		if (is_hidden)
			glyph.width = 1;
		if (at + glyph.width + (rest.n > glyph.n) > width)
			break;
		if (is_hidden)
			(void)fputc('?', f);
		else
			(void)fwrite(rest.p, 1, glyph.n, f);
		at += glyph.width;
		(void)slice_take(&rest, glyph.n);
	}
	if (rest.n && at < width)
		at += (unsigned)fprintf(f, "~");
	if (at < width)
		(void)fprintf(f, "%*s", (int)(width - at), "");
}

static char *join_cells(const char *const cells[N_COLUMNS], unsigned width)
{
	unsigned more = width > FIXED ? width - FIXED : 0, shares = 0;
	size_t size = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		abort();
	for (size_t i = 0; i < N_COLUMNS; i++)
		shares += columns[i].grows;
	for (size_t i = 0; i < N_COLUMNS; i++) {
		if (i)
			(void)fputc(' ', f);
		put_cell(f, cells[i], columns[i].width + MIN(more, 60) * columns[i].grows / shares,
			columns[i].is_right);
	}
	(void)fclose(f);
	return text;
}

char *top_row_heading(unsigned width)
{
	const char *cells[N_COLUMNS];

	for (size_t i = 0; i < N_COLUMNS; i++)
		cells[i] = columns[i].title;
	return join_cells(cells, width);
}

static void put_number(char *buf, size_t size, long long n)
{
	if (n > 0)
		(void)snprintf(buf, size, "%lld", n);
}

char *top_row_text(const struct top_box *b, unsigned width)
{
	char cpu[16] = "", memory[16] = "", disk[16] = "", net[16] = "", ask[24] = "",
	     files[24] = "";
	bool is_silent = sandbox_is(b->object, "unresponsive");

	if (b->cpu >= 0)
		(void)snprintf(cpu, sizeof(cpu), "%.0f%%", MIN(b->cpu, 99999.0));
	if (b->use.n_processes)
		put_size(b->use.memory, memory, sizeof(memory));
	if (b->slow_ms)
		put_size(b->disk, disk, sizeof(disk));
	if (b->net_rate >= 0)
		put_size((uint64_t)b->net_rate, net, sizeof(net));
	put_number(ask, sizeof(ask), b->n_holds);
	put_number(files, sizeof(files), api_int(b->object, "guard_changed"));
	return join_cells((const char *const[N_COLUMNS]){[NAME] = top_box_name(b),
				  [STATE] = is_silent ? "no reply" : api_str(b->object, "status"),
				  [AGENT] = api_str(b->object, "agent"),
				  [BRANCH] = b->branch,
				  [CPU] = cpu,
				  [MEMORY] = memory,
				  [DISK] = disk,
				  [NET] = net,
				  [ASK] = ask,
				  [REVIEW] = files},
		width);
}
