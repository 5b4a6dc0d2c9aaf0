#include "collectors/attribution/kubelet/log_names.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/tree.hpp"

namespace gpumeter::kubelet {
namespace {

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
