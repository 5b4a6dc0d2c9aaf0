#include "collectors/attribution/kubelet/names.hpp"

#include <gtest/gtest.h>

namespace gpumeter::kubelet {
namespace {

using workloads::Allocation;
using workloads::AllocationSource;
using workloads::DeviceSelector;
using workloads::NameKey;

const CardAddress kNoCards = [](std::string_view) { return std::nullopt; };
constexpr std::chrono::seconds kStarted{1763800000};

Pod bert(std::vector<Container> containers) {
  return {.ns = "ml",
          .name = "bert-0",
          .uid = "uid-1",
          .owner_kind = "StatefulSet",
          .owner = "bert",
          .labels = {{"app.kubernetes.io/name", "bert"}},
          .started = kStarted,
          .containers = std::move(containers)};
}
const std::vector<Label> kBert = {{"k8s_label_app_kubernetes_io_name", "bert"},
                                  {"k8s_namespace", "ml"},
                                  {"k8s_owner", "bert"},
                                  {"k8s_owner_kind", "StatefulSet"},
                                  {"k8s_pod", "bert-0"}};
std::vector<Label> bert_with(const std::string& container) {
  std::vector<Label> labels = kBert;
  labels.insert(labels.begin(), {"k8s_container", container});
  return labels;
}
GivenDevice gpu(const std::string& id) { return {"nvidia.com/gpu", id}; }

Allocation given(const std::string& gpu, const std::string& pod, std::vector<Label> names) {
  return {.device = {DeviceSelector::By::uuid, gpu, "nvidia"},
          .workload = {cgroup::Kind::pod, pod},
          .source = AllocationSource::kubelet,
          .since = kStarted,
          .names = std::move(names)};
}

TEST(KubeletNamesTest, PodsAndContainersHaveLabels) {
  const auto names = names_of({bert({{"train", "c-1"}, {"waiting", ""}})}, kNoCards);
  EXPECT_EQ(names.labels.size(), 2U);
  EXPECT_EQ(names.labels.at({NameKey::By::pod_uid, "uid-1"}), kBert);
  EXPECT_EQ(names.labels.at({NameKey::By::container_id, "c-1"}), bert_with("train"));
}

TEST(KubeletNamesTest, AStaticPodIsKnownByItsHash) {
  Pod pod = bert({{"main", "", {gpu("GPU-1")}}});
  pod.config_hash = "7260904b";
  const auto names = names_of({pod}, kNoCards);
  EXPECT_TRUE(names.labels.contains({NameKey::By::pod_uid, "7260904b"}));
  EXPECT_EQ(names.allocations, std::vector{given("GPU-1", "7260904b", bert_with("main"))});
}

TEST(KubeletNamesTest, ReplicasOfOneGpuAreOneAllocationOfEachPod) {
  Pod other = bert({{"main", "", {gpu("GPU-1::2")}}});
  other.uid = "uid-2";
  const auto names = names_of({bert({{"main", "", {gpu("GPU-1::0"), gpu("GPU-1::1")}}}), other}, kNoCards);
  EXPECT_EQ(names.allocations, (std::vector{given("GPU-1", "uid-1", bert_with("main")),
                                            given("GPU-1", "uid-2", bert_with("main"))}));
}

TEST(KubeletNamesTest, ADeviceOfTwoContainersIsThePods) {
  const auto names = names_of({bert({{"a", "", {gpu("GPU-1")}}, {"b", "", {gpu("GPU-1")}}})}, kNoCards);
  EXPECT_EQ(names.allocations, std::vector{given("GPU-1", "uid-1", kBert)});
}

TEST(KubeletNamesTest, AnEndedPodHoldsNothing) {
  Pod pod = bert({{"main", "c-1", {gpu("GPU-1")}}});
  pod.has_ended = true;
  const auto names = names_of({pod}, kNoCards);
  EXPECT_TRUE(names.allocations.empty());
  EXPECT_EQ(names.labels.size(), 2U);
}

TEST(KubeletNamesTest, DevicesOfPodResourcesGoToThePodThatRuns) {
  Pod before = bert({});
  before.uid = "uid-0";
  before.has_ended = true;
  std::vector<Pod> pods = {before, bert({{"main", "c-1"}})};
  add_devices(pods, {{.ns = "ml", .name = "bert-0", .containers = {{"main", "", {gpu("GPU-1")}}}},
                     {.ns = "ml", .name = "new", .containers = {{"main", "", {gpu("GPU-2")}}}}});
  const auto names = names_of(pods, kNoCards);
  ASSERT_EQ(names.allocations.size(), 2U);
  EXPECT_EQ(names.allocations[0], given("GPU-1", "uid-1", bert_with("main")));
  EXPECT_EQ(names.allocations[1].workload.name, "ml/new");
}

TEST(KubeletNamesTest, AClaimsSourceIsDra) {
  const auto names = names_of({bert({{"main", "", {{"", "gpu-3", "gpu.nvidia.com"}}}})}, kNoCards);
  ASSERT_EQ(names.allocations.size(), 1U);
  EXPECT_EQ(names.allocations[0].source, AllocationSource::dra);
  EXPECT_EQ(names.allocations[0].device, (DeviceSelector{DeviceSelector::By::minor, "3", "nvidia"}));
}

}  // namespace
}  // namespace gpumeter::kubelet
