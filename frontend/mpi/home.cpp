// SPDX-License-Identifier: BSD-3-Clause
#include "home.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>

#include "host/progress.hpp"
#include "library.hpp"
#include "log.hpp"

namespace unisono::mpi {
namespace {

struct Home {
  unisono_comm_t world = nullptr;
  std::uint64_t number = 0;
  std::vector<int> ranks;  // by rank of MPI_COMM_WORLD
};

// Never deleted: MPI may end after static objects.
std::atomic<const Home*> home{nullptr};
// After MPI_Finalize: a communicator of a session may be freed later than what it lives in.
std::atomic<bool> has_ended{false};

int make_job(int rank, int size, const unisono_exchange_t& exchange, unisono_comm_t* made) {
  unisono_init_options_t options{};
  options.size = sizeof options;
  options.carry_on = [](void*) { carry_host_on(); };
  return library().init_with(rank, size, &exchange, &options, made);
}

// Whether it is the first one. The caller's job is then the home.
bool become_home(unisono_comm_t world, std::uint64_t number, const std::vector<int>& world_ranks) {
  auto made = std::make_unique<Home>();
  made->world = world;
  made->number = number;
  made->ranks.resize(world_ranks.size());
  for (std::size_t i = 0; i < world_ranks.size(); ++i) {
    made->ranks[static_cast<std::size_t>(world_ranks[i])] = static_cast<int>(i);
  }
  const Home* none = nullptr;
  if (!home.compare_exchange_strong(none, made.get())) return false;
  made.release();
  return true;
}

}  // namespace

HomeNumbers own_home_numbers() {
  static std::atomic<std::uint32_t> count{0};
  const Home* const known = home.load();
  const auto process = static_cast<std::uint64_t>(getpid());
  return {known == nullptr ? 0 : known->number, process << 32 | ++count};
}

int UnisonoComm::make_in_home(const std::vector<int>& world_ranks,
                              const unisono_exchange_t& exchange) {
  const Home& known = *home.load();
  std::vector<int> ranks;
  for (const int r : world_ranks) ranks.push_back(known.ranks[static_cast<std::size_t>(r)]);
  kind_ = Kind::derived;
  return library().comm_from_list_with(known.world, ranks.data(), static_cast<int>(ranks.size()),
                                       &exchange, &comm_);
}

int UnisonoComm::make(int rank, const std::vector<int>& world_ranks, bool is_of_all_ranks,
                      const std::vector<HomeNumbers>& numbers, const unisono_exchange_t& exchange) {
  const auto size = static_cast<int>(world_ranks.size());
  const std::uint64_t common = numbers.front().home;
  const bool is_common = std::all_of(numbers.begin(), numbers.end(),
                                     [&](const HomeNumbers& each) { return each.home == common; });
  if (common != 0 && is_common) return make_in_home(world_ranks, exchange);
  kind_ = Kind::own_job;
  const int error = make_job(rank, size, exchange, &comm_);
  if (error != UNISONO_OK) {
    comm_ = nullptr;
  } else if (is_of_all_ranks && become_home(comm_, numbers.front().proposed, world_ranks)) {
    kind_ = Kind::home;
  }
  return error;
}

int UnisonoComm::make_like(const UnisonoComm& other, int size, bool can,
                           const unisono_exchange_t& exchange) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  kind_ = Kind::derived;
  // A rank that gives no place for the result is an error for all.
  return library().comm_from_list_with(other.comm_, ranks.data(), size, &exchange,
                                       can ? &comm_ : nullptr);
}

void UnisonoComm::end() {
  end_own_job();
  const bool lives = comm_ != nullptr && kind_ == Kind::derived && !has_ended;
  if (lives && library().comm_free(comm_) != UNISONO_OK) log_warning("%s", library().last_error());
  comm_ = nullptr;
}

void UnisonoComm::end_own_job() {
  if (comm_ == nullptr || kind_ != Kind::own_job) return;
  if (library().finalize(comm_) != UNISONO_OK) log_warning("%s", library().last_error());
  comm_ = nullptr;
}

void end_home() {
  has_ended = true;
  const Home* const known = home.exchange(nullptr);
  if (known == nullptr) return;
  if (library().finalize(known->world) != UNISONO_OK) log_warning("%s", library().last_error());
}

}  // namespace unisono::mpi
