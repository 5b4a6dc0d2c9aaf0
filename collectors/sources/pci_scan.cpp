#include "collectors/sources/pci_scan.hpp"

#include <algorithm>
#include <utility>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter::pci {
namespace {

struct Answer {
  std::optional<Function> function;
  bool is_readable = true;
};

// While a driver resets its device, the device's `uevent` may be empty or unreadable.
Answer ask(const std::string& folder, const Scan::Read& read) {
  Answer answer{read(folder)};
  if (!answer.function || answer.function->vendor != 0) return answer;
  const ReadStatus uevent = sysfs::probe(answer.function->path + "/uevent");
  answer.is_readable = uevent == ReadStatus::ok || uevent == ReadStatus::gone;
  return answer;
}

}  // namespace

Scan::Found Scan::adapters(const std::string& sysfs_root) {
  const std::string bus = sysfs_root + "/bus/pci/devices/";
  auto answers = calls_.ask<Answer>(
      sysfs::list(bus), [bus, read = read_](const std::string& name) { return ask(bus + name, read); });
  Found found;
  found.is_whole = answers.has_asked;
  found.silent = std::move(answers.silent);
  for (auto& [name, answer] : answers.values) {
    if (!answer.is_readable) found.silent.push_back(name);
    if (answer.function && is_display(*answer.function))
      found.adapters.push_back(*std::move(answer.function));
  }
  std::sort(found.adapters.begin(), found.adapters.end(),
            [](const Function& a, const Function& b) { return a.address < b.address; });
  return found;
}

}  // namespace gpumeter::pci
