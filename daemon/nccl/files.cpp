#include "daemon/nccl/files.hpp"

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "collectors/api/self_catalog.hpp"
#include "collectors/nccl/files/flight_recorder.hpp"
#include "collectors/nccl/files/inspector.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter {
namespace {

// A file that is being written is complete in milliseconds, and judged when it is a second old.
constexpr auto kSoon = std::chrono::seconds(2);

using Counts = std::map<nccl::FileState, std::size_t>;

void write_counts(const Counts& counts, const std::string& source, SeriesList& out) {
  for (const auto& [state, count] : counts) {
    out.add(self_catalog::nccl_files,
            Labels({{"source", source}, {"state", std::string(nccl::kFileStateNames.of(state))}}),
            static_cast<double>(count));
  }
}

std::set<std::string> folders_of(const nccl::Settings& settings) {
  std::set<std::string> folders;
  if (!settings.inspector.folder.empty()) folders.insert(settings.inspector.folder);
  for (const std::string& prefix : settings.flight_recorder) {
    folders.insert(std::filesystem::path(prefix).parent_path().string());
  }
  return folders;
}

}  // namespace

/// The thread's state.
class NcclFiles::Turn {
 public:
  Turn(Parts parts, const nccl::Settings& settings, Nanoseconds interval)
      : parts_(std::move(parts)),
        users_(settings.users),
        interval_(interval),
        inspector_(settings.inspector, say("NCCL Inspector's file")),
        flight_recorder_(settings.flight_recorder, say("the flight recorder's dump")),
        has_inspector_(!settings.inspector.folder.empty()),
        new_folders_(folders_of(settings)),
        series_(parts_.store.attach()) {}

  Nanoseconds run() {
    name_missing(std::exchange(new_folders_, {}));
    const Nanoseconds now = parts_.clock.realtime();
    const nccl::Owners owners = owners_now();
    bool is_torn = has_inspector_ && inspector_.look(owners, now);
    is_torn = flight_recorder_.look(owners, now) || is_torn;
    write();
    return is_torn ? Nanoseconds(kSoon) : interval_;
  }

 private:
  nccl::SayFile say(const std::string& what) const {
    return [&log = parts_.log, what](const std::string& path, const std::string& complaint) {
      if (complaint.empty()) return log.info(what + " is read without complaint again", {{"file", path}});
      log.warn(what + " is not read, or not all of it; gpumeter retries when it changes",
               {{"file", path}, {"error", complaint}});
    };
  }

  // A job may create a folder later, so this is no error; a wrong path would show nothing at all.
  void name_missing(const std::set<std::string>& folders) const {
    for (const std::string& folder : folders) {
      std::error_code error;
      if (std::filesystem::exists(folder, error)) continue;
      parts_.log.warn("a folder of NCCL Inspector's files or the flight recorder's dumps does not exist yet",
                      {{"folder", folder}});
    }
  }

  nccl::Owners owners_now() const {
    return nccl::Owners(
        {.uses = parts_.workloads.book->uses(),
         .partitions = has_inspector_ ? allocation::read(parts_.store).partitions
                                      : std::vector<allocation::PartitionFacts>(),
         .allowed = users_,
         .run_of = [this](const workloads::ProcessUse& use) -> std::optional<nccl::RunLabels> {
           const auto run = parts_.runs->of(use.id);
           if (!run) return std::nullopt;
           return nccl::RunLabels{run->user, run->run};
         },
         .user_name = parts_.workloads.user_name});
  }

  void write() {
    Counts counts;
    inspector_.write(series_);
    inspector_.count(counts);
    write_counts(std::exchange(counts, {}), "inspector", series_);
    flight_recorder_.write(series_);
    flight_recorder_.count(counts);
    write_counts(counts, "flight_recorder", series_);
    series_.commit(parts_.clock.monotonic());
  }

  const Parts parts_;
  const std::vector<std::string> users_;
  const Nanoseconds interval_;
  nccl::Inspector inspector_;
  nccl::FlightRecorder flight_recorder_;
  const bool has_inspector_;
  std::set<std::string> new_folders_;  // until the first look
  SeriesList series_;
};

NcclFiles::NcclFiles(const Parts& parts, const nccl::Settings& settings, Nanoseconds interval)
    : turn_(std::make_shared<Turn>(parts, settings, interval)), worker_(parts.clock) {}

Result<Done> NcclFiles::start() {
  return worker_.start("nccl-files", [turn = turn_] { return turn->run(); });
}

std::unique_ptr<NcclFiles> make_nccl_files(const nccl::Settings& settings, Nanoseconds interval,
                                           const NcclFiles::Parts& parts) {
  const bool has_files = !settings.inspector.folder.empty() || !settings.flight_recorder.empty();
  if (!has_files) return nullptr;
  if (parts.workloads.book == nullptr) {
    parts.log.warn(
        "files of NCCL Inspector and the flight recorder are not read: only with workloads.enabled is it "
        "known who uses a GPU");
    return nullptr;
  }
  return std::make_unique<NcclFiles>(parts, settings, interval);
}

}  // namespace gpumeter
