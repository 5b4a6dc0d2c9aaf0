#include "daemon/profiles/callers.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "collectors/profiles/asking.hpp"

namespace gpumeter {

bool Callers::accept_from(int listener, Nanoseconds now) {
  while (true) {
    Descriptor made(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!made) return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
    Result<PeerProcess> peer = PeerProcess::of(made.number());
    if (!peer) continue;
    const std::uint32_t payer = payer_of(peer->uid(), owner_of_(peer->uid()));
    if (shares_.of(payer) >= kMostOfUser || (open_.size() >= kMost && !make_room(payer))) {
      constexpr std::string_view kFull = "refused too many requests of yours are under way\n";
      send(made.number(), kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      continue;
    }
    const int number = made.number();
    open_[number] = {std::move(made), *std::move(peer), payer, now, "", 0};
    shares_.add(payer);
  }
}

// A connection without a request leaves first, the oldest of them; otherwise the last request.
bool Callers::make_room(std::uint32_t payer) {
  const std::optional<std::uint32_t> crowd = shares_.yields_to(payer);
  if (!crowd) return false;
  const auto worth = [](const Open& open) {
    return std::pair(open.request != 0, open.request != 0 ? -open.since : open.since);
  };
  auto least = open_.end();
  for (auto each = open_.begin(); each != open_.end(); ++each) {
    if (each->second.payer != *crowd) continue;
    if (least == open_.end() || worth(each->second) < worth(least->second)) least = each;
  }
  end(least->first);
  return true;
}

std::vector<Callers::Call> Callers::read(int number) {
  const auto at = open_.find(number);
  if (at == open_.end()) return {};
  std::array<char, 1024> bytes{};
  const ssize_t got = recv(number, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  Open& open = at->second;
  if (got > 0) open.text.append(bytes.data(), static_cast<std::size_t>(got));
  if (got <= 0 || open.text.size() > profiles::kMostAsked) {
    end(number);
    return {};
  }
  if (open.request != 0) return lines_of(number, open);
  const bool is_whole = open.text.starts_with('\n') || open.text.find("\n\n") != std::string::npos;
  if (!is_whole) return {};
  return {{number, std::exchange(open.text, ""), 0}};
}

std::vector<Callers::Call> Callers::lines_of(int number, Open& open) {
  std::vector<Call> lines;
  for (std::size_t end = 0; (end = open.text.find('\n')) != std::string::npos; open.text.erase(0, end + 1)) {
    lines.push_back({number, open.text.substr(0, end), open.request});
  }
  return lines;
}

void Callers::end(int number) {
  const auto at = open_.find(number);
  if (at->second.request != 0) left_.push_back(at->second.request);
  close(number);
}

void Callers::close(int number) {
  const auto at = open_.find(number);
  if (at == open_.end()) return;
  shares_.remove(at->second.payer);
  open_.erase(at);
}

void Callers::tell(int number, std::string_view line) {
  if (!open_.contains(number)) return;
  const std::string text = std::string(line) + "\n";
  const ssize_t sent = send(number, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(text.size())) end(number);
}

void Callers::tell_about(profiles::Desk::Number request, std::string_view line) {
  const auto at = std::ranges::find_if(open_, [&](auto& entry) { return entry.second.request == request; });
  if (at != open_.end()) tell(at->first, line);
}

bool Callers::pass_about(profiles::Desk::Number request, std::string_view line, const Descriptor& attached) {
  const auto at = std::ranges::find_if(open_, [&](auto& entry) { return entry.second.request == request; });
  if (at == open_.end()) return false;
  std::string text = std::string(line) + "\n";
  iovec bytes{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = attached.number();
  std::memcpy(CMSG_DATA(head), &number, sizeof number);
  const ssize_t sent = sendmsg(at->first, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(text.size())) return true;
  end(at->first);
  return false;
}

void Callers::close_about(profiles::Desk::Number request) {
  const auto at = std::ranges::find_if(open_, [&](auto& entry) { return entry.second.request == request; });
  if (at != open_.end()) close(at->first);
}

std::vector<profiles::Desk::Number> Callers::tick(Nanoseconds now) {
  for (auto at = open_.begin(); at != open_.end();) {
    const auto& [number, open] = *at++;
    if (open.request == 0 && now - open.since >= kPatience) close(number);
  }
  return std::exchange(left_, {});
}

std::vector<int> Callers::numbers() const {
  std::vector<int> numbers;
  for (const auto& [number, open] : open_) numbers.push_back(number);
  return numbers;
}

}  // namespace gpumeter
