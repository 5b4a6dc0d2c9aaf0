#include "collectors/nvidia/mig_instances.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

/// Returns "name{facts} ..." for the instances of this `mig:`.
std::string instances(const std::string& mig) {
  FakeDriver driver("devices: [{uuid: GPU-0, mig: {mode_pending: enabled, " + mig + "}}]");
  driver.set_time(0);
  NvmlCaller gpu = *find_gpu(*NvmlSession::shared(driver.library()), "GPU-0");
  std::string text;
  for (const MigInstance& instance : mig_instances(gpu)) {
    text += instance.partition.name;
    for (const Label& fact : instance.partition.facts) text += " " + fact.name + "=" + fact.value;
    for (const std::vector<Label>& part : instance.partition.parts) {
      text += " +";
      for (const Label& fact : part) text += " " + fact.name + "=" + fact.value;
    }
    text += "; ";
  }
  EXPECT_EQ(driver.violations(), "");
  return text + fingerprint(mig_instances(gpu));
}

TEST(MigInstances, ProfileComesFromTheName) {
  EXPECT_EQ(instances(R"(mode: enabled, most: 7, instances: [
              {uuid: MIG-a, gi: 1, ci: 0, name: NVIDIA H100 80GB HBM3 MIG 3g.40gb},
              {uuid: MIG-b, gi: 2, ci: 0, name: NVIDIA H100 80GB HBM3 MIG 1c.3g.40gb},
              {uuid: MIG-c, gi: 9, ci: 0, name: NVIDIA H100 80GB HBM3 MIG 1g.10gb+me}])"),
            "3g.40gb:1 profile=3g.40gb gpu_instance=1 mig_uuid=MIG-a; "
            "3g.40gb:2 profile=3g.40gb gpu_instance=2 mig_uuid=MIG-b; "
            "1g.10gb+me:9 profile=1g.10gb+me gpu_instance=9 mig_uuid=MIG-c; "
            "3g.40gb:1=MIG-a, 3g.40gb:2=MIG-b, 1g.10gb+me:9=MIG-c");
}

TEST(MigInstances, APrivilegedCallerKnowsTheirPlaces) {
  EXPECT_EQ(instances(R"(mode: enabled, most: 7, instances: [
              {uuid: MIG-a, gi: 7, ci: 0, name: A MIG 1g.10gb, gi_profile: 19, gi_start: 4},
              {uuid: MIG-b, gi: 8, ci: 0, name: A MIG 1g.10gb}])"),
            "1g.10gb:7 profile=1g.10gb gpu_instance=7 mig_uuid=MIG-a profile_id=19 placement=4; "
            "1g.10gb:8 profile=1g.10gb gpu_instance=8 mig_uuid=MIG-b; "
            "1g.10gb:7=MIG-a, 1g.10gb:8=MIG-b");
}

TEST(MigInstances, ElseFromSlicesAndMemoryElseThereIsNone) {
  EXPECT_EQ(instances(R"(mode: enabled, most: 7, instances: [
              {gi: 1, name: NVIDIA H200, attributes: {multiprocessors: 16, copy_engines: 1, decoders: 1,
               encoders: 0, jpegs: 1, ofas: 0, gpu_slices: 1, compute_slices: 1, memory: 17920 MiB}},
              {gi: 2, name: NVIDIA H200}])"),
            "1g.18gb:1 profile=1g.18gb gpu_instance=1 compute_units=16; "
            "mig:2 profile=mig gpu_instance=2; "
            "1g.18gb:1=, mig:2=");
}

TEST(MigInstances, ComputeInstancesOfOneGpuInstanceAreOneAndHolesAreNoEnd) {
  EXPECT_EQ(
      instances(R"(mode: enabled, most: 7, instances: [
              {index: 1, uuid: MIG-a, gi: 5, ci: 0, name: A MIG 1c.2g.20gb},
              {index: 2, uuid: MIG-b, gi: 5, ci: 1, name: A MIG 1c.2g.20gb},
              {index: 6, uuid: MIG-c, gi: 6, ci: 0, name: A MIG 2g.20gb}])"),
      "2g.20gb:5 profile=2g.20gb gpu_instance=5 + compute_instance=0 mig_uuid=MIG-a + compute_instance=1 "
      "mig_uuid=MIG-b; "
      "2g.20gb:6 profile=2g.20gb gpu_instance=6 mig_uuid=MIG-c; "
      "2g.20gb:5=MIG-a+MIG-b, 2g.20gb:6=MIG-c");
}

TEST(MigInstances, AGpuThatIsNotDividedHasNone) {
  EXPECT_EQ(instances("mode: disabled, most: 7, instances: [{uuid: MIG-a, gi: 1, ci: 0}]"), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
