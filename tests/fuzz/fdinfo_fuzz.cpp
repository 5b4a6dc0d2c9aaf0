// The text of /proc/PID/fdinfo/FD, and the accounts that several processes with this text get.
#include <algorithm>
#include <cmath>
#include <string>

#include "collectors/sources/fdinfo/client.hpp"
#include "collectors/sources/fdinfo/scanner.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::fdinfo {
namespace {

bool is_amount(double amount) { return std::isfinite(amount) && amount >= 0; }

void check_text(const Text& text, std::string_view raw) {
  const auto lines = static_cast<std::size_t>(std::count(raw.begin(), raw.end(), '\n')) + 1;
  fuzz::expect(text.malformed + text.engines.size() + text.regions.size() + text.others.size() <= 2 * lines);
  for (const Engine& engine : text.engines) {
    fuzz::expect(!engine.name.empty() && engine.capacity.value_or(1) > 0);
    fuzz::expect(engine.busy_ns || engine.capacity || engine.cycles || engine.total_cycles ||
                 engine.max_hertz || engine.current_hertz);
  }
  for (const Region& region : text.regions) {
    fuzz::expect(!region.name.empty());
    fuzz::expect(region.total || region.shared || region.resident || region.purgeable || region.active ||
                 region.alias);
  }
}

void check_memory(const ClientMemory& memory) {
  fuzz::expect(is_amount(memory.device.value_or(0)) && is_amount(memory.system.value_or(0)));
  fuzz::expect(memory.shared_device <= memory.device.value_or(0));
  fuzz::expect(memory.shared_system <= memory.system.value_or(0));
}

DeviceAccount::Holders holders_of(const Text& text, int seconds) {
  DeviceAccount::Holders holders;
  for (const int pid : {1, 2}) {
    Client client{"gpu", text.client_id, 3, engines_of(text), memory_of(text)};
    holders[pid] = {1, std::chrono::seconds(seconds), true, true, {client}};
  }
  return holders;
}

// The same text twice, and then the other half of the input as the next scan.
void check_account(const Text& first, const Text& second) {
  DeviceAccount account;
  EngineSeconds before;
  int now = 0;
  for (const Text* const text : {&first, &first, &second, &first}) {
    now += 10;
    account.take("gpu", holders_of(*text, now), std::chrono::seconds(now), true);
    const DrmUse use = account.use(0);
    fuzz::expect(use.processes.size() <= 2);
    for (std::size_t i = 0; i < kEngineClassCount; ++i) {
      fuzz::expect(is_amount(use.busy_seconds[i].value_or(0)));
      fuzz::expect(use.busy_seconds[i].value_or(0) >= before[i].value_or(0));
    }
    before = use.busy_seconds;
  }
}

}  // namespace
}  // namespace gpumeter::fdinfo

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view raw = fuzz::text_of(data, size);
  const fdinfo::Text text = fdinfo::parse(raw);
  fdinfo::check_text(text, raw);
  fdinfo::check_memory(fdinfo::memory_of(text));
  fdinfo::check_account(text, fdinfo::parse(raw.substr(size / 2)));
  return 0;
}
