/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay - runs a fuzz target over the files of its corpus, as an ordinary test.
 *
 * How      Linked with one LLVMFuzzerTestOneInput in builds without libFuzzer; meson passes the
 *          corpus folder. An empty or missing corpus is a failure: the test would test nothing.
 * Trust    Test program; reads files of the tree.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay_file(const char *path)
{
	static uint8_t buf[1 << 20];
	FILE *f = fopen(path, "rb");
	uint8_t *copy;
	size_t n;

	if (!f) {
		perror(path);
		exit(1);
	}
	n = fread(buf, 1, sizeof(buf), f);
	fclose(f);
	/* A heap copy of the exact size, so that the address sanitizer sees one byte too far. */
	copy = malloc(n ? n : 1);
	for (size_t i = 0; i < n; i++)
		copy[i] = buf[i];
	(void)LLVMFuzzerTestOneInput(copy, n);
	free(copy);
}

int main(int argc, char **argv)
{
	int n = 0;

	for (int i = 1; i < argc; i++) {
		DIR *d = opendir(argv[i]);
		struct dirent *e;
		char path[4096];

		if (!d) {
			perror(argv[i]);
			return 1;
		}
		while ((e = readdir(d))) {
			if (e->d_name[0] == '.')
				continue;
			snprintf(path, sizeof(path), "%s/%s", argv[i], e->d_name);
			replay_file(path);
			n++;
		}
		closedir(d);
	}
	printf("%d inputs replayed\n", n);
	return n > 0 ? 0 : 1;
}
