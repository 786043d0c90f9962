// SPDX-License-Identifier: BSD-3-Clause
// Device: a network interface on which the NIC program runs, and the memory that it shares with
// this process. Programs and maps belong to descriptors of this object. They are removed when it is
// destroyed, and when the process ends in any way; nothing is pinned. loader.cpp is the one
// implementation, with libbpf; loader_absent.cpp replaces it in builds without libbpf. Control
// path, one thread at a time; the mapped memory may be used by any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "nic/memory/group_mapping.hpp"
#include "nic/program/tables.h"
#include "nic/program/trace.h"

namespace unisono::nic {

// automatic: in the driver (native) if it supports that, otherwise at the entry of the stack
// (generic). For veth generic: its frames are created as socket buffers, and native needs a program
// at the peer.
enum class Mode { automatic, native, generic };

struct DeviceOptions {
  std::string interface;  // empty: loaded but attached to nothing, for trial runs
  Mode mode = Mode::automatic;
  std::uint32_t groups = UNISONO_NIC_ROWS_MAX;  // at most so many at a time
  bool loses_packets = false;  // for tests: rows whose `loss` is not 0 drop received packets
};

using Counters = std::array<std::uint64_t, UNISONO_NIC_COUNTERS>;

// The programs of nic.bpf.c.
enum class Entry { receive, leave, spread };

// The costs of loading and running a program.
struct ProgramFacts {
  std::uint32_t verified_instructions = 0;  // steps of the kernel's verifier, which allows 10^6
  std::uint32_t instructions = 0;
  std::uint32_t machine_bytes = 0;  // compiled for the processor
  std::uint64_t load_ns = 0;        // for all programs together
};

struct TrialRun {
  std::uint32_t verdict = 0;
  std::vector<std::byte> frame;  // as the program left it
  std::uint32_t run_ns = 0;      // mean of the repetitions, by the kernel's clock
};

class Device {
 public:
  virtual ~Device() = default;
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual bool native() const = 0;    // the driver runs the program
  virtual int interface() const = 0;  // its index; 0: attached to nothing

  // Allocates memory for the row's operations and makes the row known to the program. Returns its
  // index. The row's index and interface are filled in. From then on, packets to the row's own
  // address without a group are dropped; packets to other addresses pass.
  virtual base::Result<std::uint32_t> add_group(const unisono_nic_row& row) = 0;
  // From then on their packets are dropped. Processes that have their maps may still read them, but
  // nothing changes there. On errors it returns the first one; the groups' entries then stay in
  // use, because programs may still access them.
  virtual base::Status remove_groups(std::span<const std::uint32_t> rows) = 0;
  base::Status remove_group(std::uint32_t row) { return remove_groups({&row, 1}); }
  // For a row that add_group() returned and that was not removed.
  virtual const unisono_nic_row& row(std::uint32_t row) const = 0;
  virtual GroupMemory memory(std::uint32_t row) const = 0;
  virtual GroupMaps maps(std::uint32_t row) const = 0;

  virtual base::Result<Counters> counters() const = 0;

  // From then on the program records every `every`th packet that it sees. 0: none, and unread
  // records are discarded. 0 costs nothing.
  virtual base::Status trace(std::uint32_t every) = 0;
  // Can be read (poll) when there are records; -1 while nothing is traced.
  virtual int trace_descriptor() const = 0;
  // Passes the available records to `take`, until it returns that it has enough. Records without
  // room, because nobody reads, are lost and counted.
  virtual base::Status read_trace(
      const std::function<bool(const unisono_nic_trace& record)>& take) = 0;

  virtual base::Result<ProgramFacts> facts(Entry entry) const = 0;
  // Runs the program on a frame, without a network.
  virtual base::Result<TrialRun> try_frame(Entry entry, std::span<const std::byte> frame,
                                           int repetitions = 1) = 0;
};

// Needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON. The error names the missing ones.
base::Result<std::unique_ptr<Device>> load_device(const DeviceOptions& options);

// Whether this build has the program.
bool has_program();

// "bad_tag": the counter as it is spelt in tables.h, for people.
const char* counter_name(unisono_nic_counter counter);

// The fate of the packets that a counter counts. `handled`: they belong to an operation; `wakeup`:
// it counts waiters, not packets.
enum class CounterKind { passed, dropped, handled, wakeup };
CounterKind counter_kind(unisono_nic_counter counter);
// "dropped"
const char* counter_kind_name(CounterKind kind);

}  // namespace unisono::nic
