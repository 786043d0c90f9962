// SPDX-License-Identifier: BSD-3-Clause
#include "comm/learning/learned_calls.hpp"

#include "comm/communicator.hpp"

namespace unisono::comm {

using base::Status;

bool LearnedCalls::are_wanted(const base::Settings& settings) {
  return settings.toggle(base::Setting::learn) == base::Toggle::on;
}

std::unique_ptr<Learner> LearnedCalls::make_learner() {
  Communicator& comm = communicator_;
  const base::Settings& settings = comm.job_.settings();
  if (comm.size() == 1 || !are_wanted(settings)) return nullptr;
  // A candidate may need other buffers than the usual choice.
  const auto execute = [&comm](const plan::Plan& plan, const void* input, void* output) -> Status {
    const Status prepared = comm.segment_.prepare(plan);
    if (!prepared) return comm.failures_.refuse(prepared.error().code, prepared.error().message);
    return comm.run(plan, input, output);
  };
  // It evicts no plan, because its caller has one in hand.
  const auto exchange = [&comm, execute](std::int32_t digest, const void* own, void* all,
                                         std::int64_t bytes) -> Status {
    const auto call = plan::call_of_exchange(plan::Purpose::learning, digest, bytes);
    const auto found = comm.plans_.find(call, false);
    if (!found) return comm.failures_.refuse(found.error().code, found.error().message);
    return execute(**found, own, all);
  };
  return std::make_unique<Learner>(
      LearnerContext{.rank = comm.rank(),
                     .ranks = comm.size(),
                     .plans = &comm.plans_,
                     .profile = comm.job_.profile.get(),
                     .most_operations = settings.integer(base::Setting::learn_until),
                     .next_operation = [&comm] { return comm.queue_.next_index(); },
                     .exchange = exchange,
                     .execute = execute});
}

Learner* LearnedCalls::learner() { return communicator_.learner_.get(); }

}  // namespace unisono::comm
