// SPDX-License-Identifier: BSD-3-Clause
#include "run/job.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/settings/settings.hpp"
#include "base/text.hpp"
#include "bootstrap/rendezvous/rendezvous.hpp"
#include "run/keeper.hpp"
#include "run/output.hpp"
#include "run/rank_process.hpp"
#include "select/override.hpp"

namespace unisono::tools {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using base::Status;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// Between SIGTERM and SIGKILL.
constexpr std::int64_t kTerminateNs = 2 * base::kSecond;
// Time for the output of processes that ranks have left in their process groups.
constexpr std::int64_t kDrainNs = base::kSecond / 2;
// A background job may not read its terminal; after this time it is tried again.
constexpr std::int64_t kTerminalRetryNs = base::kSecond / 2;

// How far the end of the job has gone. Only upwards.
enum class Phase { running, grace, terminating, killing };

// Numbers 0 to 2 must be taken, or the first pipes would get them.
void open_standard_descriptors() {
  for (int number = 0; number <= STDERR_FILENO; ++number) {
    if (fcntl(number, F_GETFD) < 0) {
      [[maybe_unused]] const int opened = open("/dev/null", O_RDWR);
    }
  }
}

// Raises the limit of descriptors as far as allowed, because each rank needs two or more. Returns
// the old limit.
rlimit raise_descriptor_limit() {
  rlimit found{};
  getrlimit(RLIMIT_NOFILE, &found);
  rlimit raised = found;
  raised.rlim_cur = raised.rlim_max;
  setrlimit(RLIMIT_NOFILE, &raised);
  return found;
}

Result<Descriptor> open_signals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCHLD}) {
    sigaddset(&handled, number);
  }
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  for (const int ignored : {SIGPIPE, SIGTTIN}) ::signal(ignored, SIG_IGN);
  Descriptor signals(signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) {
    return Error{Code::system, fmt::format("signalfd: {}", std::strerror(errno))};
  }
  return signals;
}

class Job {
 public:
  explicit Job(const JobOptions& options)
      : options_(options),
        terminal_(isatty(STDIN_FILENO) == 1),
        out_(STDOUT_FILENO),
        err_(STDERR_FILENO) {}

  // On an error, all ranks have been ended.
  Status start(int& exit_status);
  int run();

 private:
  struct Stream {
    std::size_t rank;
    bool error;
    LineBuffer lines;
  };
  // The source behind an entry of the poll set.
  struct Source {
    enum class Kind { signals, rendezvous, sink, stream, terminal, rank_input } kind;
    std::size_t index = 0;
  };

  Sink& sink_of(const Stream& stream) { return stream.error ? err_ : out_; }
  Descriptor& descriptor_of(const Stream& stream) {
    return stream.error ? ranks_[stream.rank].error : ranks_[stream.rank].output;
  }
  bool all_ended() const;
  bool streams_ended() const;

  void turn(std::int64_t deadline_ns);
  void fill_poll_set();
  void add_to_poll_set(int descriptor, short events, Source source);
  void handle(const Source& source);
  void read_signals();
  void forward(int number);
  void read_stream(Stream& stream);
  void drop_streams_without_reader();
  void read_terminal();
  void write_rank_input();

  void notice_ends();
  void count_end(const RankProcess& rank);
  void enter(Phase phase, std::int64_t deadline_ns);
  void advance();
  void say(std::string_view text);

  const JobOptions& options_;
  bool terminal_;
  Sink out_;
  Sink err_;
  std::unique_ptr<bootstrap::Rendezvous> rendezvous_;
  std::optional<Keeper> keeper_;
  Descriptor signals_;
  std::vector<RankProcess> ranks_;
  std::vector<Stream> streams_;
  std::vector<pollfd> poll_set_;
  std::vector<Source> sources_;
  std::string typed_;  // read from the terminal, not yet taken by rank 0
  std::int64_t terminal_resume_ns_ = 0;

  Phase phase_ = Phase::running;
  std::int64_t phase_deadline_ns_ = kNever;
  std::int64_t job_deadline_ns_ = kNever;
  int interrupts_ = 0;
  int exit_status_ = 0;
  int loss_status_ = 0;  // of the first rank that was killed, if that counts as a loss only
  bool some_exited_ = false;
  bool names_lost_output_ = false;
};

Status Job::start(int& exit_status) {
  exit_status = 1;
  SpawnPlan plan;
  plan.environment = base::process_environment();
  if (!options_.profile.empty()) {
    plan.environment[std::string(base::setting_row(base::Setting::profile).name)] =
        options_.profile;
  }
  // Each rank gets its own; the values here belong to an outer job.
  for (const base::Setting own : {base::Setting::rank, base::Setting::size,
                                  base::Setting::rendezvous, base::Setting::job_key}) {
    plan.environment.erase(std::string(base::setting_row(own).name));
  }
  // Not process_settings(): rank 0 prints the warnings.
  const Result<base::Settings> settings = base::Settings::from(plan.environment);
  if (!settings.ok()) return settings.error();
  UNISONO_TRY(select::overrides_of(*settings));
  base::set_log_level(settings->log_level());
  bootstrap::Rendezvous::Options options;
  options.ranks = options_.ranks;
  options.memory_bytes = static_cast<std::uint64_t>(settings->bytes(base::Setting::shared_limit));
  options.timeout_ns = settings->time_ns(base::Setting::start_timeout);
  UNISONO_ASSIGN(options.key, bootstrap::random_job_key());
  plan.command = options_.command;
  plan.ranks = options_.ranks;
  plan.bind = options_.bind;
  plan.job_key = options.key;
  plan.stdin_is_terminal = terminal_;
  plan.descriptors = raise_descriptor_limit();
  UNISONO_ASSIGN(rendezvous_, bootstrap::Rendezvous::open(options));
  plan.rendezvous = rendezvous_->address();
  UNISONO_ASSIGN(signals_, open_signals());
  // When a rank ends, processes that it left behind become our children, so that we see their end
  // too.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  UNISONO_ASSIGN(Keeper keeper, Keeper::start());
  keeper_.emplace(std::move(keeper));
  for (int rank = 0; rank < options_.ranks; ++rank) {
    Result<RankProcess> process = RankProcess::spawn(plan, rank, exit_status);
    if (!process.ok()) {
      for (RankProcess& each : ranks_) each.reap();
      return process.error();
    }
    keeper_->watch(process->pid());
    const std::string tag = options_.tag ? fmt::format("[{}] ", rank) : "";
    const bool whole_lines = options_.tag || options_.ranks > 1;
    for (const bool error : {false, true}) {
      streams_.push_back({ranks_.size(), error, LineBuffer(tag, whole_lines)});
    }
    ranks_.push_back(std::move(*process));
  }
  if (options_.timeout_ns > 0) job_deadline_ns_ = base::now_ns() + options_.timeout_ns;
  return base::success();
}

int Job::run() {
  while (!all_ended()) {
    turn(std::min({phase_deadline_ns_, job_deadline_ns_, rendezvous_->next_deadline_ns()}));
    advance();
  }
  // Processes that the ranks left behind must end too; they may still write output.
  for (const RankProcess& rank : ranks_) rank.signal_group(SIGTERM);
  const std::int64_t drained_ns = base::now_ns() + kDrainNs;
  while (!streams_ended() && base::now_ns() < drained_ns) turn(drained_ns);
  for (RankProcess& rank : ranks_) rank.reap();
  for (Stream& stream : streams_) {
    if (descriptor_of(stream).valid()) read_stream(stream);
    stream.lines.finish(sink_of(stream).queue());
    descriptor_of(stream).reset();
  }
  // A reader that has stopped reading can be left by a signal only.
  const int interrupts_before = interrupts_;
  while ((out_.wants_to_write() || err_.wants_to_write()) && interrupts_ == interrupts_before) {
    turn(kNever);
  }
  if (names_lost_output_) return kExitNoOutput;
  return some_exited_ || exit_status_ != 0 ? exit_status_ : loss_status_;
}

bool Job::all_ended() const {
  return std::all_of(ranks_.begin(), ranks_.end(),
                     [](const RankProcess& rank) { return rank.ended(); });
}

bool Job::streams_ended() const {
  return std::none_of(ranks_.begin(), ranks_.end(), [](const RankProcess& rank) {
    return rank.output.valid() || rank.error.valid();
  });
}

// Waits until something happens or the deadline, and sees to it.
void Job::turn(std::int64_t deadline_ns) {
  fill_poll_set();
  if (terminal_resume_ns_ != 0) deadline_ns = std::min(deadline_ns, terminal_resume_ns_);
  const int timeout_ms = deadline_ns == kNever ? -1 : base::poll_timeout_ms(deadline_ns);
  if (poll(poll_set_.data(), poll_set_.size(), timeout_ms) < 0) return;  // EINTR: the next turn
  for (std::size_t i = 0; i < poll_set_.size(); ++i) {
    if (poll_set_[i].revents != 0) handle(sources_[i]);
  }
  rendezvous_->step();  // also checks its deadline
  drop_streams_without_reader();
  notice_ends();
}

void Job::add_to_poll_set(int descriptor, short events, Source source) {
  poll_set_.push_back({descriptor, events, 0});
  sources_.push_back(source);
}

void Job::fill_poll_set() {
  using Kind = Source::Kind;
  poll_set_.clear();
  sources_.clear();
  add_to_poll_set(signals_.get(), POLLIN, {Kind::signals});
  add_to_poll_set(rendezvous_->descriptor(), POLLIN, {Kind::rendezvous});
  if (out_.wants_to_write()) add_to_poll_set(out_.descriptor(), POLLOUT, {Kind::sink, 0});
  if (err_.wants_to_write()) add_to_poll_set(err_.descriptor(), POLLOUT, {Kind::sink, 1});
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    const Descriptor& descriptor = descriptor_of(streams_[i]);
    if (descriptor.valid() && sink_of(streams_[i]).has_room()) {
      add_to_poll_set(descriptor.get(), POLLIN, {Kind::stream, i});
    }
  }
  const Descriptor& input = ranks_[0].input;
  if (!input.valid()) return;
  if (base::now_ns() >= terminal_resume_ns_) terminal_resume_ns_ = 0;
  if (!typed_.empty()) {
    add_to_poll_set(input.get(), POLLOUT, {Kind::rank_input});
  } else if (terminal_resume_ns_ == 0) {
    add_to_poll_set(STDIN_FILENO, POLLIN, {Kind::terminal});
  }
}

void Job::handle(const Source& source) {
  switch (source.kind) {
    case Source::Kind::signals:
      return read_signals();
    case Source::Kind::rendezvous:
      return;  // every turn steps it
    case Source::Kind::sink:
      return (source.index == 0 ? out_ : err_).write_some();
    case Source::Kind::stream:
      return read_stream(streams_[source.index]);
    case Source::Kind::terminal:
      return read_terminal();
    case Source::Kind::rank_input:
      return write_rank_input();
  }
}

void Job::read_signals() {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    forward(static_cast<int>(info.ssi_signo));
  }
}

void Job::forward(int number) {
  switch (number) {
    case SIGCHLD:
      return;  // every turn looks at the ranks
    case SIGUSR1:
    case SIGUSR2:
      for (const RankProcess& rank : ranks_) rank.signal(number);
      return;
    case SIGTSTP:
      for (const RankProcess& rank : ranks_) rank.signal_group(SIGTSTP);
      raise(SIGSTOP);  // returns when the shell continues this job
      for (const RankProcess& rank : ranks_) rank.signal_group(SIGCONT);
      return;
    default:  // a signal to end; the second one forces it
      ++interrupts_;
      for (const RankProcess& rank : ranks_) {
        rank.signal_group(number);
        rank.signal_group(SIGCONT);  // a stopped one could not end
      }
      if (interrupts_ == 2) enter(Phase::terminating, base::now_ns() + kTerminateNs);
      if (interrupts_ > 2) enter(Phase::killing, kNever);
  }
}

void Job::read_stream(Stream& stream) {
  std::array<char, 65536> buffer;
  Descriptor& descriptor = descriptor_of(stream);
  const ssize_t count = read(descriptor.get(), buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  std::string& queue = sink_of(stream).queue();
  if (count > 0) {
    stream.lines.take({buffer.data(), static_cast<std::size_t>(count)}, queue);
    return;
  }
  stream.lines.finish(queue);
  descriptor.reset();
}

// Ranks that write for a closed reader get an error, as in any pipeline.
void Job::drop_streams_without_reader() {
  for (const Stream& stream : streams_) {
    if (sink_of(stream).closed()) descriptor_of(stream).reset();
  }
  if (out_.error_number() == 0 || names_lost_output_) return;
  names_lost_output_ = true;
  say(fmt::format("cannot write to standard output: {}; ranks that write more get SIGPIPE",
                  std::strerror(out_.error_number())));
}

void Job::read_terminal() {
  std::array<char, 4096> buffer;
  const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
  if (count > 0) {
    typed_.assign(buffer.data(), static_cast<std::size_t>(count));
  } else if (count < 0 && errno == EIO) {
    terminal_resume_ns_ = base::now_ns() + kTerminalRetryNs;
  } else if (count == 0 || errno != EINTR) {
    ranks_[0].input.reset();
  }
}

void Job::write_rank_input() {
  const ssize_t count = write(ranks_[0].input.get(), typed_.data(), typed_.size());
  if (count >= 0) {
    typed_.erase(0, static_cast<std::size_t>(count));
  } else if (errno != EAGAIN && errno != EINTR) {
    typed_.clear();
    ranks_[0].input.reset();
  }
}

void Job::notice_ends() {
  for (RankProcess& rank : ranks_) {
    if (!rank.notice_end()) continue;
    rendezvous_->rank_ended(rank.rank(), rank.how());
    if (rank.rank() == 0) rank.input.reset();
    const bool is_first = exit_status_ == 0;
    count_end(rank);
    if (!rank.failed() || (!is_first && !options_.keep_going)) continue;
    say(fmt::format("rank {} (pid {}) {}", rank.rank(), rank.pid(), rank.how()));
    if (phase_ == Phase::running && !options_.keep_going)
      enter(Phase::grace, base::now_ns() + options_.grace_ns);
  }
}

// With --keep-going the others survive a rank that was killed.
void Job::count_end(const RankProcess& rank) {
  const bool is_loss = options_.keep_going && rank.was_killed();
  int& status = is_loss ? loss_status_ : exit_status_;
  if (status == 0) status = rank.exit_status();
  some_exited_ |= !is_loss;
}

void Job::enter(Phase phase, std::int64_t deadline_ns) {
  if (phase <= phase_) return;
  phase_ = phase;
  phase_deadline_ns_ = deadline_ns;
  const int number = phase == Phase::terminating ? SIGTERM : SIGKILL;
  if (phase == Phase::grace) return;
  for (const RankProcess& rank : ranks_) {
    rank.signal_group(number);
    if (phase == Phase::terminating) rank.signal_group(SIGCONT);  // a stopped one could not end
  }
}

// Goes on to the next phase when its time has come.
void Job::advance() {
  const std::int64_t now = base::now_ns();
  if (now >= job_deadline_ns_) {
    job_deadline_ns_ = kNever;
    if (exit_status_ == 0) {
      exit_status_ = kExitTimeout;
      say(fmt::format("the job did not end within {} (--timeout)",
                      base::format_time_ns(options_.timeout_ns)));
    }
    return enter(Phase::terminating, now + kTerminateNs);
  }
  if (now < phase_deadline_ns_) return;
  switch (phase_) {
    case Phase::running:
      return;
    case Phase::grace:
      return enter(Phase::terminating, now + kTerminateNs);
    case Phase::terminating:
      return enter(Phase::killing, kNever);
    case Phase::killing:
      return;
  }
}

void Job::say(std::string_view text) { err_.queue() += fmt::format("unisono run: {}\n", text); }

}  // namespace

Result<int> run_job(const JobOptions& options, int& exit_status) {
  open_standard_descriptors();
  Job job(options);
  UNISONO_TRY(job.start(exit_status));
  return job.run();
}

}  // namespace unisono::tools
