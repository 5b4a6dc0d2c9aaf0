#include "collectors/kubernetes/names.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/tree.hpp"

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

using By = DeviceSelector::By;
using Selector = std::optional<DeviceSelector>;

Selector of_plugin(const std::string& resource, const std::string& id) {
  return selector_of({resource, id}, [](std::string_view card) -> std::optional<std::string> {
    return card == "card1" ? std::optional<std::string>("0000:03:00.0") : std::nullopt;
  });
}
Selector of_claim(const std::string& driver, const std::string& id) {
  return selector_of({"", id, driver}, [](std::string_view) { return std::nullopt; });
}
Selector nvidia(By by, const std::string& id) { return DeviceSelector{by, id, "nvidia"}; }

TEST(DeviceIdsTest, NvidiasPluginGivesUuidsReplicasAndIndices) {
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "GPU-5a"), nvidia(By::uuid, "GPU-5a"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu.shared", "GPU-5a::3"), nvidia(By::uuid, "GPU-5a"));
  EXPECT_EQ(of_plugin("nvidia.com/mig-1g.5gb", "MIG-77::7"), nvidia(By::uuid, "MIG-77"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "2"), nvidia(By::position, "2"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "eth0"), std::nullopt);
}

TEST(DeviceIdsTest, GkesPluginGivesMinorsAndGpuInstances) {
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia0"), nvidia(By::minor, "0"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia3/vgpu1"), nvidia(By::minor, "3"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia0/gi3/vgpu0"), nvidia(By::minor, "0/gi3"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia0/gi13"), nvidia(By::minor, "0/gi13"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia0/gix"), nvidia(By::minor, "0"));
  EXPECT_EQ(of_plugin("nvidia.com/gpu", "nvidia"), std::nullopt);
}

TEST(DeviceIdsTest, NvidiasDraDriverGivesMinorsAndMigPlaces) {
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-1"), nvidia(By::minor, "1"));
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-1-mig-2g47gb-14-0"), nvidia(By::minor, "1/mig-2g47gb-14-0"));
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-3-mig-1g5gb-me-19-4"), nvidia(By::minor, "3/mig-1g5gb-me-19-4"));
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-vfio-2"), std::nullopt);
  EXPECT_EQ(of_claim("gpu.nvidia.com", "gpu-1x"), std::nullopt);
  EXPECT_EQ(of_claim("nic.example.com", "gpu-1"), std::nullopt);
}

TEST(DeviceIdsTest, AmdsPluginGivesPciAddresses) {
  EXPECT_EQ(of_plugin("amd.com/gpu", "0000:1A:00.0"),
            (DeviceSelector{By::pci_address, "0000:1a:00.0", "amd"}));
  EXPECT_EQ(of_plugin("amd.com/cpx_nps1", "amdgpu_xcp_30"), std::nullopt);
}

TEST(DeviceIdsTest, IntelsPluginGivesCardsAndMonitoringIsNoUse) {
  EXPECT_EQ(of_plugin("gpu.intel.com/xe", "card1-4"),
            (DeviceSelector{By::pci_address, "0000:03:00.0", "intel"}));
  EXPECT_EQ(of_plugin("gpu.intel.com/i915", "card9-0"), std::nullopt);
  EXPECT_EQ(of_plugin("gpu.intel.com/i915_monitoring", "card1-0"), std::nullopt);
}

TEST(DeviceIdsTest, ACardsAddressIsTheEndOfItsLink) {
  const Tree sysfs = make_tree({{"class/drm/card1/device", "-> ../../../0000:03:00.0"}});
  const CardAddress address_of = card_addresses(sysfs.path());
  EXPECT_EQ(address_of("card1"), "0000:03:00.0");
  EXPECT_EQ(address_of("card2"), std::nullopt);
}

const std::string kId(64, 'a');

TEST(LogNamesTest, FoldersAndLinksNamePodsAndContainers) {
  const std::string link = "containers/bert-0_ml_train-it-" + kId + ".log";
  const Tree log =
      make_tree({{"pods/ml_waiting-0_uid-2/main/0.log", ""},
                 {"pods/kube-system_etcd-node-1_7260904bbd08e72e4dff95d9fccd2ee8/etcd/0.log", ""},
                 {link, "-> /var/log/pods/ml_bert-0_uid-1/train-it/0.log"}});
  Result<std::vector<Pod>> pods = read_log_names(log.path());
  ASSERT_TRUE(pods);
  std::ranges::sort(*pods, {}, &Pod::name);
  const std::vector<Pod> expected = {
      {.ns = "ml", .name = "bert-0", .uid = "uid-1", .containers = {{"train-it", kId}}},
      {.ns = "kube-system", .name = "etcd-node-1", .uid = "7260904bbd08e72e4dff95d9fccd2ee8"},
      {.ns = "ml", .name = "waiting-0", .uid = "uid-2"}};
  EXPECT_EQ(*pods, expected);
}

TEST(LogNamesTest, OtherNamesAreNoPods) {
  const Tree log =
      make_tree({{"pods/nothing", ""},
                 {"pods/a_b_c_d/x", ""},
                 {"containers/short_ml_main-0123.log", "-> /var/log/pods/ml_short_uid/main/0.log"},
                 {"containers/file_ml_main-" + kId + ".log", "no link"},
                 {"containers/stray_ml_main-" + kId + ".log", "-> /tmp/0.log"}});
  const Result<std::vector<Pod>> pods = read_log_names(log.path());
  ASSERT_TRUE(pods);
  EXPECT_TRUE(pods->empty());
}

TEST(LogNamesTest, AMachineWithoutTheFoldersIsAnError) {
  const Tree log = make_tree({});
  EXPECT_FALSE(read_log_names(log.path()));
}

}  // namespace
}  // namespace gpumeter::kubelet
