#include "collectors/profiles/search/holders.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "tests/fakes/tree.hpp"

namespace gpumeter::profiles {
namespace {

/// Processes 10 and 11 with the sockets 501 and 502. Process 10 can be made to keep its readers waiting, as
/// the kernel does for some.
class Processes {
 public:
  ~Processes() { hang(false); }

  ProcessLook look(int pid, const WantedSockets& wanted) {
    std::unique_lock lock(mutex_);
    ++looks_;
    changed_.wait(lock, [&] { return pid != 10 || !hangs_; });
    const std::uint64_t own = pid == 10 ? 501 : 502;
    ProcessLook seen{{pid, 1000, start_}, {}};
    if (wanted.contains(own)) seen.sockets.insert(own);
    return seen;
  }
  void hang(bool does) {
    const std::lock_guard lock(mutex_);
    hangs_ = does;
    changed_.notify_all();
  }
  void are_others_now() {
    const std::lock_guard lock(mutex_);
    ++start_;
  }
  int looks() {
    const std::lock_guard lock(mutex_);
    return std::exchange(looks_, 0);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  std::uint64_t start_ = 5;
  int looks_ = 0;
};

class SocketHoldersTest : public testing::Test {
 protected:
  /// The holders of both sockets; 0: unknown.
  std::pair<int, int> found() {
    holders_.look_for({{501, 1000}, {502, std::nullopt}});
    const auto pid = [](const SocketHolder* holder) { return holder == nullptr ? 0 : holder->pid; };
    return {pid(holders_.of(501)), pid(holders_.of(502))};
  }
  using Pids = std::pair<int, int>;

  const Tree tree_ = make_tree({{"10/stat", ""}, {"11/stat", ""}, {"self/stat", ""}});
  const SystemClock clock_;
  const std::shared_ptr<Processes> processes_ = std::make_shared<Processes>();
  SocketHolders holders_{tree_.path(), clock_, [all = processes_](int pid, const WantedSockets& wanted) {
                           return all->look(pid, wanted);
                         }};
};

TEST_F(SocketHoldersTest, LooksThroughTheProcessesForNewSocketsOnly) {
  EXPECT_EQ(found(), Pids(10, 11));
  EXPECT_EQ(processes_->looks(), 2);
  holders_.look_for({{501, 1000}});
  EXPECT_EQ(processes_->looks(), 1) << "whether the holder still lives";
  EXPECT_EQ(holders_.of(502), nullptr);
}

TEST_F(SocketHoldersTest, NoProcessWaitsForOneThatHangs) {
  processes_->hang(true);
  EXPECT_EQ(found(), Pids(0, 11));
  EXPECT_EQ(found(), Pids(0, 11));
  EXPECT_EQ(processes_->looks(), 4) << "the look that waits is not repeated";
  processes_->hang(false);
  while (found() != Pids(10, 11)) std::this_thread::yield();
}

TEST_F(SocketHoldersTest, AHolderThatHangsStaysInForce) {
  EXPECT_EQ(found(), Pids(10, 11));
  processes_->hang(true);
  EXPECT_EQ(found(), Pids(10, 11));
}

TEST_F(SocketHoldersTest, ANumberThatPassedToAnotherProcessIsLookedForAgain) {
  EXPECT_EQ(found(), Pids(10, 11));
  processes_->looks();
  processes_->are_others_now();
  EXPECT_EQ(found(), Pids(10, 11));
  EXPECT_EQ(processes_->looks(), 4);
}

bool has_safe_host_trace(std::string_view map, std::string_view package) {
  const Tree tree = make_tree({{"10/stat", "10 (x) S 1 1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5 0"},
                               {"10/status", "Name:\tx\nUid:\t7\t7\t7\t7\n"},
                               {"10/fd/3", "-> socket:[501]"}});
  tree.write("10/maps",
             "7f00-7f01 r-xp 00000000 08:01 12 /usr/lib/libc.so.6\n7f02-7f03 r-xp 00000000 08:01 13 " +
                 std::string(map) + "\n");
  tree.write("10/root/venv/site-packages/" + std::string(package) + "/METADATA", "");
  return look_at(tree.path(), 10, {{501, std::nullopt}}).process.has_safe_host_trace;
}

TEST(ProcessLook, KnowsTheFrameworksThatGoOnWhileTheHostIsTraced) {
  constexpr const char* kJax = "/venv/site-packages/jaxlib/_jax.so";
  EXPECT_FALSE(has_safe_host_trace(kJax, "jaxlib-0.8.1.dist-info"));
  EXPECT_FALSE(has_safe_host_trace(kJax, "jaxlib-0.10.1.dist-info"));
  EXPECT_TRUE(has_safe_host_trace(kJax, "jaxlib-0.10.2.dist-info"));
  EXPECT_TRUE(has_safe_host_trace(kJax, "jaxlib-1.0.0.dist-info"));
  EXPECT_FALSE(has_safe_host_trace(kJax, "jax-0.10.2.dist-info")) << "jaxlib's version is not known";
  EXPECT_FALSE(has_safe_host_trace("/venv/x.so", "jaxlib-0.10.2.dist-info")) << "it has not loaded jaxlib";
  EXPECT_TRUE(has_safe_host_trace("/venv/site-packages/tensorflow/libtensorflow_framework.so.2", "none"));
}

}  // namespace
}  // namespace gpumeter::profiles
