#include "collectors/jobs/intake/connections.hpp"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace gpumeter::jobs {

std::variant<int, Refusal> Connections::add(Descriptor connection, Nanoseconds now) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return Refusal::identity;
  auto admitted = gate_.admit({peer.pid, peer.uid}, now, now);
  if (const auto* refusal = std::get_if<Refusal>(&admitted)) return *refusal;
  const std::uint32_t paying = payer(std::get<Guest>(admitted));
  if (shares_.of(paying) >= kMostOfUser || (open_.size() >= kMost && !make_room(paying))) {
    return Refusal::connections;
  }
  shares_.add(paying);
  const int number = connection.number();
  open_.insert_or_assign(
      number, Connection{std::move(connection), std::get<Guest>(std::move(admitted)), StreamSplitter(), now});
  return number;
}

bool Connections::make_room(std::uint32_t paying) {
  const std::optional<std::uint32_t> crowd = shares_.yields_to(paying);
  if (!crowd) return false;
  auto longest = open_.end();
  for (auto each = open_.begin(); each != open_.end(); ++each) {
    if (payer(each->second.guest) != *crowd) continue;
    if (longest == open_.end() || each->second.heard < longest->second.heard) longest = each;
  }
  erase(longest);
  ++displaced_;
  return true;
}

std::uint64_t Connections::read(int number, Nanoseconds now, const Take& take) {
  const auto found = open_.find(number);
  if (found == open_.end()) return 0;
  auto& [descriptor, guest, splitter, heard] = found->second;
  if (guest.user == std::to_string(guest.owner))
    guest.user = gate_.name_of(guest.owner);  // looked up by now?
  const std::span<char> room = splitter.room();
  const ssize_t got = recv(descriptor.number(), room.data(), room.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  const std::uint64_t overlong = splitter.overlong();
  heard = now;
  if (got > 0) splitter.received(static_cast<std::size_t>(got));
  while (const auto payload = splitter.next()) take(guest.sender(), *payload);
  const std::uint64_t lost = splitter.overlong() - overlong + (splitter.broken() ? 1 : 0);
  if (got <= 0 || splitter.broken()) erase(found);
  return lost;
}

void Connections::refuse_senders() const {
  for (const auto& [number, connection] : open_) shutdown(number, SHUT_RD);
}

void Connections::tick(Nanoseconds now) {
  for (auto each = open_.begin(); each != open_.end();) {
    const auto next = std::next(each);
    if (now - each->second.heard >= kIdle) erase(each);
    each = next;
  }
}

void Connections::erase(std::map<int, Connection>::iterator at) {
  shares_.remove(payer(at->second.guest));
  open_.erase(at);
}

}  // namespace gpumeter::jobs
