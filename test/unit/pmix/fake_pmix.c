// SPDX-License-Identifier: BSD-3-Clause
// For pmix_board_test.cpp: a client library of PMIx, of which the test says what it does. It has
// the real one's soname, so that who loads that gets this if it is there already.
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

// What never returns, or never answers; "" if all is well.
EXPORT _Atomic(const char*) fake_pmix_silent = "";
EXPORT int fake_pmix_finalized;

static char note[1024];

// What a call without an answer has given: a library keeps that, for its answer may come yet.
EXPORT void* fake_pmix_unanswered[8];
static size_t unanswered;

static void keep(void* context) { fake_pmix_unanswered[unanswered++ % 8] = context; }

static bool is_silent(const char* function) {
  return strcmp(atomic_load(&fake_pmix_silent), function) == 0;
}

static void stop_at(const char* function) {
  while (is_silent(function)) pause();
}

typedef struct {
  uint16_t type;
  union {
    bool flag;
    char* string;
    char space[64];
  } data;
} Value;

EXPORT int PMIx_Init(void* process, void* info, size_t count) {
  (void)process, (void)info, (void)count;
  stop_at("PMIx_Init");
  return 0;
}
EXPORT int PMIx_Finalize(const void* info, size_t count) {
  (void)info, (void)count;
  stop_at("PMIx_Finalize");
  ++fake_pmix_finalized;
  return 0;
}
EXPORT int PMIx_Put(uint8_t scope, const char* key, Value* value) {
  (void)scope, (void)key;
  strncpy(note, value->data.string, sizeof(note) - 1);
  return 0;
}
EXPORT int PMIx_Commit(void) { return 0; }
EXPORT int PMIx_Fence_nb(const void* ranks, size_t count, const void* info, size_t infos,
                         void (*done)(int, void*), void* context) {
  (void)ranks, (void)count, (void)info, (void)infos;
  if (is_silent("PMIx_Fence")) {
    keep(context);
  } else {
    done(0, context);
  }
  return 0;
}
EXPORT int PMIx_Get_nb(const void* rank, const char* key, const void* info, size_t infos,
                       void (*got)(int, Value*, void*), void* context) {
  (void)rank, (void)key, (void)info, (void)infos;
  Value value = {.type = 3, .data.string = note};
  if (is_silent("PMIx_Get")) {
    keep(context);
  } else {
    got(0, &value, context);
  }
  return 0;
}
EXPORT const char* PMIx_Error_string(int status) {
  (void)status;
  return "an error";
}
