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
  const auto of_user = std::count_if(
      open_.begin(), open_.end(), [&](const auto& entry) { return entry.second.guest.id.uid == peer.uid; });
  if (open_.size() >= kMost || static_cast<std::size_t>(of_user) >= kMostOfUser) return Refusal::connections;
  auto admitted = gate_.admit({peer.pid, peer.uid}, now, now);
  if (const auto* refusal = std::get_if<Refusal>(&admitted)) return *refusal;
  const int number = connection.number();
  open_.insert_or_assign(
      number, Connection{std::move(connection), std::get<Guest>(std::move(admitted)), StreamSplitter(), now});
  return number;
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

void Connections::tick(Nanoseconds now) {
  std::erase_if(open_, [&](const auto& entry) { return now - entry.second.heard >= kIdle; });
}

}  // namespace gpumeter::jobs
