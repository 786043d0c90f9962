// SPDX-License-Identifier: BSD-3-Clause
// The one file that knows libbpf: loads the NIC program, makes its maps, attaches it, maps the
// shared memory. Attachments are links, which the kernel removes with their last descriptor: XDP
// links since Linux 5.9, tc (TCX) links since 6.6. Nothing is pinned, and there is no fallback
// to attachments that would outlive a killed process.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/thread.hpp"
#include "nic/loader/device.hpp"
#include "nic/loader/interface.hpp"
#include "nic/loader/kernel.hpp"
#include "nic/loader/object.hpp"
#include "nic/loader/places.hpp"

namespace unisono::nic {
namespace {

using base::Code;
using base::Error;
using base::Status;

// enum bpf_attach_type of Linux 6.6; older headers lack them.
constexpr auto kTcxIngress = static_cast<bpf_attach_type>(46);
constexpr auto kTcxEgress = static_cast<bpf_attach_type>(47);
constexpr std::size_t kLargestFrame = 4096;
// The program of a killed process is removed a moment after it.
constexpr std::int64_t kDetachNs = base::kSecond;

// The messages of libbpf about the load in progress.
thread_local std::string said;

int keep_text(libbpf_print_level level, const char* format, std::va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  std::va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  if (length > 0) {
    std::string text(static_cast<std::size_t>(length), '\0');
    std::vsnprintf(text.data(), text.size() + 1, format, again);
    said += shorten_log(text);
  }
  va_end(again);
  return 0;
}

Error system_error(std::string_view what, int error) {
  const Code code = error == EPERM ? Code::unsupported : Code::system;
  const char* const advice =
      error == EPERM ? "; it takes CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON" : "";
  return {code, fmt::format("NIC program: {}: {}{}", what, std::strerror(error), advice)};
}

const char* name_of(Entry entry) {
  switch (entry) {
    case Entry::receive:
      return "unisono_receive";
    case Entry::leave:
      return "unisono_leave";
    case Entry::spread:
      return "unisono_spread";
  }
  return "";
}

struct CloseRing {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

using TakeRecord = std::function<bool(const unisono_nic_trace&)>;
constexpr int kEnough = -ECANCELED;  // stops ring_buffer__consume, behind the record

int take_record(void* context, void* bytes, std::size_t length) {
  unisono_nic_trace record = {};
  if (length != sizeof record) return 0;
  std::memcpy(&record, bytes, sizeof record);
  const TakeRecord* const take = *static_cast<const TakeRecord**>(context);
  return take == nullptr || (*take)(record) ? 0 : kEnough;
}

struct CloseObject {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};

// A table in this process's memory.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (start_ != nullptr) munmap(start_, bytes_);
  }

  Status open(bpf_object* object, const char* name, std::size_t value_bytes) {
    const bpf_map* map = bpf_object__find_map_by_name(object, name);
    bytes_ = value_bytes * bpf_map__max_entries(map);
    void* const start =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (start == MAP_FAILED) return system_error(fmt::format("map the table {}", name), errno);
    start_ = start;
    return base::success();
  }

  void* start() const { return start_; }

 private:
  void* start_ = nullptr;
  std::size_t bytes_ = 0;
};

// A group's map of `entries` values, which user space may map. The program sees it through another
// map, so its flags are those of the template in nic.bpf.c.
base::Result<base::Descriptor> make_group_map(const char* name, std::size_t value_bytes,
                                              std::uint32_t entries) {
  LIBBPF_OPTS(bpf_map_create_opts, options);
  options.map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP;
  base::Descriptor map(bpf_map_create(BPF_MAP_TYPE_ARRAY, name, sizeof(std::uint32_t),
                                      static_cast<std::uint32_t>(value_bytes), entries, &options));
  if (map.valid()) return map;
  return system_error(fmt::format("make the map {} of {} entries", name, entries), errno);
}

// A waiter's ring of the least size, which is one page.
base::Result<base::Descriptor> make_wake_ring() {
  const auto bytes = static_cast<std::uint32_t>(sysconf(_SC_PAGESIZE));
  base::Descriptor ring(bpf_map_create(BPF_MAP_TYPE_RINGBUF, "unisono_wake", 0, 0, bytes, nullptr));
  if (ring.valid()) return ring;
  return system_error("make a wake ring", errno);
}

// Sets the state after operation -`depth`; the first operation has number 0.
void clear(const unisono_nic_row& row, const GroupMemory& memory) {
  for (std::uint32_t i = 0; i < row.depth; ++i) {
    const std::uint64_t before = std::uint64_t{i} - row.depth;
    unisono_nic_slot& slot = memory.slots[i];
    slot = {};
    slot.claimed = slot.done = slot.broken = slot.summed = slot.queried = before;
    const std::uint32_t blocks = unisono_nic_blocks(&row);
    unisono_nic_block* block = memory.blocks + std::size_t{i} * blocks;
    for (std::uint32_t number = 0; number < blocks; ++number) {
      block[number] = {};
      block[number].sequence = before;
    }
  }
}

// Frames of veth are created as socket buffers. Native mode would copy each, and needs a program at
// the peer before it sends a frame.
bool is_veth(const std::string& name) {
  const auto interface = read_interface(name);
  return interface.ok() && interface->driver == "veth";
}

// The same index as in wake_waiters() of wake.bpf.h.
std::uint32_t wake_place(std::uint32_t row, std::uint32_t waiter) {
  return row * UNISONO_NIC_WAITERS_MAX + waiter;
}

// Each returns 0, or -1 with errno.
using MapChanges = std::vector<std::function<int()>>;

// More than a group has maps, unless very many of its ranks may sleep.
constexpr std::size_t kThreadsMost = 32;

// A change of a map of maps waits some 15 ms, for program runs that may be reading it. Changes that
// begin together wait together. Returns the error of the first change that failed; 0: none did.
int change_together(const MapChanges& changes) {
  std::vector<int> errors(changes.size());
  const std::size_t shares = std::min(changes.size(), kThreadsMost);
  const auto change_share = [&](std::size_t first) {
    for (std::size_t i = first; i < changes.size(); i += shares) {
      errors[i] = changes[i]() == 0 ? 0 : errno;
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t share = 1; share < shares; ++share) {
    auto started = base::start_thread("unisono-maps", [&, share] { change_share(share); });
    if (started.ok()) {
      threads.push_back(*std::move(started));
    } else {
      change_share(share);
    }
  }
  if (shares > 0) change_share(0);
  for (std::thread& thread : threads) thread.join();
  const auto failed = std::ranges::find_if(errors, [](int error) { return error != 0; });
  return failed == errors.end() ? 0 : *failed;
}

class LoadedDevice final : public Device {
 public:
  explicit LoadedDevice(const DeviceOptions& options)
      : most_groups_(options.groups), row_places_(options.groups) {}

  Status start(const DeviceOptions& options) {
    UNISONO_TRY(load(options));
    UNISONO_TRY(rows_.open(object_.get(), "rows", sizeof(unisono_nic_row)));
    UNISONO_TRY(host_.open(object_.get(), ".bss", sizeof(unisono_nic_host)));
    return options.interface.empty() ? base::success() : attach(options);
  }

  bool native() const override { return native_; }
  int interface() const override { return interface_; }

  base::Result<std::uint32_t> add_group(const unisono_nic_row& row) override;
  Status remove_groups(std::span<const std::uint32_t> rows) override;
  const unisono_nic_row& row(std::uint32_t row) const override { return rows()[row]; }
  GroupMemory memory(std::uint32_t row) const override { return group(row).mapping.memory(); }
  GroupMaps maps(std::uint32_t row) const override;
  base::Result<Counters> counters() const override;
  Status trace(std::uint32_t every) override;
  int trace_descriptor() const override {
    return trace_ring_ == nullptr ? -1 : ring_buffer__epoll_fd(trace_ring_.get());
  }
  Status read_trace(const TakeRecord& take) override;
  base::Result<ProgramFacts> facts(Entry entry) const override;
  base::Result<TrialRun> try_frame(Entry entry, std::span<const std::byte> frame,
                                   int repetitions) override;

 private:
  struct Group {
    unisono_nic_id id = {};
    base::Descriptor slots, blocks;
    std::vector<base::Descriptor> wakes;  // by waiter
    GroupMapping mapping;
  };

  Status load(const DeviceOptions& options);
  Status attach(const DeviceOptions& options);
  Status attach_receive(const std::string& name, Mode mode);
  Status make_memory(const unisono_nic_row& row, Group& group) const;
  Status enter(const unisono_nic_row& row, const Group& group);
  void leave(std::uint32_t row, const Group& group, MapChanges& changes) const;

  unisono_nic_host& host() const { return *static_cast<unisono_nic_host*>(host_.start()); }
  unisono_nic_row* rows() const { return static_cast<unisono_nic_row*>(rows_.start()); }
  const Group& group(std::uint32_t row) const {
    const auto found = groups_.find(row);
    UNISONO_CHECK(found != groups_.end(), "a group that is not there");
    return found->second;
  }
  int program(Entry entry) const {
    return bpf_program__fd(bpf_object__find_program_by_name(object_.get(), name_of(entry)));
  }
  int map(const char* name) const { return bpf_object__find_map_fd_by_name(object_.get(), name); }

  std::unique_ptr<bpf_object, CloseObject> object_;
  Mapping rows_;
  Mapping host_;  // unisono_host, the only variable
  std::uint32_t most_groups_;
  Places row_places_;
  std::map<std::uint32_t, Group> groups_;  // by row
  std::uint64_t load_ns_ = 0;
  int interface_ = 0;
  bool native_ = false;
  const TakeRecord* take_record_ = nullptr;  // while records are read
  std::unique_ptr<ring_buffer, CloseRing> trace_ring_;
  base::Descriptor receive_link_, leave_link_, spread_link_;  // last, so that they go first
};

// An older kernel refuses the program or its attachment, in words that do not say so.
Status check_kernel() {
  utsname name = {};
  if (uname(&name) != 0 || kernel_suffices(name.release).value_or(true)) return base::success();
  return Error{
      Code::unsupported,
      fmt::format("NIC program: it takes Linux 6.6 or newer, and this is Linux {}", name.release)};
}

Status LoadedDevice::load(const DeviceOptions& options) {
  UNISONO_TRY(check_kernel());
  said.clear();
  libbpf_set_print(keep_text);
  const std::span<const std::byte> bytes = program_object();
  object_.reset(bpf_object__open_mem(bytes.data(), bytes.size(), nullptr));
  if (!object_) return system_error("read the program", errno);
  if (options.loses_packets) {
    bpf_map* const constants = bpf_object__find_map_by_name(object_.get(), ".rodata");
    const std::uint32_t yes = 1;  // the only one
    const int set = bpf_map__set_initial_value(constants, &yes, sizeof yes);
    if (set != 0) return system_error("make it lose packets", -set);
  }
  const std::int64_t before = base::now_ns();
  const int outcome = bpf_object__load(object_.get());
  load_ns_ = static_cast<std::uint64_t>(base::now_ns() - before);
  if (outcome != 0) {
    Error error = system_error("the kernel did not load it", -outcome);
    error.message += said.empty() ? "" : "; " + said;
    return error;
  }
  return base::success();
}

Status LoadedDevice::attach(const DeviceOptions& options) {
  interface_ = static_cast<int>(if_nametoindex(options.interface.c_str()));
  if (interface_ == 0) {
    return Error{Code::argument,
                 fmt::format("NIC program: there is no interface {}; `ip link` lists them",
                             options.interface)};
  }
  const bool try_native = options.mode == Mode::native ||
                          (options.mode == Mode::automatic && !is_veth(options.interface));
  Status attached = attach_receive(options.interface, try_native ? Mode::native : Mode::generic);
  if (!attached.ok() && options.mode == Mode::automatic && try_native) {
    attached = attach_receive(options.interface, Mode::generic);
  }
  UNISONO_TRY(attached);
  leave_link_.reset(bpf_link_create(program(Entry::leave), interface_, kTcxEgress, nullptr));
  if (leave_link_.valid()) {
    spread_link_.reset(bpf_link_create(program(Entry::spread), interface_, kTcxIngress, nullptr));
  }
  if (!spread_link_.valid()) {
    return system_error(fmt::format("attach to {} by a TCX link", options.interface), errno);
  }
  return base::success();
}

Status LoadedDevice::attach_receive(const std::string& name, Mode mode) {
  LIBBPF_OPTS(bpf_link_create_opts, link_options);
  link_options.flags = mode == Mode::native ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
  native_ = mode == Mode::native;
  const std::int64_t deadline_ns = base::now_ns() + kDetachNs;
  int error = 0;
  do {
    if (error != 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    receive_link_.reset(
        bpf_link_create(program(Entry::receive), interface_, BPF_XDP, &link_options));
    if (receive_link_.valid()) return base::success();
    error = errno;
  } while (error == EBUSY && base::now_ns() < deadline_ns);
  const std::string advice =
      error == EBUSY ? fmt::format(" (another XDP program is there: ip link show {})", name) : "";
  return system_error(fmt::format("attach to interface {} in {} mode{}", name,
                                  native_ ? "native" : "generic", advice),
                      error);
}

base::Result<std::uint32_t> LoadedDevice::add_group(const unisono_nic_row& row) {
  const bool fits =
      row.children <= UNISONO_NIC_CHILDREN_MAX && row.ranks <= UNISONO_NIC_RANKS_MAX &&
      row.waiters <= UNISONO_NIC_WAITERS_MAX && row.gives <= UNISONO_NIC_MESSAGES_MAX &&
      row.takes <= UNISONO_NIC_MESSAGES_MAX && (row.gives == 0 || row.ranks != 0) &&
      row.depth > 1 && row.depth <= UNISONO_NIC_DEPTH_MAX && (row.depth & (row.depth - 1)) == 0;
  UNISONO_CHECK(fits, "a row that lower.hpp did not make");
  const auto index = row_places_.take(1);
  if (!index) {
    return Error{Code::resources, fmt::format("NIC program: it has {} groups, which is all it can "
                                              "have; free other communicators",
                                              most_groups_)};
  }
  unisono_nic_row placed = row;
  placed.index = *index;
  placed.interface = static_cast<std::uint32_t>(interface_);
  placed.secret = unisono_nic_secret(&placed.key);
  Group& group = groups_[*index];
  group.id = row.id;
  Status entered = make_memory(placed, group);
  if (entered.ok()) entered = enter(placed, group);
  if (entered.ok()) return *index;
  groups_.erase(*index);
  row_places_.free(*index);
  return entered.error();
}

Status LoadedDevice::make_memory(const unisono_nic_row& row, Group& group) const {
  UNISONO_ASSIGN(group.slots,
                 make_group_map("unisono_slots", sizeof(unisono_nic_slot), slots_of(row)));
  UNISONO_ASSIGN(group.blocks,
                 make_group_map("unisono_blocks", sizeof(unisono_nic_block), blocks_of(row)));
  for (std::uint32_t waiter = 0; waiter < row.waiters; ++waiter) {
    UNISONO_ASSIGN(base::Descriptor ring, make_wake_ring());
    group.wakes.push_back(std::move(ring));
  }
  UNISONO_TRY(group.mapping.open(row, {group.slots.get(), group.blocks.get(), {}}));
  clear(row, group.mapping.memory());
  return base::success();
}

// The program finds the group by its id, which is entered last: until then packets are dropped.
Status LoadedDevice::enter(const unisono_nic_row& row, const Group& group) {
  std::memcpy(rows() + row.index, &row, sizeof row);
  host().own = row.own;
  MapChanges changes;
  const auto place = [&](const char* name, std::uint32_t at, const base::Descriptor& inner) {
    changes.push_back([this, name, at, descriptor = inner.get()] {
      return bpf_map_update_elem(map(name), &at, &descriptor, BPF_ANY);
    });
  };
  place("slots", row.index, group.slots);
  place("blocks", row.index, group.blocks);
  for (std::uint32_t waiter = 0; waiter < group.wakes.size(); ++waiter) {
    place("wakes", wake_place(row.index, waiter), group.wakes[waiter]);
  }
  int error = change_together(changes);
  if (error == 0 && bpf_map_update_elem(map("groups"), &row.id, &row.index, BPF_NOEXIST) != 0) {
    error = errno;
  }
  if (error == 0) return base::success();
  MapChanges back;
  leave(row.index, group, back);
  change_together(back);
  return system_error(
      fmt::format("enter communicator {} of job {}", row.id.communicator, row.id.job), error);
}

GroupMaps LoadedDevice::maps(std::uint32_t row) const {
  const Group& found = group(row);
  GroupMaps maps = {found.slots.get(), found.blocks.get(), {}};
  for (const base::Descriptor& ring : found.wakes) maps.wakes.push_back(ring.get());
  return maps;
}

// The changes that undo enter(). Empty entries are no error.
void LoadedDevice::leave(std::uint32_t row, const Group& group, MapChanges& changes) const {
  const auto clear = [&](const char* name, std::uint32_t at) {
    changes.push_back([this, name, at] {
      return bpf_map_delete_elem(map(name), &at) == 0 || errno == ENOENT ? 0 : -1;
    });
  };
  clear("slots", row);
  clear("blocks", row);
  for (std::uint32_t waiter = 0; waiter < group.wakes.size(); ++waiter) {
    clear("wakes", wake_place(row, waiter));
  }
}

Status LoadedDevice::remove_groups(std::span<const std::uint32_t> rows) {
  int error = 0;
  MapChanges changes;
  for (const std::uint32_t row : rows) {
    const Group& gone = group(row);
    if (bpf_map_delete_elem(map("groups"), &gone.id) != 0 && errno != ENOENT && error == 0) {
      error = errno;
    }
    leave(row, gone, changes);
  }
  const int left = change_together(changes);
  if (error == 0) error = left;
  if (error != 0) return system_error("forget a communicator", error);
  for (const std::uint32_t row : rows) {
    row_places_.free(row);
    groups_.erase(row);
  }
  return base::success();
}

base::Result<Counters> LoadedDevice::counters() const {
  const int processors = libbpf_num_possible_cpus();
  if (processors < 0) return system_error("count the processors", -processors);
  std::vector<std::uint64_t> values(static_cast<std::size_t>(processors));
  Counters sums = {};
  for (std::uint32_t counter = 0; counter < sums.size(); ++counter) {
    if (bpf_map_lookup_elem(map("counters"), &counter, values.data()) != 0) {
      return system_error("read the counters", errno);
    }
    for (const std::uint64_t value : values) sums[counter] += value;
  }
  return sums;
}

Status LoadedDevice::trace(std::uint32_t every) {
  std::atomic_ref word(host().trace_every);
  word.store(0);
  trace_ring_.reset();
  if (every == 0) return base::success();
  trace_ring_.reset(ring_buffer__new(map("trace_records"), take_record, &take_record_, nullptr));
  if (!trace_ring_) return system_error("map the ring buffer of its trace", errno);
  // Discards records of an earlier trace; take_record_ is not set.
  const int emptied = ring_buffer__consume(trace_ring_.get());
  if (emptied < 0) return system_error("read its trace", -emptied);
  word.store(every);
  return base::success();
}

Status LoadedDevice::read_trace(const TakeRecord& take) {
  if (!trace_ring_) return base::success();
  take_record_ = &take;
  const int outcome = ring_buffer__consume(trace_ring_.get());
  take_record_ = nullptr;
  if (outcome >= 0 || outcome == kEnough) return base::success();
  return system_error("read its trace", -outcome);
}

base::Result<ProgramFacts> LoadedDevice::facts(Entry entry) const {
  bpf_prog_info info = {};
  std::uint32_t bytes = sizeof info;
  if (bpf_obj_get_info_by_fd(program(entry), &info, &bytes) != 0) {
    return system_error("ask what it looks like", errno);
  }
  return ProgramFacts{info.verified_insns,
                      info.xlated_prog_len / static_cast<std::uint32_t>(sizeof(bpf_insn)),
                      info.jited_prog_len, load_ns_};
}

base::Result<TrialRun> LoadedDevice::try_frame(Entry entry, std::span<const std::byte> frame,
                                               int repetitions) {
  TrialRun run;
  run.frame.resize(kLargestFrame);
  LIBBPF_OPTS(bpf_test_run_opts, trial);
  trial.data_in = frame.data();
  trial.data_size_in = static_cast<std::uint32_t>(frame.size());
  trial.data_out = run.frame.data();
  trial.data_size_out = kLargestFrame;
  trial.repeat = repetitions;
  if (bpf_prog_test_run_opts(program(entry), &trial) != 0) {
    return system_error(fmt::format("trial run with {} bytes", frame.size()), errno);
  }
  run.verdict = trial.retval;
  run.frame.resize(trial.data_size_out);
  run.run_ns = trial.duration;
  return run;
}

}  // namespace

bool has_program() { return true; }

base::Result<std::unique_ptr<Device>> load_device(const DeviceOptions& options) {
  auto device = std::make_unique<LoadedDevice>(options);
  UNISONO_TRY(device->start(options));
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace unisono::nic
