// The clients of an Intel GPU in /proc/PID/fdinfo.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/fake_drm_users.hpp"
#include "tests/fakes/intel_card_test.hpp"

namespace gpumeter::intel {
namespace {

using enum EngineClass;
using std::chrono::seconds;
using Processes = std::vector<DeviceProcess>;

constexpr const char* kCard = "0000:03:00.0";

class IntelClients : public OneIntelCard {
 protected:
  explicit IntelClients(const std::string& driver = "xe") : OneIntelCard(driver) {
    environment_.roots.users = users_;
  }
  void scan(std::vector<DrmProcess> processes) {
    DrmUse use;
    use.scanned_at = page_->now();
    use.processes = std::move(processes);
    users_->scan(kCard, std::move(use));
  }
  Processes listed() {
    page_->pass(Tier::normal, seconds(1));
    Processes list;
    EXPECT_EQ(page_->processes(list), ReadStatus::ok);
    return list;
  }
  /// The card has `used` bytes of memory in use, if it knows.
  void use_memory(std::optional<double> used) {
    environment_.query_memory = [used, this](const std::string&, const std::string&) {
      ++queries_;
      return memory::Regions{.size = 4000, .used = used, .status = ReadStatus::ok};
    };
  }

  const std::shared_ptr<FakeDrmUsers> users_ = std::make_shared<FakeDrmUsers>();
  int queries_ = 0;
};

TEST_F(IntelClients, OfACardHaveItsMemoryAndTheirBusyTime) {
  attach();
  Processes before;
  EXPECT_EQ(page_->processes(before), ReadStatus::unsupported);
  scan({{10, 1, engine_seconds({{compute, 50}}), 3000.0, 700.0}});
  EXPECT_EQ(listed(), (Processes{{10, 3000.0, 0.0}}));
  page_->pass(Tier::fast, seconds(1));
  scan({{10, 1, engine_seconds({{compute, 51}, {copy, 0.5}}), 3500.0, 700.0},
        {20, 5, engine_seconds({{video, 0.25}}), 0.0, 90.0}});
  EXPECT_EQ(listed(), (Processes{{10, 3500.0, 1.0}, {20, 0.0, 0.25}}));
}

TEST_F(IntelClients, FitTheMemoryInUse) {
  use_memory(3600);
  attach();
  scan({{10, 1, {}, 3500.0}, {20, 5, {}, 400.0, {}, 400}});
  const int queries = queries_;
  EXPECT_EQ(listed(), (Processes{{10, 3500.0, {}}, {20, 100.0, {}}}));
  EXPECT_EQ(queries_, queries + 1);  // the query of the rows
}

TEST_F(IntelClients, KeepTheirMemoryIfTheMemoryInUseIsUnknown) {
  use_memory(std::nullopt);
  attach();
  scan({{10, 1, {}, 3500.0}, {20, 5, {}, 900.0, {}, 900}});
  EXPECT_EQ(listed(), (Processes{{10, 3500.0, {}}, {20, 900.0, {}}}));
}

TEST_F(IntelClients, AreScannedOnlyWhileTheCardIsAwake) {
  write("power/runtime_status", "suspended\n");
  write("power/control", "auto\n");
  attach();
  page_->pass(Tier::fast);
  EXPECT_FALSE(users_->watches.contains(kCard));
  write("power/runtime_status", "active\n");
  page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(users_->watches[kCard], 1);
  write("power/runtime_status", "suspending\n");
  page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(users_->watches[kCard], 0);
  write("power/runtime_status", "active\n");
  page_->pass(Tier::fast, seconds(1));
  page_->release();
  EXPECT_EQ(users_->watches[kCard], 0);
}

TEST_F(IntelClients, AreNotScannedWhileAnIdleCardMayFallAsleepLate) {
  write("power/runtime_status", "active\n");
  write("power/control", "auto\n");
  write("power/autosuspend_delay_ms", "1000\n");
  attach();
  for (int i = 0; i < 12; ++i) page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(users_->watches[kCard], 1);
  write("power/autosuspend_delay_ms", "5000\n");
  page_->pass(Tier::fast, seconds(1));
  EXPECT_EQ(users_->watches[kCard], 0);
}

class IntegratedClients : public IntelClients {
 protected:
  IntegratedClients() : IntelClients("i915") {}
};

TEST_F(IntegratedClients, HaveMemoryOfTheHost) {
  environment_.query_memory = [](const std::string&, const std::string&) { return memory::Regions(); };
  attach();
  scan({{10, 1, engine_seconds({{graphics, 4}}), {}, 800.0, 0, 300}});
  EXPECT_EQ(listed(), (Processes{{10, 800.0, 0.0}}));
}

}  // namespace
}  // namespace gpumeter::intel
