#include "programs/profiler/asking.hpp"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "programs/profiler/kineto.hpp"

namespace gpumeter::profiles {
namespace {

template <class Number>
Result<Number> number_in(std::string_view text, Number most) {
  const auto number = parse_number<Number>(text);
  if (number && *number >= 1 && *number <= most) return *number;
  return Error("expected a whole number from 1 to " + std::to_string(most));
}

Result<Done> take_line(std::string_view word, std::string_view value, Asked& asked) {
  if (word == "run" && !value.empty()) {
    asked.run = value;
    return Done{};
  }
  if (word == "folder" && !value.empty()) {
    asked.folder = value;
    return Done{};
  }
  if (word == "pid") {
    const auto pid = number_in<int>(value, 1 << 22);  // PID_MAX_LIMIT
    if (!pid) return pid.error().with("pid");
    asked.pid = *pid;
    return Done{};
  }
  if (word == "steps") {
    const auto steps = number_in<unsigned>(value, kMostSteps);
    if (!steps) return steps.error().with("steps");
    asked.extent.steps = *steps;
    return Done{};
  }
  if (word != "milliseconds") return Error("unknown word in the request");
  const auto time = number_in<std::int64_t>(value, kLongestTrace / std::chrono::milliseconds(1));
  if (!time) return time.error().with("milliseconds");
  asked.extent.duration = std::chrono::milliseconds(*time);
  return Done{};
}

constexpr std::string_view kPrefix = "gpumeter_";
constexpr std::string_view kSuffix = ".json";

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

}  // namespace

std::string text_of(const Asked& asked) {
  std::string text = asked.pid ? "pid " + std::to_string(*asked.pid) : "run " + asked.run;
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(asked.extent.duration).count();
  text += asked.extent.steps ? "\nsteps " + std::to_string(*asked.extent.steps)
                             : "\nmilliseconds " + std::to_string(time);
  if (!asked.folder.empty()) text += "\nfolder " + asked.folder;
  return text + "\n\n";
}

Result<Asked> parse_asked(std::string_view text) {
  Asked asked;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.empty()) {
      if (asked.run.empty() == !asked.pid) return Error("name either a run or a process");
      return asked;
    }
    const std::string_view word = take_until(line, ' ');
    if (const Result<Done> taken = take_line(word, line, asked); !taken) return taken.error();
  }
  return Error("the request has no end");
}

Result<std::string> path_in(std::string_view folder, std::string_view run) {
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) return Error("no random number");
  constexpr std::size_t kMostOfName = 40;
  std::string name(run.substr(0, kMostOfName));
  std::ranges::replace_if(
      name, [&](char c) { return !is_plain(c); }, '-');
  std::array<char, 16> digits{};
  const char* const end = std::to_chars(digits.begin(), digits.end(), random, 16).ptr;
  const std::string_view slash = folder.ends_with('/') ? "" : "/";
  std::string path =
      std::string(folder).append(slash) + std::string(kPrefix) + (name.empty() ? "process" : name) + "_" +
      std::string(digits.data(), static_cast<std::size_t>(end - digits.data())) + std::string(kSuffix);
  if (const Result<Done> checked = kineto::check_path(path); !checked) return checked.error();
  return path;
}

bool is_trace_name(std::string_view name) {
  constexpr std::size_t kLongest = 255;  // NAME_MAX
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix) || name.size() > kLongest) return false;
  name.remove_suffix(kSuffix.size());
  return std::ranges::all_of(name, [](char c) { return is_plain(c) || c == '_'; });
}

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
    open_[number] = {std::move(made), *std::move(peer), payer, now, "", 0, false};
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
  if (got <= 0 || open.text.size() > kMostAsked) {
    end(number);
    return {};
  }
  if (open.request != 0) return lines_of(number, open);
  open.is_whole = open.text.starts_with('\n') || open.text.find("\n\n") != std::string::npos;
  return {};
}

bool Callers::have_asked() const {
  return std::ranges::any_of(open_, [](const auto& entry) { return entry.second.is_whole; });
}

std::vector<Callers::Call> Callers::take_requests() {
  std::vector<Call> calls;
  for (auto& [number, open] : open_) {
    if (std::exchange(open.is_whole, false)) calls.push_back({number, std::exchange(open.text, ""), 0});
  }
  return calls;
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

void Callers::tell_about(Desk::Number request, std::string_view line) {
  const auto at = std::ranges::find_if(open_, [&](auto& entry) { return entry.second.request == request; });
  if (at != open_.end()) tell(at->first, line);
}

bool Callers::pass_about(Desk::Number request, std::string_view line, const Descriptor& attached) {
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

void Callers::close_about(Desk::Number request) {
  const auto at = std::ranges::find_if(open_, [&](auto& entry) { return entry.second.request == request; });
  if (at != open_.end()) close(at->first);
}

std::vector<Desk::Number> Callers::tick(Nanoseconds now) {
  for (auto at = open_.begin(); at != open_.end();) {
    const auto& [number, open] = *at++;
    if (open.request == 0 && !open.is_whole && now - open.since >= kPatience) close(number);
  }
  return std::exchange(left_, {});
}

std::vector<int> Callers::numbers() const {
  std::vector<int> numbers;
  for (const auto& [number, open] : open_) numbers.push_back(number);
  return numbers;
}

}  // namespace gpumeter::profiles
