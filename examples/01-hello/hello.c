/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every rank gives a number, every rank gets the sum, rank 0 prints it. docs/tutorial/01-hello.md
 * goes through it line by line.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unisono/unisono.h>

/* An error ends this rank with the library's message; the other ranks are told by the library. */
static void check(int error) {
  if (error != UNISONO_OK) {
    fprintf(stderr, "%s\n", unisono_last_error());
    exit(EXIT_FAILURE);
  }
}

int main(void) {
  unisono_comm_t world;
  check(unisono_init(&world));

  int rank, size;
  check(unisono_comm_rank(world, &rank));
  check(unisono_comm_size(world, &size));

  int64_t mine = rank + 1, sum = 0;
  check(unisono_allreduce(&mine, &sum, 1, UNISONO_INT64, UNISONO_SUM, world));
  if (rank == 0) printf("%d ranks, the sum of 1 to %d is %lld\n", size, size, (long long)sum);

  check(unisono_finalize(world));
  return 0;
}
