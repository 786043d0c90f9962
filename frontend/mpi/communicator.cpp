// SPDX-License-Identifier: BSD-3-Clause
#include "communicator.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "host/host.hpp"
#include "host/progress.hpp"
#include "library.hpp"
#include "log.hpp"
#include "selection.hpp"

namespace unisono::mpi {
namespace {

// The communicators that have an attribute, and the key of the attributes.
struct Registry {
  std::mutex mutex;
  std::vector<Communicator*> all;
  // Their attributes were deleted while a rank waited in a collective, or while the program held
  // requests. Their jobs end later.
  std::vector<Communicator*> freed;
  int key = 0;
  bool has_key = false;
  std::atomic<bool> ended{false};
  // Grows when a communicator ends: a thread's last one may then be another's.
  std::atomic<std::uint64_t> generation{1};
};

Registry& registry() {
  static Registry* const kept = new Registry;  // never destroyed: MPI may end after static objects
  return *kept;
}

struct LastUsed {
  Handle handle = 0;
  std::uint64_t generation = 0;
  Communicator* comm = nullptr;
};
thread_local LastUsed last_used;

// A duplicate gets a job of its own.
int copy_nothing(Handle, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return 0;
}

void end_job(Communicator& comm) {
  comm.collectives = 0;
  if (comm.job == nullptr) return;
  if (library().finalize(comm.job) != UNISONO_OK) log_warning("%s", library().last_error());
  comm.job = nullptr;
}

void end_freed() {
  Registry& known = registry();
  std::vector<Communicator*> freed;
  {
    const std::lock_guard lock(known.mutex);
    const auto is_used = [](const Communicator* comm) { return comm->pending.has_requests(); };
    const auto begin = std::partition(known.freed.begin(), known.freed.end(), is_used);
    freed.assign(begin, known.freed.end());
    known.freed.erase(begin, known.freed.end());
  }
  for (Communicator* const comm : freed) {
    forget_calls(*comm);
    end_job(*comm);
    delete comm;
  }
}

int delete_attribute(Handle, int, void* value, void*) {
  Registry& known = registry();
  {
    const std::lock_guard lock(known.mutex);
    auto* const comm = static_cast<Communicator*>(value);
    std::erase(known.all, comm);
    known.freed.push_back(comm);
    comm->handle = host().constants.comm_world;  // for errors of calls that are under way
    ++known.generation;
  }
  if (!is_carrying_host_on()) end_freed();
  return 0;
}

int attribute_key() {
  Registry& known = registry();
  const std::lock_guard lock(known.mutex);
  if (!known.has_key) {
    known.has_key =
        host().Comm_create_keyval(copy_nothing, delete_attribute, &known.key, nullptr) == 0;
  }
  return known.key;
}

int allgather(const void* input, void* output, std::size_t bytes, void* user) {
  const Handle comm = static_cast<Communicator*>(user)->handle;
  const Handle byte = host().constants.byte;
  const int count = static_cast<int>(bytes);
  return host().Allgather(input, count, byte, output, count, byte, comm);
}

// The collectives that all ranks want Unisono to do.
std::uint32_t agree_on_collectives(Communicator& comm) {
  const std::uint32_t own = library().loaded ? selected_collectives() : 0;
  std::vector<std::uint32_t> all(static_cast<std::size_t>(comm.size));
  if (allgather(&own, all.data(), sizeof own, &comm) != 0) return 0;
  std::uint32_t common = own;
  for (const std::uint32_t each : all) common &= each;
  return common;
}

void make_job(Communicator& comm) {
  const std::uint32_t common = agree_on_collectives(comm);
  if (common == 0) return;
  prepare_progress();
  const unisono_exchange_t exchange{allgather, &comm};
  unisono_init_options_t options{};
  options.size = sizeof options;
  options.carry_on = [](void*) { carry_host_on(); };
  const int error = library().init_with(comm.rank, comm.size, &exchange, &options, &comm.job);
  if (error != UNISONO_OK) {
    comm.job = nullptr;
    log_warning("rank %d of %d: the host MPI does the collectives of a communicator: %s", comm.rank,
                comm.size, library().last_error());
    return;
  }
  comm.collectives = common;
}

// Whether all members belong to this rank's MPI_COMM_WORLD. Processes that were spawned or
// connected may run without the drop-in. If one member finds another's world, so do all.
bool is_of_one_world(const Communicator& comm) {
  const Host& mpi = host();
  Handle group = 0, world = 0;
  if (mpi.Comm_group(comm.handle, &group) != 0) return false;
  std::vector<int> ranks(static_cast<std::size_t>(comm.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> in_world(ranks.size(), -1);
  if (mpi.Comm_group(mpi.constants.comm_world, &world) == 0) {
    mpi.Group_translate_ranks(group, comm.size, ranks.data(), world, in_world.data());
    mpi.Group_free(&world);
  }
  mpi.Group_free(&group);
  // MPI_UNDEFINED is negative.
  return std::all_of(in_world.begin(), in_world.end(), [](int rank) { return rank >= 0; });
}

// All that is looked at is the same at all ranks of the communicator.
Communicator* make_communicator(Handle handle, int key) {
  const Host& mpi = host();
  end_freed();
  auto* const comm = new Communicator;
  comm->handle = handle;
  int is_inter = 0;
  mpi.Comm_test_inter(handle, &is_inter);
  mpi.Comm_rank(handle, &comm->rank);
  mpi.Comm_size(handle, &comm->size);
  if (is_inter == 0 && comm->size > 1 && is_of_one_world(*comm)) make_job(*comm);
  log_info("rank %d of %d: %s does the collectives of a communicator", comm->rank, comm->size,
           comm->job != nullptr ? "Unisono" : "the host MPI");
  {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    known.all.push_back(comm);
  }
  if (mpi.Comm_set_attr(handle, key, comm) != 0) log_warning("an attribute cannot be set");
  return comm;
}

bool is_running() {
  int initialized = 0, finalized = 0;
  host().Initialized(&initialized);
  host().Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

// `makes`: a communicator that has no attribute gets one.
Communicator* look_up(Handle handle, bool makes) {
  Registry& known = registry();
  if (known.ended.load(std::memory_order_relaxed) || !is_running()) return nullptr;
  const Host& mpi = host();
  const bool supported = mpi.abi == Abi::open_mpi || mpi.abi == Abi::mpich;
  if (!supported || selected_collectives() == 0) return nullptr;
  const int key = attribute_key();
  if (!known.has_key) return nullptr;
  void* value = nullptr;
  int flag = 0;
  // An invalid communicator: the call itself then reports it.
  if (handle == 0 || handle == mpi.constants.comm_null) return nullptr;
  if (mpi.Comm_get_attr(handle, key, &value, &flag) != 0) return nullptr;
  if (flag != 0) return static_cast<Communicator*>(value);
  return makes ? make_communicator(handle, key) : nullptr;
}

// An error code of the class with the text.
int error_code(int error_class, const std::string& text) {
  const Host& mpi = host();
  if (mpi.create_code != nullptr) {
    return mpi.create_code(0, 0, "unisono", 0, error_class, "**intern", "**intern %s",
                           text.c_str());
  }
  constexpr std::size_t kMostText = 255;  // of Open MPI
  int code = error_class;
  if (mpi.abi == Abi::open_mpi && mpi.Add_error_code(error_class, &code) == 0) {
    mpi.Add_error_string(code, text.substr(0, kMostText).c_str());
  }
  return code;
}

Communicator* find(Handle comm, Collective collective, bool makes) {
  const Handle handle = host().handle(comm);
  const std::uint64_t generation = registry().generation.load(std::memory_order_acquire);
  if (last_used.handle != handle || last_used.generation != generation) [[unlikely]] {
    Communicator* const found = look_up(handle, makes);
    if (found == nullptr) return nullptr;
    last_used = {handle, generation, found};
  }
  return last_used.comm->does(collective) ? last_used.comm : nullptr;
}

}  // namespace

Communicator* find_communicator(Handle comm, Collective collective) {
  return find(comm, collective, true);
}

Communicator* find_made_communicator(Handle comm, Collective collective) {
  return find(comm, collective, false);
}

void end_communicators() {
  Registry& known = registry();
  known.ended = true;
  std::vector<Communicator*> all;
  {
    const std::lock_guard lock(known.mutex);
    all.swap(known.all);
    ++known.generation;
  }
  end_calls();
  end_freed();
  for (Communicator* comm : all) end_job(*comm);
  end_progress();
}

int report_error(const Communicator& comm, int error, const std::string& text) {
  const Host& mpi = host();
  log_warning("%s", text.c_str());
  const Constants& values = mpi.constants;
  int error_class = values.error_other;
  if (error == UNISONO_ERROR_ARGUMENT) error_class = values.error_arg;
  if (error == UNISONO_ERROR_TYPE) error_class = values.error_type;
  if (error == UNISONO_ERROR_RESOURCES) error_class = values.error_no_mem;
  const int code = error_code(error_class, text);
  mpi.Comm_call_errhandler(comm.handle, code);
  return code;
}

}  // namespace unisono::mpi
