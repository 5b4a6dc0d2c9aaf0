#include "collectors/nccl/answer.hpp"

#include <algorithm>
#include <numeric>

#include "base/json/reader.hpp"

namespace gpumeter::nccl {
namespace {

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

}  // namespace

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

}  // namespace gpumeter::nccl
