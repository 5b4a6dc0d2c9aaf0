#include "collectors/nccl/files/inspector_page.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/fakes/places.hpp"

namespace gpumeter::nccl {
namespace {

std::string fixture(const std::string& name) {
  std::ifstream file(places::in_tests("fixtures/nccl/" + name));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(const InspectorPage& page) {
  std::ostringstream out;
  for (const auto& [key, means] : page.means) {
    out << key.op << ' ' << key.size << ' ' << key.scope;
    if (means.bandwidth) out << ' ' << *means.bandwidth << "B/s";
    if (means.duration) out << ' ' << *means.duration << 's';
    out << '\n';
  }
  for (std::size_t kind = 0; kind < kOperationKinds.size(); ++kind) {
    if (page.recorded.at(kind))
      out << kOperationKinds.at(kind) << " recorded " << *page.recorded.at(kind) << '\n';
    if (page.lost.at(kind)) out << kOperationKinds.at(kind) << " lost " << *page.lost.at(kind) << '\n';
  }
  if (!page.complaint.empty()) out << page.complaint << '\n';
  return out.str();
}

std::string parsed(const std::string& text) { return text_of(parse_inspector_page(text)); }

std::string bandwidth(const std::string& labels, const std::string& value) {
  return "nccl_bus_bandwidth_gbs{" + labels + "} " + value + "\n";
}

// The samples of NVIDIA's README and blog: GB/s and microseconds, families interleaved, no HELP, no TYPE.
TEST(InspectorPage, ReadsTheSamplesOfNvidia) {
  EXPECT_EQ(parsed(fixture("inspector_v5.1.prom")),
            "all_reduce 4GiB and more node 6.78263e+11B/s 0.00949847s\n"
            "receive 1MiB-16MiB node 1.92396e+10B/s 9.25781e-05s\n"
            "reduce_scatter 16MiB-256MiB network 4.41181e+10B/s 0.104164s\n"
            "send 1MiB-16MiB node 1.91634e+10B/s 9.28984e-05s\n"
            "send 256MiB-4GiB node 4.649e+11B/s 0.00115487s\n");
}

TEST(InspectorPage, MeansOfLinesWithTheSameLabelsAreGeometricAndArithmetic) {
  const std::string one =
      "collective=\"AllReduce\",message_size=\"4-5MB\",n_nodes=\"2\",algo_proto=\"RING_LL\"";
  const std::string two =
      "collective=\"AllReduce\",message_size=\"5-6MB\",n_nodes=\"4\",algo_proto=\"TREE_LL\"";
  EXPECT_EQ(parsed(bandwidth(one, "100") + "nccl_collective_exec_time_microseconds{" + one + "} 10\n" +
                   bandwidth(two, "400") + "nccl_collective_exec_time_microseconds{" + two + "} 40\n"),
            "all_reduce 1MiB-16MiB network 2e+11B/s 2.5e-05s\n");
}

TEST(InspectorPage, SizesFallIntoSixBuckets) {
  const auto size = [](const std::string& range) {
    const std::string text =
        parsed(bandwidth("collective=\"Broadcast\",n_nodes=\"1\",message_size=\"" + range + "\"", "1"));
    return text.substr(0, text.find(" node"));
  };
  EXPECT_EQ(size("0B"), "broadcast 0-64KiB");
  EXPECT_EQ(size("63-64KB"), "broadcast 0-64KiB");
  EXPECT_EQ(size("64-65KB"), "broadcast 64KiB-1MiB");
  EXPECT_EQ(size("1023-1024KB"), "broadcast 64KiB-1MiB");
  EXPECT_EQ(size("1-2MB"), "broadcast 1MiB-16MiB");
  EXPECT_EQ(size("255-256MB"), "broadcast 16MiB-256MiB");
  EXPECT_EQ(size("3-4GB"), "broadcast 256MiB-4GiB");
  EXPECT_EQ(size("4-5GB"), "broadcast 4GiB and more");
  EXPECT_EQ(size("2-3TB"), "broadcast 4GiB and more");
}

// A mean of 0 is Inspector's word for no timed operation.
TEST(InspectorPage, ZeroIsAbsent) {
  const std::string labels = "collective=\"AllGather\",message_size=\"1-2MB\",n_nodes=\"1\"";
  EXPECT_EQ(parsed(bandwidth(labels, "0")), "");
  EXPECT_EQ(parsed(bandwidth(labels, "0") + "nccl_collective_exec_time_microseconds{" + labels + "} 8\n"),
            "all_gather 1MiB-16MiB node 8e-06s\n");
}

TEST(InspectorPage, ReadsTheCountersOfTheDevice) {
  const std::string labels = "{version=\"v5.1\",slurm_job_id=\"7\",node=\"n1\",gpu=\"GPU0\"} ";
  EXPECT_EQ(
      parsed("nccl_collectives_total" + labels + "5120\nnccl_collectives_dropped_total" + labels +
             "1024\nnccl_p2p_total" + labels + "0\nnccl_p2p_dropped_total" + labels + "0\n"),
      "collective recorded 5120\ncollective lost 1024\npoint_to_point recorded 0\npoint_to_point lost 0\n");
}

TEST(InspectorPage, UnknownOperationsAreOthersAndUnknownFamiliesAreIgnored) {
  EXPECT_EQ(parsed(bandwidth("collective=\"AllToAllV\",message_size=\"1-2MB\",n_nodes=\"1\"", "3") +
                   "nccl_collective_exec_time_p99_microseconds{collective=\"AllReduce\"} 7\n# a comment\n\n"),
            "other 1MiB-16MiB node 3e+09B/s\n");
}

TEST(InspectorPage, ABadLineIsNamedAndCostsOnlyItself) {
  const std::string good = bandwidth("collective=\"Reduce\",message_size=\"1-2MB\",n_nodes=\"1\"", "3");
  const auto complaint = [&](const std::string& bad) {
    const InspectorPage page = parse_inspector_page(good + bad + good);
    EXPECT_EQ(page.means.size(), 1U) << bad;
    return page.complaint;
  };
  EXPECT_EQ(complaint("nccl_bus_bandwidth_gbs{collective=\"All\n"), "line 2: is no sample of a metric");
  EXPECT_EQ(complaint("nccl_bus_bandwidth_gbs 3\n"), "line 2: has no label collective");
  EXPECT_EQ(complaint(bandwidth("collective=\"Reduce\",message_size=\"4-5QB\"", "3")),
            "line 2: message_size must be a range such as \"4-5GB\", not \"4-5QB\"");
  EXPECT_EQ(complaint(bandwidth("collective=\"Reduce\",message_size=\"4-5GB\"", "NaN")),
            "line 2: the value must be a number from 0 on");
  EXPECT_EQ(complaint("nccl_p2p_total{} -1\n"), "line 2: the value must be a number from 0 on");
}

TEST(InspectorPage, HasAtMost64Keys) {
  std::string text;
  for (const char* op : {"AllGather", "AllReduce", "AlltoAll", "Broadcast", "Gather", "Reduce"}) {
    for (const char* size : {"0B", "64-65KB", "1-2MB", "16-17MB", "256-257MB", "4-5GB"}) {
      for (const char* nodes : {"1", "2"}) {
        text += bandwidth(
            "collective=\"" + std::string(op) + "\",message_size=\"" + size + "\",n_nodes=\"" + nodes + "\"",
            "1");
      }
    }
  }
  const InspectorPage page = parse_inspector_page(text);
  EXPECT_EQ(page.means.size(), 64U);
  EXPECT_EQ(page.complaint, "line 65: more than 64 combinations of operation, size and scope");
}

}  // namespace
}  // namespace gpumeter::nccl
