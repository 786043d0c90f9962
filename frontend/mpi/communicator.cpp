// SPDX-License-Identifier: BSD-3-Clause
#include "communicator.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "host/host.hpp"
#include "host/progress.hpp"
#include "host/thrown.hpp"
#include "host/world.hpp"
#include "library.hpp"
#include "log.hpp"
#include "ranges/measurement.hpp"
#include "selection.hpp"

namespace unisono::mpi {
namespace {

// The communicators that have an attribute, and the key of the attributes.
struct Registry {
  std::mutex mutex;
  std::vector<Communicator*> all;
  // Their attributes were deleted while a rank waited in a collective, or while the program held
  // requests. They end later.
  std::vector<Communicator*> freed;
  int key = 0;
  bool has_key = false;
  bool ends_with_self = false;  // an attribute of MPI_COMM_SELF ends all
  std::atomic<bool> ended{false};
};

Registry& registry() {
  static Registry* const kept = new Registry;  // never destroyed: MPI may end after static objects
  return *kept;
}

// A duplicate has no attribute at first.
int copy_nothing(Handle, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return 0;
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
    comm->unisono.end();
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
    forget_last_used();
  }
  if (!is_carrying_host_on()) end_freed();
  return 0;
}

int end_with_self(Handle, int, void*, void*) {
  end_communicators();
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
  auto& comm = *static_cast<Communicator*>(user);
  ++comm.allgathers;
  const Handle byte = host().constants.byte;
  const int count = static_cast<int>(bytes);
  return host().Allgather(input, count, byte, output, count, byte, comm.handle);
}

// The ranks of its members in this rank's MPI_COMM_WORLD. Empty: not all belong to it, for instance
// processes that were spawned or connected. Those may run without the drop-in. If one member finds
// another's world, so do all.
std::vector<int> ranks_in_world(const Communicator& comm, int* world_size) {
  const Host& mpi = host();
  Handle group = 0, world = 0;
  *world_size = 0;
  if (mpi.Comm_group(comm.handle, &group) != 0) return {};
  std::vector<int> ranks(static_cast<std::size_t>(comm.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> in_world(ranks.size(), -1);
  if (mpi.Comm_group(mpi.constants.comm_world, &world) == 0) {
    mpi.Group_translate_ranks(group, comm.size, ranks.data(), world, in_world.data());
    mpi.Group_free(&world);
    mpi.Comm_size(mpi.constants.comm_world, world_size);
  }
  mpi.Group_free(&group);
  // MPI_UNDEFINED is negative.
  const bool are_all_there =
      std::all_of(in_world.begin(), in_world.end(), [](int rank) { return rank >= 0; });
  return are_all_there ? in_world : std::vector<int>();
}

// Each rank tells the others these numbers.
struct Wish {
  std::uint32_t collectives = 0;   // that Unisono shall do
  std::uint32_t measures = 0;      // 1: it shall be compared with the host MPI
  Trying trying = Trying::none;    // in calls of the program
  std::uint32_t persistent = 0;    // 1: also in persistent calls
  std::uint32_t keeps_bits = 0;    // 1: the host MPI does none that Unisono does
  std::array<char, 64> library{};  // the host MPI's name
  HomeNumbers numbers;
};

std::uint32_t common_collectives(const std::vector<Wish>& wishes) {
  std::uint32_t common = wishes.front().collectives;
  for (const Wish& wish : wishes) common &= wish.collectives;
  return common;
}

Wish own_wish(Handle comm) {
  Wish own;
  if (selected_collectives() != 0 && library().loaded) own.collectives = selected_collectives();
  if (own.collectives == 0) return own;  // the others need no more than that
  own.measures = measurement_file().empty() ? 0 : 1;
  own.trying = selected_trying();
  own.persistent = has_requests_of_world(comm) ? 1 : 0;
  own.keeps_bits = keeps_bits() ? 1 : 0;
  const std::string name = library_name();
  std::copy_n(name.begin(), std::min(name.size(), own.library.size() - 1), own.library.begin());
  own.numbers = own_home_numbers();
  return own;
}

// The first allgather of a communicator: all ranks' wishes, and with them what Unisono exchanges
// first of ranks that have a home. If that is the same home of all, no rank has to ask again. Where
// many threads wait in the host MPI, which may have one lock, each allgather takes long.
class FirstExchange {
 public:
  FirstExchange(Communicator& comm, const Wish& own) : comm_(comm) { own_.wish = own; }

  // For Unisono, in the home of this rank. It fails if another rank has another one.
  unisono_exchange_t exchange() { return {call, this, 1}; }
  // The wishes of all ranks; empty: the host's allgather has failed. One that Unisono has not done
  // is done now.
  const std::vector<Wish>& wishes() {
    if (!is_done_) gather(nullptr, 0);
    return wishes_;
  }
  // Whether all ranks have exchanged what Unisono gave.
  bool was_of_all() const { return was_of_all_; }

 private:
  struct Message {
    Wish wish;
    std::uint64_t bytes = 0;             // of the rest; 0: this rank has no home
    std::array<std::byte, 1024> rest{};  // Unisono's first call has less
  };

  static int call(const void* input, void* output, std::size_t bytes, void* user) {
    auto& self = *static_cast<FirstExchange*>(user);
    if (self.is_done_) return allgather(input, output, bytes, &self.comm_);
    if (bytes > self.own_.rest.size()) return 1;
    self.gather(input, bytes);
    if (!self.was_of_all_) return 1;
    auto* place = static_cast<std::byte*>(output);
    for (const Message& message : self.all_) {
      place = std::copy_n(message.rest.begin(), bytes, place);
    }
    return 0;
  }

  void gather(const void* input, std::size_t bytes) {
    is_done_ = true;
    own_.bytes = bytes;
    std::copy_n(static_cast<const std::byte*>(input), bytes, own_.rest.begin());
    all_.resize(static_cast<std::size_t>(comm_.size));
    if (allgather(&own_, all_.data(), sizeof own_, &comm_) != 0) return;
    for (const Message& message : all_) wishes_.push_back(message.wish);
    const auto is_alike = [this](const Message& message) {
      return message.bytes == own_.bytes && message.wish.numbers.home == own_.wish.numbers.home;
    };
    was_of_all_ = bytes != 0 && common_collectives(wishes_) != 0 &&
                  std::all_of(all_.begin(), all_.end(), is_alike);
  }

  Communicator& comm_;
  Message own_;
  std::vector<Message> all_;
  std::vector<Wish> wishes_;
  bool is_done_ = false;
  bool was_of_all_ = false;
};

// Why the host MPI does the collectives of a communicator.
constexpr const char* kBySetting = "UNISONO_MPI";
constexpr const char* kNoCommunicator = "Unisono has no communicator for it";

void make_unisono(Communicator& comm) {
  int world_size = 0;
  const std::vector<int> world_ranks = ranks_in_world(comm, &world_size);
  comm.why_host = "processes that were spawned or connected";
  if (world_ranks.empty()) return;
  comm.why_host = kNoCommunicator;
  // A rank that wants none takes part too: the others may want some, and wait for its answer.
  const Wish own = own_wish(comm.handle);
  FirstExchange first(comm, own);
  int error = UNISONO_OK;
  if (own.numbers.home != 0) error = comm.unisono.make_in_home(world_ranks, first.exchange());
  const std::vector<Wish>& wishes = first.wishes();
  if (wishes.empty()) return;
  const std::uint32_t common = common_collectives(wishes);
  std::uint32_t measures = own.measures, keeps = 0;
  Trying trying = own.trying;
  std::uint32_t persistent = own.persistent;
  bool has_one_library = true;
  std::vector<HomeNumbers> numbers;
  for (const Wish& wish : wishes) {
    // The first communicator of all ranks becomes their home.
    if (wish.numbers.home != 0) measures = 0;
    measures &= wish.measures;
    trying = std::min(trying, wish.trying);
    persistent &= wish.persistent;
    keeps |= wish.keeps_bits;
    has_one_library = has_one_library && wish.library == own.library;
    numbers.push_back(wish.numbers);
  }
  if (common == 0) {
    comm.why_host = kBySetting;
    return;
  }
  if (!first.was_of_all()) {
    prepare_progress();
    error = comm.unisono.make(comm.rank, world_ranks, comm.size == world_size, numbers,
                              {allgather, &comm, 1});
  }
  if (error != UNISONO_OK) {
    log_warning("rank %d of %d: the host MPI does the collectives of a communicator: %s", comm.rank,
                comm.size, library().last_error());
    return;
  }
  if (library().machine_bytes(comm.unisono.get(), "exchange_from", &comm.exchange_from) !=
      UNISONO_OK) {
    log_warning("%s", library().last_error());
    comm.exchange_from = std::numeric_limits<std::int64_t>::max();
  }
  comm.collectives = common;
  comm.does_persistent = persistent != 0;
  comm.may_be_revoked = may_revoke();
  watch_revocation(comm);
  comm.is_measured = measures != 0 && comm.size == world_size;
  if (measures != 0 || !has_one_library || keeps != 0) return;
  comm.host_ranges.read(comm.unisono.get(), own.library.data());
  // Where the machine file has ranges, somebody has measured.
  if (trying == Trying::safe && !comm.host_ranges.text().empty()) trying = Trying::none;
  if (const std::uint32_t tried = tried_collectives(trying, comm.size); tried != 0) {
    comm.trials = std::make_unique<Trials>(comm.size, tried);
  }
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
  comm->why_host = is_inter != 0 ? "between groups" : "one rank";
  if (is_inter == 0 && comm->size > 1) make_unisono(*comm);
  log_info("rank %d of %d: %s does the collectives of a communicator (%d allgathers to make it)",
           comm->rank, comm->size, comm->unisono ? "Unisono" : "the host MPI", comm->allgathers);
  if (const std::string ranges = comm->host_ranges.text(); !ranges.empty()) {
    log_info(
        "rank %d of %d: measured to be faster, the host MPI does blocking calls with blocks of "
        "these bytes: %s",
        comm->rank, comm->size, ranges.c_str());
  }
  {
    Registry& known = registry();
    const std::lock_guard lock(known.mutex);
    known.all.push_back(comm);
  }
  if (mpi.Comm_set_attr(handle, key, comm) != 0) log_warning("an attribute cannot be set");
  if (comm->is_measured) measure(*comm, measurement_file());
  return comm;
}

thread_local int refusal = 0;  // MPI error code

// `makes`: a communicator that has no attribute gets one.
Communicator* look_up(Handle handle, bool makes) {
  Registry& known = registry();
  if (known.ended.load(std::memory_order_relaxed) || !has_world()) return nullptr;
  const Host& mpi = host();
  if (mpi.abi == Abi::other) return nullptr;
  const int key = attribute_key();
  if (!known.has_key) return nullptr;
  void* value = nullptr;
  int flag = 0;
  // The call itself reports these. The host may refuse others, such as one that has been freed.
  if (handle == 0 || handle == mpi.constants.comm_null) return nullptr;
  refusal = mpi.Comm_get_attr(handle, key, &value, &flag);
  if (refusal != 0) return nullptr;
  if (flag != 0) return static_cast<Communicator*>(value);
  if (!makes || is_of_threads(handle)) return nullptr;
  try {
    return make_communicator(handle, key);
  } catch (const std::exception& thrown) {
    if (!is_own(thrown)) throw;
    // The other ranks wait in the host's collectives, which no error of this rank ends.
    log_warning("this rank cannot make a communicator, which ends the job: %s", thrown.what());
    mpi.Abort(handle, mpi.constants.error_no_mem);
    return nullptr;
  }
}

// An error code of the class with the text.
int error_code(int error_class, const std::string& text) {
  const Host& mpi = host();
  if (mpi.create_code != nullptr) {
    return mpi.create_code(0, 0, "unisono", 0, error_class, "**intern", "**intern %s",
                           text.c_str());
  }
  constexpr std::size_t kMostText = 255;  // of Open MPI, which has the shortest
  int code = error_class;
  if (mpi.Add_error_code(error_class, &code) == 0) {
    mpi.Add_error_string(code, text.substr(0, kMostText).c_str());
  }
  return code;
}

}  // namespace

Communicator* look_for_communicator(Handle comm, Collective collective, bool makes) {
  const Handle handle = host().handle(comm);
  const std::uint64_t generation = communicator_generation.load(std::memory_order_acquire);
  Communicator* const found = look_up(handle, makes);
  if (found == nullptr) return nullptr;
  if (found->may_be_revoked) {  // so each call asks
    return found->does(collective) && !is_revoked(handle) ? found : nullptr;
  }
  last_used_of(handle) = {handle, generation, found};
  return found->does(collective) ? found : nullptr;
}

int take_refusal() { return std::exchange(refusal, 0); }

const char* why_host(Handle comm) {
  if (registry().ended.load() || !has_world()) return "outside of MPI_Init and MPI_Finalize";
  const Communicator* const found = look_up(host().handle(comm), false);
  if (found == nullptr) {
    return is_of_threads(host().handle(comm)) ? "its ranks are threads"
                                              : "no blocking collective before";
  }
  if (is_revoked(found->handle)) return "it was revoked";
  return found->unisono ? kBySetting : found->why_host;
}

void prepare_end() {
  const Host& mpi = host();
  if (mpi.abi == Abi::other) return;
  const Handle self = mpi.constants.comm_self;
  int key = 0;
  if (mpi.Comm_create_keyval(copy_nothing, end_with_self, &key, nullptr) != 0) return;
  registry().ends_with_self = mpi.Comm_set_attr(self, key, nullptr) == 0;
}

void end_before_host() {
  end_polling();
  if (!registry().ends_with_self) end_communicators();
}

void end_communicators() {
  Registry& known = registry();
  if (known.ended.exchange(true)) return;
  std::vector<Communicator*> all;
  {
    const std::lock_guard lock(known.mutex);
    all.swap(known.all);
    forget_last_used();
  }
  end_calls();
  end_freed();
  for (Communicator* comm : all) {
    comm->collectives = 0;
    comm->unisono.end_own_job();
  }
  end_home();  // with most communicators, also where the program has left requests
  end_progress();
}

bool has_been_revoked(const Communicator& comm) {
  const Communicator& programs = comm.of == nullptr ? comm : *comm.of;
  return programs.may_be_revoked && is_revoked(programs.handle);
}

void watch_revocation(const Communicator& comm) {
  if (!may_revoke()) return;
  const auto ask = [](void* user) {
    return has_been_revoked(*static_cast<const Communicator*>(user)) ? 1 : 0;
  };
  auto* const user = const_cast<Communicator*>(&comm);
  if (library().set_interrupt(comm.unisono.get(), ask, user) != UNISONO_OK) {
    log_warning("%s", library().last_error());
  }
}

int report_error(Handle comm, int error, const std::string& text) {
  const Constants& values = host().constants;
  int error_class = values.error_other;
  if (error == UNISONO_ERROR_ARGUMENT) error_class = values.error_arg;
  if (error == UNISONO_ERROR_TYPE) error_class = values.error_type;
  if (error == UNISONO_ERROR_RESOURCES) error_class = values.error_no_mem;
  if (error == UNISONO_ERROR_RANK_LOST && values.error_proc_failed != 0) {
    error_class = values.error_proc_failed;
  }
  // Nothing else cancels. A rank that another one has told may hear of it from the host later.
  const bool is_end = error == UNISONO_ERROR_CANCELLED || is_revoked(comm);
  if (values.error_revoked != 0 && is_end) error_class = values.error_revoked;
  return report_class(comm, error_class, text);
}

int report_class(Handle comm, int error_class, const std::string& text) {
  log_warning("%s", text.c_str());
  const int code = error_code(error_class, text);
  save_profile();  // the handler may end the job
  host().Comm_call_errhandler(comm, code);
  return code;
}

}  // namespace unisono::mpi
