#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectors/nccl/files/owners.hpp"
#include "collectors/nccl/files/user_folder.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/places.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/fakes/walked.hpp"

namespace gpumeter::nccl {

/// A folder with files of the test's own user, who has a process on GPU 0 unless the test changes `uses`, and
/// a page. Times are seconds since an arbitrary moment of 2026.
class FilesBench {
 public:
  static constexpr Nanoseconds kStart = std::chrono::seconds(1'790'000'000);
  static Nanoseconds at(double seconds) {
    return kStart + std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
  }

  FilesBench() { put_on_gpu(::geteuid(), "GPU-c2000000-0000-4000-8000-000000000000"); }

  void put_on_gpu(std::uint32_t uid, const std::string& uuid) {
    workloads::ProcessUse process;
    process.id = {1234, 1};
    process.uid = uid;
    process.group = "/system.slice/train.service";
    process.present = true;
    workloads::DeviceUse use;
    use.uuid = uuid;
    use.index = static_cast<unsigned>(uses.size());
    use.processes.push_back(process);
    uses.push_back(use);
  }

  void write(const std::string& name, const std::string& text, double modified) const {
    tree.write(name, text);
    std::filesystem::last_write_time(tree / name, std::filesystem::file_time_type::clock::from_sys(
                                                      std::chrono::sys_time<Nanoseconds>(at(modified))));
  }

  Owners owners() const {
    Owners::Parts parts{.partitions = partitions, .allowed = allowed};
    for (const auto& use : uses) parts.uses.push_back(std::make_shared<const workloads::DeviceUse>(use));
    parts.run_of = [this](const workloads::ProcessUse&) { return run; };
    parts.user_name = [](std::uint32_t uid) { return uid == ::geteuid() ? "ann" : std::to_string(uid); };
    return Owners(std::move(parts));
  }

  template <class Watched>
  std::string page(const Watched& watched) {
    watched.write(series_);
    series_.commit({});
    return walked(store_);
  }
  template <class Watched>
  static std::string states(const Watched& watched) {
    std::map<FileState, std::size_t> counts;
    watched.count(counts);
    std::string out;
    for (const auto& [state, count] : counts) {
      out += (out.empty() ? "" : " ") + std::string(kFileStateNames.of(state)) + "=" + std::to_string(count);
    }
    return out;
  }
  auto say() {
    return [this](const std::string& path, const std::string& complaint) {
      said += path.substr(path.rfind('/') + 1) + ": " + complaint + "\n";
    };
  }

  static std::string fixture(const std::string& name) {
    std::ifstream file(places::in_tests("fixtures/nccl/" + name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Tree tree = make_tree({});
  std::vector<workloads::DeviceUse> uses;
  std::vector<allocation::PartitionFacts> partitions;
  std::vector<std::string> allowed;
  std::optional<RunLabels> run;
  std::string said;

 private:
  Store store_;
  SeriesList series_{store_.attach()};
};

}  // namespace gpumeter::nccl
