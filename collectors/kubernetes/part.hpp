#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/options.hpp"
#include "base/text.hpp"
#include "collectors/api/part.hpp"
#include "collectors/attribution/names/name_book.hpp"
#include "collectors/grpc/call.hpp"
#include "collectors/kubernetes/names.hpp"

namespace gpumeter {
class SeriesList;
}

namespace gpumeter::kubelet {

enum class SourceId : std::uint8_t { pods_api, pod_resources, cri, logs };
inline constexpr EnumNames<SourceId, 4> kSourceNames = {{{SourceId::pods_api, "pods_api"},
                                                         {SourceId::pod_resources, "pod_resources"},
                                                         {SourceId::cri, "cri"},
                                                         {SourceId::logs, "logs"}}};
constexpr std::string_view to_string(SourceId source) noexcept { return kSourceNames.of(source); }

/// The sources of the names of Kubernetes' pods on this node. An empty path: this source is not used.
struct Settings {
  options::Enabled enabled = options::Enabled::automatic;  ///< auto: if any of them is there
  std::string pods_socket = "/var/lib/kubelet/pods-api/pods-api.sock";
  std::string resources_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  std::string log_path = "/var/log";
  std::string cri_socket;           ///< for example /run/containerd/containerd.sock
  std::vector<std::string> labels;  ///< of pods, exported as k8s_label_*
  bool operator==(const Settings&) const = default;
};

/// The state of one source.
struct SourceFigures {
  bool is_used = false;                       ///< false: not configured, or nothing is at its path
  bool is_up = false;                         ///< the last request succeeded
  std::optional<Nanoseconds> last_success{};  ///< CLOCK_REALTIME
  std::array<std::uint64_t, grpc::kFailureCount> errors{};  ///< by Failure
  std::string last_error{};                                 ///< empty while it is up
};
using Figures = std::map<SourceId, SourceFigures>;

/// The sources of one node, in the order of preference: the Pods API, which the kubelet updates; otherwise
/// pod-resources for devices, and the container runtime or the names of logs for names. The last word of a
/// source holds for kKeep after its last success, over restarts of the kubelet and its rate limit. Names of a
/// pod that has left stay for kRemember, as its series do. One thread.
class Sources {
 public:
  static constexpr Nanoseconds kEvery = std::chrono::seconds(10);        ///< between two requests
  static constexpr Nanoseconds kPatience = std::chrono::seconds(5);      ///< for one request
  static constexpr Nanoseconds kSyncPatience = std::chrono::seconds(3);  ///< for the first events of a watch
  static constexpr Nanoseconds kLongestTurn = kSyncPatience + 3 * kPatience;
  static constexpr Nanoseconds kRewatch =
      std::chrono::minutes(5);  ///< early versions drop events of a slow reader
  static constexpr Nanoseconds kKeep = std::chrono::minutes(10);
  static constexpr Nanoseconds kRemember = std::chrono::minutes(15);

  /// `clock` and `book` must outlive this object.
  Sources(Settings settings, const std::string& sysfs, const Clock& clock, workloads::NameBook& book);

  /// Asks the sources whose time has come, takes the events of an open watch, and publishes what changed
  /// under the name "kubelet". Blocks for at most kLongestTurn. Returns the pause until a source is to be
  /// asked again, without regard to events.
  Nanoseconds turn();

  /// The next turn asks at once: a container without names is on a GPU.
  void ask_soon() noexcept { asks_at_ = {}; }

  const Figures& figures() const noexcept { return figures_; }

 private:
  struct Word {
    std::vector<Pod> pods;
    Nanoseconds at{};  // CLOCK_MONOTONIC
  };
  struct Remembered {
    std::vector<Label> labels;
    Nanoseconds until{};
  };

  bool take_events();
  void take_event(const std::string& message, std::map<std::string, Pod>& pods, bool& is_synchronised);
  void open_watch();
  bool synchronise();
  bool list_pods();
  void end_watch(grpc::Outcome outcome, bool is_absent);
  void ask_rest();
  using Decode = Result<std::vector<Pod>>(std::string_view message);
  void ask(SourceId source, const std::string& socket, grpc::Request request, Decode& decode);
  void read_logs();
  void take(SourceId source, std::vector<Pod> pods);
  void note(SourceId source, const grpc::Outcome& outcome, bool is_absent = false);
  const std::vector<Pod>* word_of(SourceId source) const;
  void publish();
  void remember(workloads::Names& names);

  const Settings settings_;
  const Clock& clock_;
  workloads::NameBook& book_;
  const CardAddress address_of_;
  std::map<SourceId, Word> words_;
  Figures figures_;
  std::unique_ptr<grpc::Call> watch_;   // synchronised; null: none
  std::map<std::string, Pod> watched_;  // by uid
  Nanoseconds watched_since_{};
  Nanoseconds watch_at_{};  // of the next attempt
  Nanoseconds watch_pause_{};
  std::size_t version_ = 0;  // of the Pods API
  Nanoseconds asks_at_{};
  std::map<workloads::NameKey, Remembered> departed_;
};

/// `kubernetes` in the configuration.
extern const options::Section kSection;

/// Asks the node's kubelet for the names of pods, and publishes the state of the sources.
extern const PartEntry kPart;

/// The families gpumeter_names_source_*.
void add_series(SourceId source, const SourceFigures& figures, SeriesList& to);

}  // namespace gpumeter::kubelet
