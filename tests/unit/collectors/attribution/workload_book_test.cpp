#include "collectors/attribution/workload_book.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace gpumeter::workloads {
namespace {

constexpr std::string_view kContainer1 = "11111111111111111111111111111111111111111111111111111111111111ff";
constexpr std::string_view kContainer2 = "22222222222222222222222222222222222222222222222222222222222222ff";

WorkloadId unit(int number) { return {cgroup::Kind::systemd_unit, std::to_string(number) + ".service"}; }

cgroup::Attribution in(const std::string& path) { return cgroup::attribution_of(cgroup::read_path(path)); }

/// The use that a lane publishes when it reads the device.
std::shared_ptr<DeviceUse> use_of(const char* uuid, int at = 0) {
  auto use = std::make_shared<DeviceUse>();
  use->uuid = uuid;
  use->at = Nanoseconds(at);
  return use;
}

WorkloadFacts facts_of(const WorkloadBook& book, const WorkloadId& id) {
  for (const WorkloadBook::Workload& workload : book.workloads()) {
    if (workload.id == id) return workload.facts;
  }
  return {};
}

/// The facts of a workload of user 7 with processes in these groups.
WorkloadFacts facts_of(const std::vector<std::string>& paths) {
  WorkloadBook book;
  const WorkloadId id{in(paths.front()).kind, in(paths.front()).workload};
  book.publish(use_of("A"));
  book.open(id);
  for (const std::string& path : paths) book.note(id, in(path), 7);
  return facts_of(book, id);
}

std::string pod_path(std::string_view container) {
  return "/kubepods.slice/kubepods-pod0a1b2c3d_0000_4000_8000_000000000001.slice/cri-containerd-" +
         std::string(container) + ".scope";
}

TEST(WorkloadBook, HasRoomForAThousandAndTwentyFour) {
  WorkloadBook book;
  book.publish(use_of("A"));
  for (int i = 0; i < 1024; ++i) EXPECT_TRUE(book.open(unit(i)));
  EXPECT_FALSE(book.open(unit(1024)));
  EXPECT_TRUE(book.open(unit(7))) << "one that is there, on another device";
  EXPECT_TRUE(book.open(unattributed()));
  EXPECT_TRUE(book.open(all_others()));
  book.close(unit(7));
  EXPECT_FALSE(book.open(unit(1024))) << "it is still on the first device";
  book.close(unit(7));
  EXPECT_TRUE(book.open(unit(1024)));
  EXPECT_EQ(book.workloads().size(), 1026U);
}

TEST(WorkloadBook, KnowsWhatAUnitIs) {
  const WorkloadFacts facts = facts_of({"/system.slice/train.service", "/system.slice/train.service/worker"});
  EXPECT_EQ(facts.unit.value(), "train.service");
  EXPECT_EQ(facts.container_id.value(), std::nullopt);
  EXPECT_EQ(facts.uid.value(), 7U);
}

TEST(WorkloadBook, GivesNoUnitToWhatHasANewOneEachTime) {
  const WorkloadFacts facts = facts_of({"/user.slice/user-1000.slice/session-3.scope"});
  EXPECT_EQ(facts.unit.value(), std::nullopt);
  EXPECT_EQ(facts.uid.value(), 1000U) << "the user's part of the tree goes before the process's user";
}

TEST(WorkloadBook, NamesAContainerOnlyWhereItIsOne) {
  EXPECT_EQ(facts_of({pod_path(kContainer1)}).container_id.value(), kContainer1);
  const WorkloadFacts several =
      facts_of({pod_path(kContainer1), pod_path(kContainer2), pod_path(kContainer1)});
  EXPECT_EQ(several.container_id.value(), std::nullopt);
  EXPECT_EQ(several.container_runtime.value(), "containerd");
  EXPECT_EQ(several.pod_uid.value(), "0a1b2c3d-0000-4000-8000-000000000001");
}

TEST(WorkloadBook, SaysWhatASlurmJobIs) {
  const WorkloadFacts facts = facts_of({"/system.slice/slurmstepd.scope/job_55/step_0/user/task_0"});
  EXPECT_EQ(facts.slurm_job.value(), "55");
}

TEST(WorkloadBook, GrowsItsGenerationOnlyWhereSomethingChanged) {
  WorkloadBook book;
  book.open(unit(1));
  std::uint64_t last = book.generation();
  const auto grew = [&] { return std::exchange(last, book.generation()) < book.generation(); };
  book.note(unit(1), in("/system.slice/1.service"), 7);
  EXPECT_TRUE(grew());
  book.note(unit(1), in("/system.slice/1.service"), 7);
  EXPECT_FALSE(grew());
  book.note_measured(unit(1));
  EXPECT_TRUE(grew());
  book.note_measured(unit(1));
  book.note(unit(2), in("/system.slice/2.service"), 7);
  book.note(unattributed(), in("/"), 7);
  EXPECT_FALSE(grew()) << "what is not open is not there";
  book.close(unit(1));
  EXPECT_TRUE(grew());
}

TEST(WorkloadBook, HasTheLastWordOfEachDevice) {
  WorkloadBook book;
  const auto first = use_of("A", 1);
  book.publish(first);
  book.publish(use_of("B", 2));
  const auto second = use_of("A", 3);
  book.publish(second);
  book.withdraw(first);  // a late lane withdraws nothing
  book.withdraw(nullptr);
  ASSERT_EQ(book.uses().size(), 2U);
  EXPECT_EQ(book.uses()[0], second);
  book.withdraw(second);
  EXPECT_EQ(book.uses().size(), 1U);
}

TEST(WorkloadBook, SaysNothingOfWorkloadsWhileNoDeviceIsRead) {
  WorkloadBook book;
  book.open(unit(1));
  EXPECT_TRUE(book.workloads().empty());
  const std::uint64_t unread = book.generation();
  book.publish(use_of("A"));
  EXPECT_EQ(book.workloads().size(), 1U);
  const std::uint64_t read = book.generation();
  EXPECT_GT(read, unread);
  book.publish(use_of("B"));
  book.hide("A");  // the driver of A hangs
  EXPECT_EQ(book.workloads().size(), 1U);
  EXPECT_EQ(book.generation(), read);
  book.hide("B");
  EXPECT_TRUE(book.workloads().empty());
  EXPECT_GT(book.generation(), read);
}

TEST(WorkloadBook, IsWrittenByManyLanes) {
  WorkloadBook book(8);
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < 4; ++lane) {
    lanes.emplace_back([&book, lane] {
      for (int i = 0; i < 500; ++i) {
        const WorkloadId id = unit((i + lane) % 16);
        if (book.open(id)) {
          book.note(id, in("/system.slice/" + id.name), 7);
          EXPECT_LE(book.workloads().size(), 8U);
          book.close(id);
        }
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(book.workloads().size(), 0U);
}

}  // namespace
}  // namespace gpumeter::workloads
