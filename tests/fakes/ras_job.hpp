#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gpumeter {

/// The answer of a job to STATUS, in the layout of NCCL's printf (src/ras/client_support.cc of 2.29).
class RasJob {
 public:
  struct Member {
    int rank = 0;
    std::uint64_t all_reduces = 0;
    std::string host = "127.0.0.1";
    int pid = 100;
    int init_state = 0;
    int async_error = 0;
    bool aborted = false;
  };
  struct Missing {
    int rank = 0;
    bool unresponsive = true;
    bool dead = false;
    std::string host = "10.0.0.2";
    int pid = 200;
  };

  void add(const std::string& hash, const std::vector<Member>& ranks,
           const std::vector<Missing>& missing = {}) {
    const auto members = joined(ranks);
    const auto gone = joined(missing);
    communicators_ += communicators_.empty() ? "" : ",\n";
    communicators_ +=
        "    {\n      \"hash\": \"" + hash + "\",\n      \"secondary_hash\": \"0x1:0x2\",\n      \"size\": " +
        std::to_string(ranks.size() + missing.size()) +
        ",\n      \"ranks_count\": " + std::to_string(ranks.size()) +
        ",\n      \"missing_ranks_count\": " + std::to_string(missing.size()) + ",\n      \"ranks\": [\n" +
        members + "\n      ],\n      \"missing_ranks\": [\n" + gone + "\n      ]\n    }";
  }
  std::string text() const {
    return "{\n  \"nccl_version\": \"2.29.3\",\n  \"communicators_count\": 1,\n  \"communicators\": [\n" +
           communicators_ +
           "\n  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.012,\n    \"timeouts_count\": 0\n  }\n}\n";
  }

 private:
  template <class Each>
  static std::string joined(const std::vector<Each>& all) {
    std::string text;
    for (const Each& each : all) text += (text.empty() ? "" : ",\n") + object(each);
    return text;
  }
  static std::string number(const char* key, std::uint64_t value) {
    return std::string("\"") + key + "\": " + std::to_string(value);
  }
  static std::string place(int rank, const std::string& host, int pid) {
    return number("rank", static_cast<std::uint64_t>(rank)) + ",\n\"host\": \"" + host + "\",\n" +
           number("pid", static_cast<std::uint64_t>(pid)) + ",\n" + number("cuda_dev", 0) + ",\n" +
           number("nvml_dev", static_cast<std::uint64_t>(rank)) + ",\n";
  }
  static std::string object(const Member& each) {
    return "        {\n" + place(each.rank, each.host, each.pid) + "\"status\": {\n" +
           number("init_state", static_cast<std::uint64_t>(each.init_state)) + ",\n" +
           number("async_error", static_cast<std::uint64_t>(each.async_error)) +
           ",\n\"finalize_called\": false,\n\"destroy_flag\": false,\n\"abort_flag\": " +
           (each.aborted ? "true" : "false") + "\n},\n\"collective_counts\": {\n" + number("Broadcast", 1) +
           ",\n" + number("Reduce", 0) + ",\n" + number("AllGather", 2) + ",\n" + number("ReduceScatter", 0) +
           ",\n" + number("AllReduce", each.all_reduces) + "\n}\n        }";
  }
  static std::string object(const Missing& each) {
    return "        {\n" + place(each.rank, each.host, each.pid) +
           "\"status\": {\n\"unresponsive\": " + (each.unresponsive ? "true" : "false") +
           ",\n\"considered_dead\": " + (each.dead ? "true" : "false") + "\n}\n        }";
  }

  std::string communicators_;
};

}  // namespace gpumeter
