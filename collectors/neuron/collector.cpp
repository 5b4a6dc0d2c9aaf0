#include "collectors/neuron/collector.hpp"

#include <string>
#include <utility>

#include "base/bounded_calls.hpp"
#include "base/text.hpp"
#include "collectors/neuron/topology.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/tree/file_index.hpp"

namespace gpumeter::neuron {
namespace {

constexpr const char* kThread = "find-neuron";
constexpr Nanoseconds kAtMost = std::chrono::milliseconds(500);
constexpr const char* kFolder = "/devices/virtual/neuron_device";

std::string text_of(const tree::FileIndex& index, std::string_view pattern) {
  const auto path = index.file(pattern);
  return path ? sysfs::read_text(*path) : std::string();
}

/// N of "neuronN".
std::optional<int> number_of(std::string_view name) {
  constexpr std::string_view kPrefix = "neuron";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  return parse_number<int>(name);
}

DeviceInfo identify(const std::string& sysfs_root, const std::string& name) {
  const std::string folder = sysfs_root + kFolder + "/" + name;
  const tree::FileIndex index(folder);
  DeviceInfo info;
  info.uuid = uuid_of(folder);
  info.vendor = "aws";
  info.model = text_of(index, "**/architecture/device_name");
  if (info.model.empty()) info.model = text_of(index, "**/architecture/device_type");
  if (info.model.empty()) info.model = "Neuron";
  info.serial = text_of(index, "**/serial_number");
  info.driver = "neuron";
  info.driver_version = sysfs::read_text(sysfs_root + "/module/neuron/version");
  info.architecture = text_of(index, "**/architecture/arch_type");
  info.vendor_index = name.substr(std::string_view("neuron").size());
  info.minor = info.vendor_index;  // of /dev/neuronN
  if (const auto cores = sysfs::parse_integer(text_of(index, "**/core_count")); cores && *cores > 0)
    info.compute_units = static_cast<int>(*cores);
  info.source = folder;
  return info;
}

class NeuronCollector final : public Collector {
 public:
  explicit NeuronCollector(const CollectorContext& context)
      : roots_{context.sysfs_root, context.procfs_root, nullptr},
        identify_(kThread, kAtMost, *context.clock, context.hanging, "neuron") {}

  Result<Discovery> discover() override {
    std::vector<std::string> names;
    for (const std::string& name : sysfs::list(roots_.sysfs + kFolder)) {
      if (number_of(name)) names.push_back(name);
    }
    auto answers = identify_.ask<DeviceInfo>(
        names, [root = roots_.sysfs](const std::string& name) { return identify(root, name); });
    Discovery found;
    for (const std::string& name : names) {
      const auto answer = answers.values.find(name);
      if (answer != answers.values.end()) found.devices.push_back(std::move(answer->second));
    }
    for (const std::string& name : answers.silent) {
      found.notes.push_back(name + ": its identity files do not respond; retried");
      found.is_incomplete = true;
    }
    return found;
  }

  std::unique_ptr<Device> device(const DeviceInfo&) override {
    return tree::make_device(neuron_kind(), roots_);
  }

 private:
  const tree::Roots roots_;
  BoundedCalls identify_;
};

}  // namespace

Result<std::unique_ptr<Collector>> open_neuron(const CollectorContext& context) {
  std::unique_ptr<Collector> collector = std::make_unique<NeuronCollector>(context);
  return collector;
}

}  // namespace gpumeter::neuron
