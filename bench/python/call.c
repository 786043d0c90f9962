/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls of bench/python/call.py, from C: prints ns of processor time for a call of an allreduce
 * of one double, and for a start and wait of its plan. Usage: call CALLS
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unisono/unisono.h>

static void check(int error) {
  if (error == UNISONO_OK) return;
  fprintf(stderr, "%s\n", unisono_last_error());
  exit(EXIT_FAILURE);
}

static double now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 100000;
  unisono_comm_t world;
  unisono_plan_t plan;
  double mine = 1, total = 0;
  check(unisono_init(&world));
  check(unisono_allreduce_plan(&mine, &total, 1, UNISONO_FLOAT64, UNISONO_SUM, world, &plan));
  double begin = now_ns();
  for (int i = 0; i < calls; ++i)
    check(unisono_allreduce(&mine, &total, 1, UNISONO_FLOAT64, UNISONO_SUM, world));
  const double call = (now_ns() - begin) / calls;
  begin = now_ns();
  for (int i = 0; i < calls; ++i) {
    check(unisono_plan_start(plan));
    check(unisono_plan_wait(plan));
  }
  printf("%.1f %.1f\n", call, (now_ns() - begin) / calls);
  check(unisono_plan_free(plan));
  return unisono_finalize(world);
}
