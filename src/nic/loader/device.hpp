// SPDX-License-Identifier: BSD-3-Clause
// Device: a network interface on which the NIC program runs, and the memory that it shares with
// this process. Programs and maps belong to descriptors of this object: they go when it is
// destroyed, and when the process ends in whatever way; nothing is pinned. The one implementation
// with libbpf is loader.cpp; loader_absent.cpp stands in where the library was built without.
// Control path, one thread at a time; the mapped memory may be used by any.
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

// automatic: in the driver (native) if it can, otherwise at the entry of the stack (generic); for
// veth generic, where frames are born as socket buffers and native asks for a program at the peer.
enum class Mode { automatic, native, generic };

struct DeviceOptions {
  std::string interface;  // empty: loaded but attached to nothing, for trial runs
  Mode mode = Mode::automatic;
  std::uint32_t groups = UNISONO_NIC_ROWS_MAX;  // at most so many at a time
  bool loses_packets = false;  // for tests: rows whose `loss` is not 0 lose what comes in
};

using Counters = std::array<std::uint64_t, UNISONO_NIC_COUNTERS>;

// The programs of nic.bpf.c.
enum class Entry { receive, leave, spread };

// What a program costs to load and to run.
struct ProgramFacts {
  std::uint32_t verified_instructions = 0;  // steps of the kernel's verifier, which allows 10^6
  std::uint32_t instructions = 0;
  std::uint32_t machine_bytes = 0;  // compiled for the processor
  std::uint64_t load_ns = 0;        // of all programs together
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

  // Makes memory for the row's operations, and the row known to the program. Returns its index. The
  // row's index and interface are filled in. From here on packets to the row's own address that are
  // of no group are dropped; what goes to others passes.
  virtual base::Result<std::uint32_t> add_group(const unisono_nic_row& row) = 0;
  // From here on their packets are dropped. Who has their maps still may look at them, in vain.
  // After an error, the first one's, their places stay taken: programs may still look into them.
  virtual base::Status remove_groups(std::span<const std::uint32_t> rows) = 0;
  base::Status remove_group(std::uint32_t row) { return remove_groups({&row, 1}); }
  // Of a row that add_group() returned and that is still there.
  virtual const unisono_nic_row& row(std::uint32_t row) const = 0;
  virtual GroupMemory memory(std::uint32_t row) const = 0;
  virtual GroupMaps maps(std::uint32_t row) const = 0;

  virtual base::Result<Counters> counters() const = 0;

  // From here on the program records every `every`th packet that it sees; 0: none, and what has not
  // been read is gone. Costs nothing while it is 0.
  virtual base::Status trace(std::uint32_t every) = 0;
  // Can be read (poll) when there are records; -1 while nothing is traced.
  virtual int trace_descriptor() const = 0;
  // Hands out the records that there are, until `take` says that it is enough. What finds no room
  // because nobody reads is lost, and counted.
  virtual base::Status read_trace(
      const std::function<bool(const unisono_nic_trace& record)>& take) = 0;

  virtual base::Result<ProgramFacts> facts(Entry entry) const = 0;
  // Gives a frame to the program without a network.
  virtual base::Result<TrialRun> try_frame(Entry entry, std::span<const std::byte> frame,
                                           int repetitions = 1) = 0;
};

// Needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON. The error says what is missing.
base::Result<std::unique_ptr<Device>> load_device(const DeviceOptions& options);

// Whether this build has the program.
bool has_program();

// "bad_tag": the counter as it is spelt in tables.h, for people.
const char* counter_name(unisono_nic_counter counter);

}  // namespace unisono::nic
