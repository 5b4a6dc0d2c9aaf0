// Decodes tests/fixtures/kubelet, which tests/fakes/kubelet/record.py made from the definitions of
// Kubernetes.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "collectors/kubernetes/names.hpp"
#include "tests/fakes/places.hpp"

namespace gpumeter::kubelet {
namespace {

using Labels = std::vector<std::pair<std::string, std::string>>;
constexpr std::chrono::seconds kStarted{1763800000};

std::string recorded(const std::string& name) {
  std::ifstream file(places::in_tests("fixtures/kubelet/" + name), std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::vector<std::string> kAllowed = {"team", "app.kubernetes.io/name"};

Pod train() {
  return {.ns = "ml",
          .name = "bert-7d9c5b8f6-x2x4z",
          .uid = "0f1e2d3c-1111-4222-8333-444455556666",
          .owner_kind = "Deployment",
          .owner = "bert",
          .labels = Labels{{"app.kubernetes.io/name", "bert"}, {"team", "nlp"}},
          .started = kStarted,
          .containers = {{"train",
                          std::string(64, 'a'),
                          {{"nvidia.com/gpu", "GPU-5a::0"},
                           {"nvidia.com/gpu", "GPU-5a::1"},
                           {"nvidia.com/gpu", "MIG-77"},
                           {"claim:gpus/one", "gpu-3", "gpu.nvidia.com"}}},
                         {"logger", std::string(64, 'b'), {}}}};
}

TEST(PodTest, HasNamesOwnerAllowedLabelsContainersSidecarsAndDevices) {
  const Result<Pod> pod = decode_pod(recorded("pod.pb"), kAllowed);
  ASSERT_TRUE(pod) << pod.error().message();
  EXPECT_EQ(*pod, train());
}

TEST(PodTest, AStaticPodHasTheHashOfItsGroup) {
  const Result<Pod> pod = decode_pod(recorded("static_pod.pb"), {});
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->config_hash, "7260904bbd08e72e4dff95d9fccd2ee8");
  EXPECT_EQ(pod->owner_kind, "Node");
}

TEST(PodTest, AFinishedPodHasEnded) {
  const Result<Pod> pod = decode_pod(recorded("ended_pod.pb"), {});
  ASSERT_TRUE(pod);
  EXPECT_TRUE(pod->has_ended);
  EXPECT_EQ(pod->owner, "old-job");
}

TEST(PodTest, EventsAndListsHoldThePodsBytes) {
  const std::string bytes = recorded("event.pb");
  const Result<PodEvent> event = decode_pod_event(bytes);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, PodEvent::Type::added);
  EXPECT_EQ(*decode_pod(event->pod, kAllowed), train());

  const std::string list_bytes = recorded("list.pb");
  const auto list = decode_pod_list(list_bytes);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), 3U);
}

TEST(PodTest, PodResourcesHaveDevicesAndClaimsAndNoUid) {
  const auto pods = decode_pod_resources(recorded("resources.pb"));
  ASSERT_TRUE(pods) << pods.error().message();
  const std::vector<Pod> expected = {
      {.ns = "ml",
       .name = "bert-7d9c5b8f6-x2x4z",
       .containers = {{"train", "", {{"nvidia.com/gpu", "GPU-5a::0"}}}}},
      {.ns = "ml", .name = "amd-0", .containers = {{"main", "", {{"amd.com/gpu", "0000:19:00.0"}}}}},
      {.ns = "ml",
       .name = "dra-0",
       .containers = {{"main", "", {{"", "gpu-1-mig-2g47gb-14-0", "gpu.nvidia.com"}}}}}};
  EXPECT_EQ(*pods, expected);
}

TEST(PodTest, TheRuntimesContainersArePodsByTheKubeletsLabels) {
  const auto pods = decode_cri_containers(recorded("containers.pb"));
  ASSERT_TRUE(pods);
  const std::vector<Pod> expected = {
      {.ns = "ml",
       .name = "bert-7d9c5b8f6-x2x4z",
       .uid = "0f1e2d3c-1111-4222-8333-444455556666",
       .containers = {{"train", std::string(64, 'a')}, {"logger", std::string(64, 'b')}}}};
  EXPECT_EQ(*pods, expected);
  EXPECT_EQ(cri_running_containers(), recorded("containers_request.pb"));
}

TEST(PodTest, BytesThatAreNoProtobufAreAnError) {
  EXPECT_FALSE(decode_pod("\x0a\xFF", {}));
  EXPECT_FALSE(decode_pod_resources("\x0f"));
  EXPECT_FALSE(decode_pod_event("\x08"));
  const std::string whole = recorded("pod.pb");
  EXPECT_FALSE(decode_pod(whole.substr(0, whole.size() - 1), {}));
}

TEST(PodTest, AKnownFieldOfAnotherTypeIsSkipped) {
  const Result<Pod> pod = decode_pod("\x08\x01\x18\x02", {});  // metadata and status as numbers
  ASSERT_TRUE(pod);
  EXPECT_EQ(*pod, Pod{});
}

}  // namespace
}  // namespace gpumeter::kubelet
