#include "programs/nccl/ras.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "collectors/api/catalog.hpp"

namespace gpumeter::nccl {
namespace {

constexpr std::size_t kChunk = 64U << 10U;
constexpr std::size_t kLongestLine = 256;  // of an answer other than the document

/// A connection to RAS. Every call blocks until the deadline of the object at most.
class RasClient {
 public:
  RasClient(const Clock& clock, QueryLimits limits)
      : clock_(clock), limits_(limits), deadline_(clock.monotonic() + limits.patience) {}

  Result<std::string> status(int family, std::uint16_t port) {
    if (Result<Done> connected = connect(family, port); !connected) return connected.error();
    if (Result<Done> sent = send("SET FORMAT json\n"); !sent) return sent.error();
    const Result<std::string> line = read_line();
    if (!line) return line.error();
    if (*line != "OK") return Error("no JSON: " + readable(*line, [](char32_t code) { return code < U' '; }));
    if (Result<Done> sent = send("STATUS\n"); !sent) return sent.error();
    while (true) {
      const Result<std::size_t> count = receive();
      if (!count) return count.error();
      if (*count == 0) return std::move(received_);
    }
  }

 private:
  Result<Done> connect(int family, std::uint16_t port) {
    sockaddr_in v4{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
    v6.sin6_addr = in6addr_loopback;
    const bool is_ip6 = family == AF_INET6;
    const auto* const address =
        is_ip6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
    socket_ = Descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket_ || !has_time()) return failed();
    if (::connect(socket_.number(), address, is_ip6 ? sizeof v6 : sizeof v4) != 0) return failed();
    return Done{};
  }

  /// Bounds the next call by the time that is left. Returns false, with an errno, if none is.
  bool has_time() const {
    using std::chrono::microseconds;
    const Nanoseconds left = deadline_ - clock_.monotonic();
    errno = EAGAIN;
    if (left <= Nanoseconds(0)) return false;
    const std::int64_t whole = std::chrono::ceil<microseconds>(left) / microseconds(1);
    const timeval limit{whole / 1'000'000, whole % 1'000'000};
    return std::ranges::all_of(std::array{SO_RCVTIMEO, SO_SNDTIMEO}, [&](int option) {
      return ::setsockopt(socket_.number(), SOL_SOCKET, option, &limit, sizeof limit) == 0;
    });
  }
  static Error failed() {
    const bool is_late = errno == EAGAIN || errno == EINPROGRESS;
    return Error(is_late ? "no answer in time" : std::generic_category().message(errno));
  }

  Result<Done> send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count =
          has_time() ? ::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL) : -1;
      if (count < 0) return failed();
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return Done{};
  }

  Result<std::string> read_line() {
    std::size_t end = 0;
    while ((end = received_.find('\n')) == std::string::npos) {
      if (received_.size() > kLongestLine) return Error("not NCCL's protocol");
      const Result<std::size_t> count = receive();
      if (!count) return count.error();
      if (*count == 0) return Error("the connection was closed");
    }
    std::string line(trimmed(std::string_view(received_).substr(0, std::min(end, kLongestLine))));
    received_.erase(0, end + 1);
    return line;
  }

  /// Returns the number of bytes; 0: the server closed the connection.
  Result<std::size_t> receive() {
    const std::size_t end = received_.size();
    if (end > limits_.most_bytes) return Error("the answer is too long");
    received_.resize(end + kChunk);
    const ssize_t count = has_time() ? ::recv(socket_.number(), received_.data() + end, kChunk, 0) : -1;
    received_.resize(end + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0) return failed();
    return static_cast<std::size_t>(count);
  }

  const Clock& clock_;
  const QueryLimits limits_;
  const Nanoseconds deadline_;
  Descriptor socket_;
  std::string received_;
};

/// Reads a JSON document of a known shape from left to right, without a tree, which would take ten times the
/// text's 48 MiB, and without allocation. The document may be torn or hostile. The first error ends the
/// reading: every later call returns nothing. Commas are not required: NCCL 2.28 omits one. The text must
/// outlive the reader and what it returns.
class JsonReader {
 public:
  static constexpr std::size_t kDeepest = 32;  ///< objects and arrays within each other

  explicit JsonReader(std::string_view text) noexcept : rest_(text) {}

  /// Enters an object or an array; any other value is an error.
  bool begin_object() noexcept { return begin('{'); }
  bool begin_array() noexcept { return begin('['); }

  /// Takes the next key of the object that was entered last. Returns false at its end, and after an error.
  /// The caller reads or skips the value before the next call.
  bool next_key(std::string_view& key) noexcept;
  /// Returns true if the array that was entered last has one more element, which the caller reads or skips.
  bool next_element() noexcept;

  /// Returns the text between the quotes. Escapes are left as they are.
  std::string_view string() noexcept;
  /// A value that is no number, or none that fits, is an error.
  template <class Number>
  Number number() noexcept {
    const std::optional<Number> value = parse_number<Number>(token());
    if (!value) fail();
    return value.value_or(Number{});
  }
  bool boolean() noexcept;
  /// Skips a value of any kind.
  void skip() noexcept;

  /// Returns true if the document was read to its end and nothing follows.
  bool is_complete() noexcept;

 private:
  void fail() noexcept { failed_ = true; }
  void skip_blanks() noexcept;
  bool take(char expected) noexcept;
  bool begin(char bracket) noexcept;
  bool end(char bracket) noexcept;
  std::string_view token() noexcept;
  void skip_scalar() noexcept;

  std::string_view rest_;
  std::size_t depth_ = 0;
  bool failed_ = false;
};

void JsonReader::skip_blanks() noexcept {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n,"), rest_.size()));
}

bool JsonReader::take(char expected) noexcept {
  skip_blanks();
  if (failed_ || !rest_.starts_with(expected)) return false;
  rest_.remove_prefix(1);
  return true;
}

bool JsonReader::begin(char bracket) noexcept {
  if (depth_ >= kDeepest || !take(bracket)) {
    fail();
    return false;
  }
  ++depth_;
  return true;
}

bool JsonReader::end(char bracket) noexcept {
  if (!take(bracket)) return false;
  --depth_;
  return true;
}

bool JsonReader::next_key(std::string_view& key) noexcept {
  if (failed_ || end('}')) return false;
  key = string();
  if (!take(':')) fail();
  return !failed_;
}

bool JsonReader::next_element() noexcept {
  if (failed_ || end(']')) return false;
  if (rest_.empty()) fail();
  return !failed_;
}

std::string_view JsonReader::string() noexcept {
  if (!take('"')) return fail(), std::string_view();
  std::size_t length = 0;
  while (length < rest_.size() && rest_[length] != '"') length += rest_[length] == '\\' ? 2U : 1U;
  if (length >= rest_.size()) return fail(), std::string_view();
  const std::string_view text = rest_.substr(0, length);
  rest_.remove_prefix(length + 1);
  return text;
}

std::string_view JsonReader::token() noexcept {
  skip_blanks();
  const std::string_view text = rest_.substr(0, rest_.find_first_of(" \t\r\n,:{}[]\""));
  rest_.remove_prefix(text.size());
  if (failed_ || text.empty()) return fail(), std::string_view();
  return text;
}

bool JsonReader::boolean() noexcept {
  const std::string_view text = token();
  if (text != "true" && text != "false") fail();
  return text == "true" && !failed_;
}

void JsonReader::skip_scalar() noexcept {
  skip_blanks();
  if (rest_.starts_with('"')) {
    string();
  } else {
    token();
  }
}

// Counts brackets without a stack: a document whose brackets do not match is not read by its callers.
void JsonReader::skip() noexcept {
  std::size_t open = 0;
  do {
    skip_blanks();
    if (rest_.starts_with('{') || rest_.starts_with('[')) {
      rest_.remove_prefix(1);
      ++open;
      if (depth_ + open > kDeepest) fail();
    } else if (open > 0 && (rest_.starts_with('}') || rest_.starts_with(']'))) {
      rest_.remove_prefix(1);
      --open;
    } else if (open > 0 && rest_.starts_with(':')) {
      rest_.remove_prefix(1);
    } else {
      skip_scalar();
    }
  } while (open > 0 && !failed_);
}

bool JsonReader::is_complete() noexcept {
  skip_blanks();
  return !failed_ && depth_ == 0 && rest_.empty();
}

constexpr int kSuccess = 0;               // ncclSuccess of nccl.h
constexpr int kInProgress = 7;            // ncclInProgress
constexpr std::size_t kLongestName = 64;  // an IPv6 address has 45 bytes

std::string name_of(std::string_view text) {
  return readable(first_bytes(text, kLongestName), [](char32_t code) { return code < U' '; });
}

bool is_bad(int result) noexcept { return result != kSuccess && result != kInProgress; }

/// The status of a rank that answered, or of one that did not: the keys tell them apart.
void read_status(JsonReader& in, Rank& rank) {
  const auto note = [&rank](bool holds, RankState state) {
    rank.state = std::max(rank.state, holds ? state : RankState::ok);
  };
  in.begin_object();
  for (std::string_view key; in.next_key(key);) {
    if (key == "init_state" || key == "async_error") {
      note(is_bad(in.number<int>()), RankState::error);
    } else if (key == "abort_flag") {
      note(in.boolean(), RankState::error);
    } else if (key == "unresponsive") {
      note(in.boolean(), RankState::missing);
    } else if (key == "considered_dead") {
      note(in.boolean(), RankState::dead);
    } else {
      in.skip();
    }
  }
}

void read_counts(JsonReader& in, Rank& rank) {
  rank.has_counts = true;
  in.begin_object();
  for (std::string_view key; in.next_key(key);) {
    const auto op = std::ranges::find(kOps, key, &Op::in_answer);
    const std::size_t place =
        op == kOps.end() ? kOps.size() - 1 : static_cast<std::size_t>(op - kOps.begin());
    rank.launched.at(place) += in.number<std::uint64_t>();
  }
}

Rank read_rank(JsonReader& in) {
  Rank rank;
  in.begin_object();
  for (std::string_view key; in.next_key(key);) {
    if (key == "rank") {
      rank.rank = in.number<int>();
    } else if (key == "host") {
      rank.host = name_of(in.string());
    } else if (key == "pid") {
      rank.pid = in.number<int>();
    } else if (key == "nvml_dev") {
      rank.device = in.number<int>();
    } else if (key == "status") {
      read_status(in, rank);
    } else if (key == "collective_counts") {
      read_counts(in, rank);
    } else {
      in.skip();
    }
  }
  return rank;
}

Communicator read_communicator(JsonReader& in, std::size_t& ranks) {
  Communicator communicator;
  in.begin_object();
  for (std::string_view key; in.next_key(key);) {
    if (key == "hash" || key == "secondary_hash") {
      communicator.id += (communicator.id.empty() ? "" : ":") + name_of(in.string());
    } else if (key == "size") {
      communicator.size = in.number<int>();
    } else if (key == "ranks" || key == "missing_ranks") {
      in.begin_array();
      while (in.next_element() && ++ranks <= kMostRanks) communicator.ranks.push_back(read_rank(in));
      if (ranks > kMostRanks) break;
    } else {
      in.skip();
    }
  }
  return communicator;
}

/// The value of the label `state` of ml_nccl_stalled_rank; empty: the rank is not named.
std::string_view stalled_state(RankState state, bool is_behind) noexcept {
  if (state == RankState::dead || state == RankState::missing) return to_string(state);
  return is_behind ? "behind" : "";
}

}  // namespace

Result<std::string> ask_ras(const Clock& clock, int family, std::uint16_t port, QueryLimits limits) {
  return RasClient(clock, limits).status(family, port);
}

std::uint64_t Rank::total() const noexcept {
  return std::accumulate(launched.begin(), launched.end(), std::uint64_t{0});
}

Result<Answer> parse_answer(std::string_view text) {
  if (text.size() > kMostAnswerBytes) return Error("the answer is too long");
  Answer answer;
  bool has_communicators = false;
  std::size_t ranks = 0;
  JsonReader in(text);
  in.begin_object();
  for (std::string_view key; in.next_key(key) && ranks <= kMostRanks;) {
    if (key == "nccl_version") {
      answer.version = name_of(in.string());
    } else if (key == "communicators") {
      has_communicators = true;
      in.begin_array();
      // A communicator without ranks counts too: their number is limited as well.
      while (ranks <= kMostRanks && in.next_element()) {
        ++ranks;
        answer.communicators.push_back(read_communicator(in, ranks));
      }
    } else {
      in.skip();
    }
  }
  if (ranks > kMostRanks) return Error("the answer has more than " + std::to_string(kMostRanks) + " ranks");
  if (!in.is_complete()) return Error("the answer is no complete JSON document");
  if (!has_communicators) return Error("the answer has no communicators");
  return answer;
}

void Progress::update(const Answer& answer, const IsLocal& is_local, Nanoseconds now) {
  gpus_.clear();
  lag_ = 0;
  has_advanced_ = seen_.empty();
  std::map<MemberId, Seen> seen;
  for (const Communicator& communicator : answer.communicators) take(communicator, is_local, seen);
  // A job that creates or destroys communicators works.
  if (seen.size() != seen_.size()) has_advanced_ = true;
  if (has_advanced_) advanced_at_ = now;
  answered_at_ = now;
  seen_ = std::move(seen);
  note_lead(answer, is_local);
}

Progress::GpuId Progress::id_of(const Communicator& communicator, const Rank& rank) {
  if (rank.pid > 0) return {rank.host, rank.pid, rank.device, {}};
  return {rank.host, rank.pid, rank.device, communicator.id + "/" + std::to_string(rank.rank)};
}

void Progress::take(const Communicator& communicator, const IsLocal& is_local,
                    std::map<MemberId, Seen>& seen) {
  std::uint64_t lowest = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t highest = 0;
  for (const Rank& rank : communicator.ranks) {
    if (!rank.has_counts) continue;
    lowest = std::min(lowest, rank.total());
    highest = std::max(highest, rank.total());
  }
  if (lowest <= highest) lag_ = std::max(lag_, highest - lowest);
  for (const Rank& rank : communicator.ranks) {
    Gpu& gpu = gpus_[id_of(communicator, rank)];
    gpu.state = std::max(gpu.state, rank.state);
    if (communicator.size > gpu.of_size) gpu.rank = rank.rank, gpu.of_size = communicator.size;
    if (!rank.has_counts) continue;
    const MemberId id{communicator.id, rank.rank};
    const auto found = seen_.find(id);
    const Seen* before = found == seen_.end() ? nullptr : &found->second;
    const bool stands = before != nullptr && before->launched == rank.launched;
    const bool is_behind = rank.total() < highest;
    // Ranks are read one after another: a difference that remains is one.
    if (stands && is_behind && before->was_behind) gpu.is_behind = true;
    if (!stands) has_advanced_ = true;
    if (rank.total() > 0) has_launched_ = true;
    if (is_local(rank)) count(rank, before);
    seen[id] = {rank.launched, is_behind};
  }
}

// A communicator with lower counts than before is another one.
void Progress::count(const Rank& rank, const Seen* before) {
  for (std::size_t op = 0; op < kOps.size(); ++op) {
    const std::uint64_t past = before == nullptr ? 0 : before->launched.at(op);
    const std::uint64_t now = rank.launched.at(op);
    local_launches_.at(op) += static_cast<double>(now >= past ? now - past : now);
  }
}

void Progress::note_lead(const Answer& answer, const IsLocal& is_local) {
  const auto largest = std::ranges::max_element(answer.communicators, {}, &Communicator::size);
  leads_ = largest == answer.communicators.end();
  if (leads_) return;
  const Rank* lowest = nullptr;
  for (const Rank& rank : largest->ranks) {
    if (rank.has_counts && (lowest == nullptr || rank.rank < lowest->rank)) lowest = &rank;
  }
  leads_ = lowest == nullptr || is_local(*lowest);
}

void Progress::write(const Labels& labels, SeriesList& out) const {
  std::array<double, kRankStates> ranks{};
  for (const auto& [id, gpu] : gpus_) ranks.at(static_cast<std::size_t>(gpu.state)) += 1;
  for (const auto& [state, name] : kRankStateNames) {
    out.add(catalog::ml_nccl_ranks, labels.with({{"state", std::string(name)}}),
            ranks.at(static_cast<std::size_t>(state)));
  }
  for (std::size_t op = 0; op < kOps.size(); ++op) {
    const bool is_known = !kOps.at(op).in_answer.empty();
    if (!is_known && local_launches_.at(op) == 0) continue;
    out.add(catalog::ml_nccl_collectives, labels.with({{"op", std::string(kOps.at(op).label)}}),
            local_launches_.at(op));
  }
  out.add(catalog::ml_nccl_rank_lag, labels, static_cast<double>(lag_));
  // As of the last answer, because a machine that asks seldom does not know what happened since. A job
  // without collective operations never advances.
  if (has_launched_)
    out.add(catalog::ml_nccl_stalled_seconds, labels, to_seconds(answered_at_ - advanced_at_));
  for (const auto& [rank, host, state] : stalled()) {
    out.add(catalog::ml_nccl_stalled_rank,
            labels.with({{"rank", std::to_string(rank)}, {"host", host}, {"state", std::string(state)}}), 1);
  }
}

// A set: two groups of ranks that have no communicator in common may have the same numbers.
std::vector<Progress::Stalled> Progress::stalled() const {
  std::set<Stalled> named;
  for (const auto& [id, gpu] : gpus_) {
    const std::string_view state = stalled_state(gpu.state, gpu.is_behind);
    if (!state.empty()) named.insert({gpu.rank, id.host, state});
    if (named.size() > kMostNamed) named.erase(std::prev(named.end()));
  }
  return {named.begin(), named.end()};
}

}  // namespace gpumeter::nccl
