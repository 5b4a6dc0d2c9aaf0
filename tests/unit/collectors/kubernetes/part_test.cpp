// Sources without sockets, in a time that the test moves; tests/e2e/kubelet_test.py has a gRPC server.
#include "collectors/kubernetes/part.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::kubelet {
namespace {

using workloads::NameBook;
using workloads::WorkloadFacts;

WorkloadFacts pod(const std::string& uid) {
  cgroup::Attribution process;
  process.pod_uid = uid;
  WorkloadFacts facts;
  facts.merge(process, std::nullopt);
  return facts;
}

Settings only_logs(const Tree& log) {
  return {.pods_socket = "", .resources_socket = "", .log_path = log.path(), .cri_socket = "", .labels = {}};
}

const std::vector<Label> kBert = {{"k8s_namespace", "ml"}, {"k8s_pod", "bert-0"}};

TEST(KubeletSourcesTest, TheLastWordHoldsForTenMinutesAndNamesForFifteenMore) {
  const Tree log = make_tree({{"pods/ml_bert-0_uid-1/main/0.log", ""}});
  FakeClock clock;
  NameBook book;
  Sources sources(only_logs(log), "/sys", clock, book);

  sources.turn();
  EXPECT_EQ(book.labels_of(pod("uid-1")), kBert);
  EXPECT_TRUE(sources.figures().at(SourceId::logs).is_up);

  log.remove("pods");
  clock.advance(Sources::kEvery);
  sources.turn();
  EXPECT_EQ(book.labels_of(pod("uid-1")), kBert);
  const SourceFigures& figures = sources.figures().at(SourceId::logs);
  EXPECT_FALSE(figures.is_up);
  EXPECT_EQ(figures.errors.at(static_cast<std::size_t>(grpc::Failure::unavailable)), 1U);
  EXPECT_EQ(figures.last_success, FakeClock::kEpoch);

  clock.advance(Sources::kKeep);
  sources.turn();
  EXPECT_EQ(book.labels_of(pod("uid-1")), kBert);
  clock.advance(Sources::kRemember);
  sources.turn();
  EXPECT_EQ(book.labels_of(pod("uid-1")), std::vector<Label>{});
}

TEST(KubeletSourcesTest, ANewPodIsSeenAtTheNextRequestOrWhenItIsWanted) {
  const Tree log = make_tree({{"pods/ml_bert-0_uid-1/main/0.log", ""}});
  FakeClock clock;
  NameBook book;
  Sources sources(only_logs(log), "/sys", clock, book);
  EXPECT_EQ(sources.turn(), Sources::kEvery);

  log.write("pods/ml_gpt-0_uid-2/main/0.log", "");
  clock.advance(std::chrono::seconds(1));
  sources.turn();
  EXPECT_EQ(book.labels_of(pod("uid-2")), std::vector<Label>{});
  sources.ask_soon();
  sources.turn();
  EXPECT_EQ(book.labels_of(pod("uid-2")).size(), 2U);
}

TEST(KubeletSourcesTest, AMachineWithoutAKubeletUsesNoSourceAndIsAskedRarely) {
  const Tree nothing = make_tree({});
  FakeClock clock;
  NameBook book;
  Settings settings = only_logs(nothing);
  settings.pods_socket = nothing / "pods-api.sock";
  settings.resources_socket = nothing / "kubelet.sock";
  Sources sources(settings, "/sys", clock, book);

  EXPECT_EQ(sources.turn(), std::chrono::minutes(1));
  EXPECT_EQ(sources.figures().size(), 3U);
  for (const auto& [source, figures] : sources.figures()) EXPECT_FALSE(figures.is_used) << to_string(source);
  EXPECT_EQ(book.generation(), 0U);
}

}  // namespace
}  // namespace gpumeter::kubelet
