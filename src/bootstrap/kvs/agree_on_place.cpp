// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/kvs/agree_on_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "bootstrap/kvs/key_exchange.hpp"
#include "bootstrap/kvs/place_note.hpp"
#include "transport/udp/network_settings.hpp"

namespace unisono::bootstrap {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using transport::IpAddress;

constexpr std::string_view kHostKey = "host";
constexpr std::string_view kPlaceKey = "place";

// Under which a rank's sealed secret is, and where in that note; rank 0 has none.
std::string sealed_key(std::size_t note) { return fmt::format("sealed{}", note); }
std::size_t sealed_number(int rank) { return static_cast<std::size_t>(rank) - 1; }

// One rank's part.
class Agreeing {
 public:
  Agreeing(JobDescription& job, Board& board, EphemeralKeys keys)
      : job_(job), board_(board), keys_(std::move(keys)) {}

  Result<Descriptor> run(const transport::NetworkSettings& network);

 private:
  // Rank 0's.
  base::Status decide(const transport::NetworkSettings& network);
  Result<MeetingPlace> listen(const transport::NetworkSettings& network);
  Result<IpAddress> choose(const transport::NetworkSettings& network,
                           const std::vector<HostNote>& notes) const;
  Result<std::vector<HostNote>> read_hosts() const;
  Result<std::vector<SealedNote>> seal(const std::vector<HostNote>& notes);
  // The others'.
  Result<JobSecret> open_secret(const PublicKey& rank0) const;

  JobDescription& job_;
  Board& board_;
  EphemeralKeys keys_;
  JobSecret secret_;  // rank 0's
  std::vector<SealedNote> sealed_;
  std::vector<transport::LocalAddress> locals_;
  HostNote own_;
  Descriptor listener_;  // of rank 0
};

Result<Descriptor> Agreeing::run(const transport::NetworkSettings& network) {
  UNISONO_ASSIGN(locals_, transport::local_addresses());
  UNISONO_ASSIGN(own_.host, own_host_id());
  own_.key = keys_.public_key();
  own_.addresses = noted_addresses(locals_, network.networks);
  UNISONO_TRY(board_.put(kHostKey, write_note(own_)));
  UNISONO_TRY(board_.fence());
  if (job_.rank == 0) UNISONO_TRY(decide(network));
  UNISONO_TRY(board_.fence());
  UNISONO_ASSIGN(const std::string text, board_.get(0, kPlaceKey));
  UNISONO_ASSIGN(const PlaceNote note, read_place_note(text));
  if (const Error* error = std::get_if<Error>(&note)) return *error;
  const MeetingPlace& place = std::get<MeetingPlace>(note);
  job_.address = {Address::Kind::tcp, transport::ip_text(place.endpoint.address),
                  place.endpoint.port};
  if (job_.rank != 0) {
    UNISONO_ASSIGN(secret_, open_secret(place.key));
  }
  if (job_.key.empty()) job_.key = secret_.key_text();
  return std::move(listener_);
}

// What goes wrong here, the others are to hear as well.
base::Status Agreeing::decide(const transport::NetworkSettings& network) {
  const Result<MeetingPlace> place = listen(network);
  const PlaceNote note = place.ok() ? PlaceNote(*place) : PlaceNote(place.error());
  for (std::size_t i = 0; place.ok() && i < sealed_.size(); ++i) {
    UNISONO_TRY(board_.put(sealed_key(i), write_note(sealed_[i])));
  }
  return board_.put(kPlaceKey, write_note(note));
}

// Of all ranks but this one.
Result<std::vector<HostNote>> Agreeing::read_hosts() const {
  std::vector<HostNote> notes;
  for (int rank = 1; rank < job_.ranks; ++rank) {
    UNISONO_ASSIGN(const std::string text, board_.get(rank, kHostKey));
    UNISONO_ASSIGN(HostNote note, read_host_note(text));
    notes.push_back(std::move(note));
  }
  return notes;
}

Result<IpAddress> Agreeing::choose(const transport::NetworkSettings& network,
                                   const std::vector<HostNote>& notes) const {
  const auto is_here = [this](const HostNote& note) { return note.host == own_.host; };
  // All on one host after all: they meet there.
  if (std::ranges::all_of(notes, is_here)) return transport::parse_ip("127.0.0.1");
  const std::vector<IpAddress> peers = others_addresses(own_, notes);
  if (peers.empty()) {
    return Error{
        Code::argument,
        fmt::format("no address of another host is known by which rank 0's host reaches it "
                    "(UNISONO_NETWORKS=\"{}\"; addresses that rank 0's host has too are "
                    "left out); give all ranks the same UNISONO_RENDEZVOUS=tcp:HOST:PORT "
                    "and UNISONO_JOB_KEY",
                    network.networks.text())};
  }
  UNISONO_ASSIGN(
      const transport::ChosenAddress chosen,
      transport::choose_address(peers, network.networks, locals_, transport::source_towards));
  base::log(base::LogLevel::info, "bootstrap", "the ranks meet at {} of rank 0 ({})",
            transport::ip_text(chosen.local.address), chosen.why);
  return chosen.local.address;
}

Result<MeetingPlace> Agreeing::listen(const transport::NetworkSettings& network) {
  UNISONO_ASSIGN(const std::vector<HostNote> notes, read_hosts());
  UNISONO_ASSIGN(const IpAddress address, choose(network, notes));
  UNISONO_ASSIGN(sealed_, seal(notes));
  Address place{Address::Kind::tcp, transport::ip_text(address), 0};
  UNISONO_ASSIGN(listener_, listen_at(place));
  return MeetingPlace{{address, place.port}, keys_.public_key()};
}

Result<std::vector<SealedNote>> Agreeing::seal(const std::vector<HostNote>& notes) {
  UNISONO_ASSIGN(secret_, JobSecret::random());
  std::vector<SealedNote> sealed;
  for (std::size_t i = 0; i < notes.size(); ++i) {
    if (i % kSealedInNote == 0) sealed.emplace_back();
    const Result<SealedSecret> one = keys_.seal(secret_, notes[i].key);
    if (!one.ok()) {
      return Error{one.error().code, fmt::format("rank {}: {}", i + 1, one.error().message)};
    }
    sealed.back().push_back(*one);
  }
  return sealed;
}

Result<JobSecret> Agreeing::open_secret(const PublicKey& rank0) const {
  const std::size_t number = sealed_number(job_.rank);
  UNISONO_ASSIGN(const std::string text, board_.get(0, sealed_key(number / kSealedInNote)));
  UNISONO_ASSIGN(const SealedNote note, read_sealed_note(text));
  const std::size_t place = number % kSealedInNote;
  if (place >= note.size()) {
    return Error{Code::state, fmt::format("rank {} of {}: rank 0 has sealed no key for it",
                                          job_.rank, job_.ranks)};
  }
  Result<JobSecret> secret = keys_.open(note[place], rank0);
  if (secret.ok()) return secret;
  return Error{secret.error().code,
               fmt::format("rank {} of {}: {}", job_.rank, job_.ranks, secret.error().message)};
}

}  // namespace

Result<Descriptor> agree_on_place(JobDescription& job, const base::Settings& settings) {
  UNISONO_ASSIGN(const transport::NetworkSettings network, transport::network_settings(settings));
  BoardOptions options = job.board;
  options.rank = job.rank;
  options.ranks = job.ranks;
  options.timeout_ns = settings.time_ns(base::Setting::start_timeout);
  UNISONO_ASSIGN(const std::unique_ptr<Board> board, open_board(options));
  UNISONO_ASSIGN(EphemeralKeys keys, EphemeralKeys::make());
  return Agreeing(job, *board, std::move(keys)).run(network);
}

}  // namespace unisono::bootstrap
