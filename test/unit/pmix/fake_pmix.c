// SPDX-License-Identifier: BSD-3-Clause
// For pmix_store_test.cpp: a PMIx client library whose behaviour the test controls. It has the real
// one's soname, and so takes its place once it is loaded.
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

// The function that never returns, or never answers; "": none.
EXPORT _Atomic(const char*) fake_pmix_hanging = "";
EXPORT int fake_pmix_finalized;

static char stored[1024];

// The contexts of calls without an answer: a library keeps them, since it may still answer.
EXPORT void* fake_pmix_unanswered[8];
static size_t unanswered;

static void keep(void* context) { fake_pmix_unanswered[unanswered++ % 8] = context; }

static bool is_hanging(const char* function) {
  return strcmp(atomic_load(&fake_pmix_hanging), function) == 0;
}

static void stop_at(const char* function) {
  while (is_hanging(function)) pause();
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
  strncpy(stored, value->data.string, sizeof(stored) - 1);
  return 0;
}
EXPORT int PMIx_Commit(void) { return 0; }
EXPORT int PMIx_Fence_nb(const void* ranks, size_t count, const void* info, size_t infos,
                         void (*done)(int, void*), void* context) {
  (void)ranks, (void)count, (void)info, (void)infos;
  if (is_hanging("PMIx_Fence")) {
    keep(context);
  } else {
    done(0, context);
  }
  return 0;
}
EXPORT int PMIx_Get_nb(const void* rank, const char* key, const void* info, size_t infos,
                       void (*got)(int, Value*, void*), void* context) {
  (void)rank, (void)key, (void)info, (void)infos;
  Value value = {.type = 3, .data.string = stored};
  if (is_hanging("PMIx_Get")) {
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
