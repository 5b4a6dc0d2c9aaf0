#include <gtest/gtest.h>

#include "programs/top/view.hpp"

namespace gpumeter::top {
namespace {

Gpu gpu(const char* index, State state, Number power, Number used = {}) {
  Gpu made;
  made.index = index;
  made.uuid = index;
  made.state = state;
  made.power = power;
  made.memory_used = used;
  made.memory_size = 100;
  return made;
}

std::string order(const std::vector<Gpu>& gpus, Sort sort, bool is_reversed = false) {
  std::string text;
  for (const Gpu* it : sorted(gpus, sort, is_reversed)) text += it->index;
  return text;
}

TEST(GpuListTest, Sorts) {
  const std::vector<Gpu> gpus = {gpu("0", State::ok, 90, 1), gpu("1", State::degraded, {}),
                                 gpu("2", State::ok, 300, 5), gpu("3", State::failed, 100, 50)};
  EXPECT_EQ(order(gpus, Sort::gpu), "0123");
  EXPECT_EQ(order(gpus, Sort::gpu, true), "3210");
  EXPECT_EQ(order(gpus, Sort::state), "3102");
  EXPECT_EQ(order(gpus, Sort::power), "2301") << "the absent value is the last";
  EXPECT_EQ(order(gpus, Sort::power, true), "0321") << "also in reverse";
  EXPECT_EQ(order(gpus, Sort::memory), "3201");
}

/// The text of the GPU's last cell but `back`.
std::string cell(const Gpu& it, std::size_t back) {
  const Table table = gpu_table({&it}, "", true);
  return table.rows[0].cells[table.columns.size() - 1 - back].text;
}

TEST(GpuListTest, NamesTheHolder) {
  Gpu it = gpu("0", State::ok, 1);
  EXPECT_EQ(cell(it, 0), "-");
  it.shares = {{"slurm_job", "4711", "alice", 0.9}, {"pod", "p", "", 0.1}};
  EXPECT_EQ(cell(it, 0), "slurm_job 4711 (alice) +1");
  it.shares = {{"other", "/session", "", 1}};
  EXPECT_EQ(cell(it, 0), "/session");
  it.runs = {"llama (alice)", "bert (ann)"};
  EXPECT_EQ(cell(it, 0), "llama (alice) +1") << "as on the live page";
}

TEST(GpuListTest, NamesTheCausesThatHold) {
  Gpu it = gpu("0", State::ok, 1);
  EXPECT_EQ(cell(it, 1), "-");
  it.throttles = {{"power", 3, 1}, {"sync", 9, 0}, {"thermal", 1, 1}};
  EXPECT_EQ(cell(it, 1), "power,thermal");
}

TEST(GpuListTest, NotesTheFirstReasonAndTheAction) {
  Gpu it = gpu("0", State::failed, 1);
  const auto note = [&] { return gpu_table({&it}, "", true).rows[0].note.text; };
  EXPECT_EQ(note(), "");
  it.findings = {{"xid_79", "failed", "reboot", "XID 79", "GpuXid", {}},
                 {"pcie_width", "degraded", "none", "", "", {}}};
  EXPECT_EQ(note(), "XID 79 (reboot), and 1 more");
  it.findings.erase(it.findings.begin());
  EXPECT_EQ(note(), "pcie_width");
}

TEST(GpuListTest, ListsProcessesOrElseWorkloads) {
  Gpu it = gpu("3", State::ok, 1);
  it.shares = {{"slurm_job", "4711", "alice", 0.9, 2 * kGiB}};
  const auto line = [&] { return laid_out(user_table({&it}), 60, Charset::ascii).back().text(); };
  EXPECT_EQ(line(), "  3 slurm_job 4711   alice    90%     2.0");
  it.processes = {{"process 99", "python3", "bob", {}, kGiB}};
  EXPECT_EQ(line(), "  3 process 99 python3 bob        -     1.0");
}

TEST(GpuListTest, ASuspendedGpuIsAsleepUnlessItIsBad) {
  Gpu it = gpu("0", State::ok, 1);
  it.is_suspended = true;
  EXPECT_EQ(state_word(it), "asleep");
  it.state = State::failed;
  EXPECT_EQ(state_word(it), "failed");
}

}  // namespace
}  // namespace gpumeter::top
