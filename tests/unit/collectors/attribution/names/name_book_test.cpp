#include "collectors/attribution/names/name_book.hpp"

#include <gtest/gtest.h>

namespace gpumeter::workloads {
namespace {

WorkloadFacts pod_container(const std::string& pod, const std::string& container) {
  cgroup::Attribution process;
  process.pod_uid = pod;
  process.container_id = container;
  WorkloadFacts facts;
  facts.merge(process, std::nullopt);
  return facts;
}

const NameKey kPod = {NameKey::By::pod_uid, "uid-1"};
const NameKey kContainer = {NameKey::By::container_id, "c-1"};

TEST(NameBookTest, GivesTheLabelsOfThePodAndOfItsContainer) {
  NameBook book;
  book.publish("kubelet",
               {.labels = {{kPod, {{"k8s_pod", "bert"}}}, {kContainer, {{"k8s_container", "train"}}}},
                .allocations = {}});

  EXPECT_EQ(book.labels_of(pod_container("uid-1", "c-1")),
            (std::vector<Label>{{"k8s_container", "train"}, {"k8s_pod", "bert"}}));
  EXPECT_EQ(book.labels_of(pod_container("uid-2", "")), std::vector<Label>{});
}

TEST(NameBookTest, TheFirstSourceInTheAlphabetWinsALabelThatTwoGive) {
  NameBook book;
  book.publish("logs",
               {.labels = {{kPod, {{"k8s_namespace", "from-logs"}, {"k8s_pod", "old"}}}}, .allocations = {}});
  book.publish("kubelet", {.labels = {{kPod, {{"k8s_pod", "new"}}}}, .allocations = {}});

  EXPECT_EQ(book.labels_of(pod_container("uid-1", "")),
            (std::vector<Label>{{"k8s_namespace", "from-logs"}, {"k8s_pod", "new"}}));
}

TEST(NameBookTest, ANewWordReplacesTheSourcesLastAndOnlyAChangeCounts) {
  NameBook book;
  const Allocation given = {.device = {DeviceSelector::By::uuid, "GPU-1", "nvidia"},
                            .workload = {cgroup::Kind::slurm_job, "7"},
                            .source = AllocationSource::slurm};
  book.publish("slurm", {.labels = {}, .allocations = {given}});
  const std::uint64_t generation = book.generation();
  book.publish("slurm", {.labels = {}, .allocations = {given}});
  EXPECT_EQ(book.generation(), generation);
  EXPECT_EQ(book.allocations(), std::vector<Allocation>{given});

  book.publish("slurm", {});
  EXPECT_GT(book.generation(), generation);
  EXPECT_TRUE(book.allocations().empty());
}

}  // namespace
}  // namespace gpumeter::workloads
