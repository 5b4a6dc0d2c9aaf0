#include "programs/held/gpu_nodes.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/text.hpp"

namespace gpumeter::held {
namespace {

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path.c_str()), closedir);
  while (const dirent* const entry = folder ? readdir(folder.get()) : nullptr) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

std::string text_of(const std::string& path) {
  std::array<char, 4096> text{};
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = file ? read(file.number(), text.data(), text.size()) : 0;
  return {text.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

/// The last name of the link's target.
std::string target_of(const std::string& link) {
  std::array<char, 4096> text{};
  const ssize_t got = readlink(link.c_str(), text.data(), text.size());
  const std::string target(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  return target.substr(target.rfind('/') + 1);
}

bool is_pci_address(std::string_view text) {
  return text.size() == std::string_view("0000:00:00.0").size() && text[4] == ':' && text[7] == ':' &&
         text[10] == '.' && text.find_first_not_of("0123456789abcdef:.") == std::string_view::npos;
}

/// "Device Minor: \t 0"
std::string minor_of(std::string_view information) {
  while (!information.empty()) {
    std::string_view line = take_until(information, '\n');
    if (take_until(line, ':') == "Device Minor") return std::string(trimmed(line));
  }
  return {};
}

bool has_instances(const Roots& roots, const std::string& minor) {
  const auto names = names_in(roots.procfs + "/driver/nvidia/capabilities/gpu" + minor + "/mig");
  return std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("gi"); });
}

void add_nvidia(const Roots& roots, std::vector<Gpu>& gpus) {
  const std::string folder = roots.procfs + "/driver/nvidia/gpus";
  for (const std::string& address : names_in(folder)) {
    const std::string minor = minor_of(text_of(folder + "/" + address + "/information"));
    const bool is_number = parse_number<unsigned>(minor).has_value();
    if (is_pci_address(address) && is_number && !has_instances(roots, minor)) {
      gpus.push_back({address, "nvidia" + minor});
    }
  }
}

// NVIDIA's render nodes give no access to computing, and schedulers leave them open.
void add_drm(const Roots& roots, std::vector<Gpu>& gpus) {
  const std::string folder = roots.sysfs + "/class/drm";
  for (const std::string& name : names_in(folder)) {
    if (!name.starts_with("renderD")) continue;
    const std::string device = folder + "/" + name + "/device";
    const std::string address = target_of(device);
    if (!is_pci_address(address) || target_of(device + "/driver") == "nvidia") continue;
    gpus.push_back({address, "dri/" + name});
  }
}

}  // namespace

std::vector<Gpu> read_gpus(const Roots& roots) {
  std::vector<Gpu> gpus;
  add_nvidia(roots, gpus);
  add_drm(roots, gpus);
  std::ranges::sort(gpus, {}, [](const Gpu& gpu) { return std::pair(gpu.pci_address, gpu.node); });
  return gpus;
}

}  // namespace gpumeter::held
