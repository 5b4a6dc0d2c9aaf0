#include "collectors/jobs/intake/connections.hpp"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

namespace gpumeter::jobs {

std::variant<int, Refusal> Connections::add(Descriptor connection, Nanoseconds now) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return Refusal::identity;
  auto admitted = gate_.admit({peer.pid, peer.uid}, now, now);
  if (const auto* refusal = std::get_if<Refusal>(&admitted)) return *refusal;
  const std::uint32_t owner = std::get<Guest>(admitted).owner;
  const auto own = static_cast<std::size_t>(
      std::ranges::count_if(open_, [&](const auto& entry) { return entry.second.guest.owner == owner; }));
  if (own >= kMostOfUser || (open_.size() >= kMost && !make_room(own))) return Refusal::connections;
  const int number = connection.number();
  open_.insert_or_assign(
      number, Connection{std::move(connection), std::get<Guest>(std::move(admitted)), StreamSplitter(), now});
  return number;
}

/// `own`: the connections that the newcomer's user has.
bool Connections::make_room(std::size_t own) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const auto& [number, connection] : open_) ++counts[connection.guest.owner];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  if (own > 0 && own + 1 >= most->second) return false;
  auto longest = open_.end();
  for (auto each = open_.begin(); each != open_.end(); ++each) {
    if (each->second.guest.owner != most->first) continue;
    if (longest == open_.end() || each->second.heard < longest->second.heard) longest = each;
  }
  open_.erase(longest);
  ++displaced_;
  return true;
}

std::uint64_t Connections::read(int number, Nanoseconds now, const Take& take) {
  const auto found = open_.find(number);
  if (found == open_.end()) return 0;
  auto& [descriptor, guest, splitter, heard] = found->second;
  const std::span<char> room = splitter.room();
  const ssize_t got = recv(descriptor.number(), room.data(), room.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  const std::uint64_t overlong = splitter.overlong();
  heard = now;
  if (got > 0) splitter.received(static_cast<std::size_t>(got));
  while (const auto payload = splitter.next()) take(guest.sender(), *payload);
  const std::uint64_t lost = splitter.overlong() - overlong + (splitter.broken() ? 1 : 0);
  if (got <= 0 || splitter.broken()) open_.erase(found);
  return lost;
}

void Connections::refuse_senders() const {
  for (const auto& [number, connection] : open_) shutdown(number, SHUT_RD);
}

void Connections::tick(Nanoseconds now) {
  std::erase_if(open_, [&](const auto& entry) { return now - entry.second.heard >= kIdle; });
}

}  // namespace gpumeter::jobs
