// SPDX-License-Identifier: BSD-3-Clause
// Entry points of the collectives with local counts: each fills Arguments, and then runs, starts or
// plans them.
#include "api/launch.hpp"

namespace unisono::api {
namespace {

using schedule::Collective;

// The arrays of a root; the other ranks' are not looked at.
BlockArrays gathered(const int64_t counts[], const int64_t displacements[]) {
  BlockArrays blocks;
  blocks.output = {counts, displacements};
  blocks.scope = CountScope::of_own;
  return blocks;
}

BlockArrays scattered(const int64_t counts[], const int64_t displacements[]) {
  BlockArrays blocks;
  blocks.input = {counts, displacements};
  blocks.scope = CountScope::of_own;
  return blocks;
}

BlockArrays exchanged(const int64_t input_counts[], const int64_t input_displacements[],
                      const int64_t output_counts[], const int64_t output_displacements[]) {
  BlockArrays blocks;
  blocks.input = {input_counts, input_displacements, "input_"};
  blocks.output = {output_counts, output_displacements, "output_"};
  blocks.scope = CountScope::of_own;
  return blocks;
}

// Each block with a type of its own.
BlockArrays exchanged(const int64_t input_counts[], const int64_t input_displacements[],
                      const unisono_type_t input_types[], const int64_t output_counts[],
                      const int64_t output_displacements[], const unisono_type_t output_types[]) {
  BlockArrays blocks =
      exchanged(input_counts, input_displacements, output_counts, output_displacements);
  blocks.input.types = input_types;
  blocks.output.types = output_types;
  blocks.scope = CountScope::of_own_typed;
  return blocks;
}

Arguments gatherv(const char* function, const void* input, int64_t count, void* output,
                  unisono_type_t type, int root, unisono_comm_t comm, const BlockArrays& blocks) {
  return {function, Collective::gather, input, output, count, type, -1, root, comm, &blocks};
}

Arguments scatterv(const char* function, const void* input, void* output, int64_t count,
                   unisono_type_t type, int root, unisono_comm_t comm, const BlockArrays& blocks) {
  return {function, Collective::scatter, input, output, count, type, -1, root, comm, &blocks};
}

Arguments alltoallv(const char* function, const void* input, void* output, unisono_type_t type,
                    unisono_comm_t comm, const BlockArrays& blocks) {
  return {function, Collective::alltoall, input, output, 0, type, -1, 0, comm, &blocks};
}

// Blocks have their own types, so the collective moves bytes.
Arguments alltoallw(const char* function, const void* input, void* output, unisono_comm_t comm,
                    const BlockArrays& blocks) {
  return alltoallv(function, input, output, UNISONO_BYTE, comm, blocks);
}

}  // namespace
}  // namespace unisono::api

extern "C" {

namespace api = unisono::api;

int unisono_gatherv(const void* input, int64_t count, void* output, const int64_t counts[],
                    const int64_t displacements[], unisono_type_t type, int root,
                    unisono_comm_t comm) {
  const api::BlockArrays blocks = api::gathered(counts, displacements);
  return api::run_blocks(
      api::gatherv("unisono_gatherv", input, count, output, type, root, comm, blocks));
}

int unisono_gatherv_start(const void* input, int64_t count, void* output, const int64_t counts[],
                          const int64_t displacements[], unisono_type_t type, int root,
                          unisono_comm_t comm, unisono_request_t* request) {
  const api::BlockArrays blocks = api::gathered(counts, displacements);
  return api::start(
      api::gatherv("unisono_gatherv_start", input, count, output, type, root, comm, blocks),
      request);
}

int unisono_gatherv_plan(const void* input, int64_t count, void* output, const int64_t counts[],
                         const int64_t displacements[], unisono_type_t type, int root,
                         unisono_comm_t comm, unisono_plan_t* plan) {
  const api::BlockArrays blocks = api::gathered(counts, displacements);
  return api::make_plan(
      api::gatherv("unisono_gatherv_plan", input, count, output, type, root, comm, blocks), plan);
}

int unisono_scatterv(const void* input, const int64_t counts[], const int64_t displacements[],
                     void* output, int64_t count, unisono_type_t type, int root,
                     unisono_comm_t comm) {
  const api::BlockArrays blocks = api::scattered(counts, displacements);
  return api::run_blocks(
      api::scatterv("unisono_scatterv", input, output, count, type, root, comm, blocks));
}

int unisono_scatterv_start(const void* input, const int64_t counts[], const int64_t displacements[],
                           void* output, int64_t count, unisono_type_t type, int root,
                           unisono_comm_t comm, unisono_request_t* request) {
  const api::BlockArrays blocks = api::scattered(counts, displacements);
  return api::start(
      api::scatterv("unisono_scatterv_start", input, output, count, type, root, comm, blocks),
      request);
}

int unisono_scatterv_plan(const void* input, const int64_t counts[], const int64_t displacements[],
                          void* output, int64_t count, unisono_type_t type, int root,
                          unisono_comm_t comm, unisono_plan_t* plan) {
  const api::BlockArrays blocks = api::scattered(counts, displacements);
  return api::make_plan(
      api::scatterv("unisono_scatterv_plan", input, output, count, type, root, comm, blocks), plan);
}

int unisono_alltoallv(const void* input, const int64_t input_counts[],
                      const int64_t input_displacements[], void* output,
                      const int64_t output_counts[], const int64_t output_displacements[],
                      unisono_type_t type, unisono_comm_t comm) {
  const api::BlockArrays blocks =
      api::exchanged(input_counts, input_displacements, output_counts, output_displacements);
  return api::run_blocks(api::alltoallv("unisono_alltoallv", input, output, type, comm, blocks));
}

int unisono_alltoallv_start(const void* input, const int64_t input_counts[],
                            const int64_t input_displacements[], void* output,
                            const int64_t output_counts[], const int64_t output_displacements[],
                            unisono_type_t type, unisono_comm_t comm, unisono_request_t* request) {
  const api::BlockArrays blocks =
      api::exchanged(input_counts, input_displacements, output_counts, output_displacements);
  return api::start(api::alltoallv("unisono_alltoallv_start", input, output, type, comm, blocks),
                    request);
}

int unisono_alltoallv_plan(const void* input, const int64_t input_counts[],
                           const int64_t input_displacements[], void* output,
                           const int64_t output_counts[], const int64_t output_displacements[],
                           unisono_type_t type, unisono_comm_t comm, unisono_plan_t* plan) {
  const api::BlockArrays blocks =
      api::exchanged(input_counts, input_displacements, output_counts, output_displacements);
  return api::make_plan(api::alltoallv("unisono_alltoallv_plan", input, output, type, comm, blocks),
                        plan);
}

int unisono_alltoallw(const void* input, const int64_t input_counts[],
                      const int64_t input_displacements[], const unisono_type_t input_types[],
                      void* output, const int64_t output_counts[],
                      const int64_t output_displacements[], const unisono_type_t output_types[],
                      unisono_comm_t comm) {
  const api::BlockArrays blocks = api::exchanged(input_counts, input_displacements, input_types,
                                                 output_counts, output_displacements, output_types);
  return api::run_blocks(api::alltoallw("unisono_alltoallw", input, output, comm, blocks));
}

int unisono_alltoallw_start(const void* input, const int64_t input_counts[],
                            const int64_t input_displacements[], const unisono_type_t input_types[],
                            void* output, const int64_t output_counts[],
                            const int64_t output_displacements[],
                            const unisono_type_t output_types[], unisono_comm_t comm,
                            unisono_request_t* request) {
  const api::BlockArrays blocks = api::exchanged(input_counts, input_displacements, input_types,
                                                 output_counts, output_displacements, output_types);
  return api::start(api::alltoallw("unisono_alltoallw_start", input, output, comm, blocks),
                    request);
}

int unisono_alltoallw_plan(const void* input, const int64_t input_counts[],
                           const int64_t input_displacements[], const unisono_type_t input_types[],
                           void* output, const int64_t output_counts[],
                           const int64_t output_displacements[],
                           const unisono_type_t output_types[], unisono_comm_t comm,
                           unisono_plan_t* plan) {
  const api::BlockArrays blocks = api::exchanged(input_counts, input_displacements, input_types,
                                                 output_counts, output_displacements, output_types);
  return api::make_plan(api::alltoallw("unisono_alltoallw_plan", input, output, comm, blocks),
                        plan);
}

}  // extern "C"
