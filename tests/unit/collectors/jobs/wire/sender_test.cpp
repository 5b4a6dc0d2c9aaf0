#include "collectors/jobs/wire/sender.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter::jobs {
namespace {

TEST(WorkloadOfOnePurpose, IsAJobAPodAContainerOrAUnitWithANameOfItsOwn) {
  const auto same = [](const std::string& one, const std::string& other) {
    const std::string workload = workload_of_one_purpose(one);
    return !workload.empty() && workload == workload_of_one_purpose(other);
  };
  const std::string pod = "/kubepods.slice/kubepods-pod2c9f8a79_5391_454b_88cb_86190881cb96.slice/";
  const std::string manager = "/user.slice/user-1000.slice/user@1000.service";
  EXPECT_TRUE(same(pod + "cri-containerd-" + std::string(64, 'a') + ".scope",
                   pod + "cri-containerd-" + std::string(64, 'b') + ".scope"));
  EXPECT_TRUE(same("/system.slice/docker-" + std::string(64, 'a') + ".scope/x",
                   "/system.slice/docker-" + std::string(64, 'a') + ".scope/y"));
  EXPECT_TRUE(same("/system.slice/train.service/a", "/system.slice/train.service/b"));
  EXPECT_TRUE(same(manager + "/app.slice/notebook.service/a", manager + "/app.slice/notebook.service"));
  EXPECT_FALSE(same("/system.slice/a.service", "/system.slice/b.service"));
  EXPECT_FALSE(same(manager + "/app.slice/app-foo-1.scope", manager + "/app.slice/app-foo-2.scope"));
}

TEST(WorkloadOfOnePurpose, IsNoGroupInWhichUnrelatedProgramsLive) {
  const std::string user = "/user.slice/user-1000.slice";
  for (const std::string& group :
       {user + "/session-3.scope", user + "/user@1000.service/x",
        user + "/user@1000.service/app.slice/run-u9.scope", std::string("/system.slice/run-r1.scope"),
        std::string("/training.slice"), std::string("/by-hand/x"), std::string("/lxc/box"),
        std::string("/init.scope"), std::string("/"), std::string()}) {
    EXPECT_EQ(workload_of_one_purpose(group), "") << group;
  }
}

}  // namespace
}  // namespace gpumeter::jobs
