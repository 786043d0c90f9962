// SPDX-License-Identifier: BSD-3-Clause
#include "group/bootstrap/agree_on_place.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/log.hpp"
#include "group/bootstrap/place_note.hpp"
#include "transport/udp/network_settings.hpp"

namespace unisono::group {
namespace {

using base::Code;
using base::Descriptor;
using base::Error;
using base::Result;
using transport::IpAddress;

constexpr std::string_view kHostKey = "host";
constexpr std::string_view kPlaceKey = "place";

// One rank's part.
class Agreeing {
 public:
  Agreeing(JobDescription& job, Board& board) : job_(job), board_(board) {}

  Result<Descriptor> run(const transport::NetworkSettings& network);

 private:
  Result<MeetingPlace> listen(const transport::NetworkSettings& network);
  Result<IpAddress> choose(const transport::NetworkSettings& network) const;
  Result<std::vector<HostNote>> read_hosts() const;

  JobDescription& job_;
  Board& board_;
  std::vector<transport::LocalAddress> locals_;
  HostNote own_;
  Descriptor listener_;  // of rank 0
};

Result<Descriptor> Agreeing::run(const transport::NetworkSettings& network) {
  UNISONO_ASSIGN(locals_, transport::local_addresses());
  UNISONO_ASSIGN(own_.host, own_host_id());
  own_.addresses = noted_addresses(locals_, network.networks);
  UNISONO_TRY(board_.put(kHostKey, write_note(own_)));
  UNISONO_TRY(board_.fence());
  if (job_.rank == 0) {
    // What goes wrong here, the others are to hear as well.
    const Result<MeetingPlace> place = listen(network);
    const PlaceNote note = place.ok() ? PlaceNote(*place) : PlaceNote(place.error());
    UNISONO_TRY(board_.put(kPlaceKey, write_note(note)));
  }
  UNISONO_TRY(board_.fence());
  UNISONO_ASSIGN(const std::string text, board_.get(0, kPlaceKey));
  UNISONO_ASSIGN(const PlaceNote note, read_place_note(text));
  if (const Error* error = std::get_if<Error>(&note)) return *error;
  const MeetingPlace& place = std::get<MeetingPlace>(note);
  job_.address = {Address::Kind::tcp, transport::ip_text(place.endpoint.address),
                  place.endpoint.port};
  if (job_.key.empty()) job_.key = place.key;
  return std::move(listener_);
}

Result<std::vector<HostNote>> Agreeing::read_hosts() const {
  std::vector<HostNote> notes;
  for (int rank = 1; rank < job_.ranks; ++rank) {
    UNISONO_ASSIGN(const std::string text, board_.get(rank, kHostKey));
    UNISONO_ASSIGN(HostNote note, read_host_note(text));
    if (note.host != own_.host) notes.push_back(std::move(note));
  }
  return notes;
}

Result<IpAddress> Agreeing::choose(const transport::NetworkSettings& network) const {
  UNISONO_ASSIGN(const std::vector<HostNote> others, read_hosts());
  // All on one host after all: they meet there.
  if (others.empty()) return transport::parse_ip("127.0.0.1");
  const std::vector<IpAddress> peers = others_addresses(own_, others);
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
  UNISONO_ASSIGN(const IpAddress address, choose(network));
  Address place{Address::Kind::tcp, transport::ip_text(address), 0};
  UNISONO_ASSIGN(listener_, listen_at(place));
  UNISONO_ASSIGN(std::string key, random_job_key());
  return MeetingPlace{{address, place.port}, std::move(key)};
}

}  // namespace

Result<Descriptor> agree_on_place(JobDescription& job, const base::Settings& settings) {
  UNISONO_ASSIGN(const transport::NetworkSettings network, transport::network_settings(settings));
  BoardOptions options = job.board;
  options.rank = job.rank;
  options.ranks = job.ranks;
  options.timeout_ns = settings.time_ns(base::Setting::start_timeout);
  UNISONO_ASSIGN(const std::unique_ptr<Board> board, open_board(options));
  return Agreeing(job, *board).run(network);
}

}  // namespace unisono::group
