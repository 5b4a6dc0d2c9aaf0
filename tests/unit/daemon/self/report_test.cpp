#include "daemon/self/report.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "collectors/api/self_catalog.hpp"
#include "collectors/jobs/model/run_model.hpp"
#include "collectors/kubernetes/part.hpp"
#include "exporter/text/view.hpp"

namespace gpumeter {
namespace {

/// Returns the sample lines only; text_format and the catalogue define the headers.
std::string lines_of(const SelfState& state) {
  Store store;
  SeriesList series(store.attach());
  add_self_series(state, series);
  series.commit({});
  std::string lines;
  std::string page = TextView(store).render(Format::text).text;
  for (std::size_t begin = 0; begin < page.size();) {
    const std::size_t end = page.find('\n', begin) + 1;
    if (page[begin] != '#') lines += page.substr(begin, end - begin);
    begin = end;
  }
  return lines;
}

TEST(SelfMetrics, ShowsWhatIsKnownFromTheStart) {
  EXPECT_EQ(
      lines_of({.build = {.version = "1.2.3", .revision = "abc", .branch = "main", .compiler = "GNU 12"},
                .config_reload_timestamp_seconds = 1.5}),
      "gpumeter_build_info{version=\"1.2.3\",revision=\"abc\",branch=\"main\",compiler=\"GNU 12\"} 1\n"
      "gpumeter_config_last_reload_success_timestamp_seconds 1.5\n"
      "gpumeter_config_last_reload_successful 1\n"
      "gpumeter_log_dropped_total 0\n"
      "gpumeter_simulated 0\n");
}

TEST(SelfMetrics, ShowsTheWebConfigurationIfThereIsOne) {
  const std::string lines = lines_of({.web_config = {{false, std::chrono::milliseconds(2500)}}});
  EXPECT_NE(lines.find("gpumeter_web_config_last_reload_success_timestamp_seconds 2.5\n"
                       "gpumeter_web_config_last_reload_successful 0\n"),
            std::string::npos)
      << lines;
}

TEST(SelfMetrics, ShowsTheEndOfTheCertificateUnderTls) {
  const std::string lines = lines_of({.certificate_expiry_timestamp_seconds = 2.5});
  EXPECT_NE(lines.find("gpumeter_web_certificate_expiry_timestamp_seconds 2.5\n"), std::string::npos)
      << lines;
  EXPECT_EQ(lines_of({}).find("gpumeter_web_certificate"), std::string::npos);
}

TEST(SelfMetrics, ShowsScansOfDrmClientsWhileADeviceIsWatched) {
  const std::string lines = lines_of({.drm_scans = {{0.25, 3, 2}}});
  EXPECT_NE(lines.find("gpumeter_drm_malformed_lines_total 2\n"
                       "gpumeter_drm_processes_inaccessible 3\n"
                       "gpumeter_drm_scan_duration_seconds 0.25\n"),
            std::string::npos)
      << lines;
  EXPECT_EQ(lines_of({}).find("gpumeter_drm"), std::string::npos);
}

TEST(SelfMetrics, ShowsCollectorsPassesAndTheProcess) {
  CollectorHealth amd{.name = "amd", .up = true, .devices = 2, .last_success_timestamp_seconds = 17};
  amd.read_errors[0][static_cast<std::size_t>(ReadStatus::ok)] = 1000;
  amd.read_errors[0][static_cast<std::size_t>(ReadStatus::timeout)] = 3;
  amd.read_errors[1] = {};
  amd.denied = {{"busy_time", "pmu.conf"}};
  const SelfState state{
      .build = {.version = "1"},
      .simulated = true,
      .config_reload_successful = false,
      .collectors = {amd, {.name = "nvidia", .released = true}},
      .passes = {{"amd", 1, "fast", 0.25}},
      .pci_devices = {{"amd", 2}},
      .given_devices = {Labels(
          {{"pci_address", "0000:02:00.0"}, {"vendor", "nvidia"}, {"kind", "vm"}, {"workload", "win11"}})},
      .devices_expected = {{"amd", 2}, {"nvidia", 8}},
      .http_requests = {{200, 5}, {404, 0}},
      .log_dropped = 8,
      .process = ProcessStats{1.5, 2, 3, 4, 5, 6, 7}};
  EXPECT_EQ(lines_of(state),
            "gpumeter_build_info{version=\"1\"} 1\n"
            "gpumeter_collector_devices{collector=\"amd\"} 2\n"
            "gpumeter_collector_devices{collector=\"nvidia\"} 0\n"
            "gpumeter_collector_last_success_timestamp_seconds{collector=\"amd\"} 17\n"
            "gpumeter_collector_released{collector=\"amd\"} 0\n"
            "gpumeter_collector_released{collector=\"nvidia\"} 1\n"
            "gpumeter_collector_up{collector=\"amd\"} 1\n"
            "gpumeter_collector_up{collector=\"nvidia\"} 0\n"
            "gpumeter_config_last_reload_success_timestamp_seconds 0\n"
            "gpumeter_config_last_reload_successful 0\n"
            "gpumeter_devices_expected{vendor=\"amd\"} 2\n"
            "gpumeter_devices_expected{vendor=\"nvidia\"} 8\n"
            "gpumeter_given_device_info{pci_address=\"0000:02:00.0\",vendor=\"nvidia\",kind=\"vm\",workload="
            "\"win11\"} 1\n"
            "gpumeter_http_requests_total{code=\"200\"} 5\n"
            "gpumeter_http_requests_total{code=\"404\"} 0\n"
            "gpumeter_log_dropped_total 8\n"
            "gpumeter_pci_devices{vendor=\"amd\"} 2\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"0\",status=\"unsupported\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"0\",status=\"gone\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"0\",status=\"timeout\"} 3\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"0\",status=\"denied\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"0\",status=\"failed\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"0\",status=\"out_of_range\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"1\",status=\"unsupported\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"1\",status=\"gone\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"1\",status=\"timeout\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"1\",status=\"denied\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"1\",status=\"failed\"} 0\n"
            "gpumeter_read_errors_total{collector=\"amd\",gpu=\"1\",status=\"out_of_range\"} 0\n"
            "gpumeter_sample_duration_seconds{collector=\"amd\",gpu=\"1\",tier=\"fast\"} 0.25\n"
            "gpumeter_simulated 1\n"
            "gpumeter_values_denied{collector=\"amd\",what=\"busy_time\",drop_in=\"pmu.conf\"} 1\n"
            "process_cpu_seconds_total 1.5\n"
            "process_max_fds 7\n"
            "process_open_fds 6\n"
            "process_resident_memory_bytes 4\n"
            "process_start_time_seconds 2\n"
            "process_threads 5\n"
            "process_virtual_memory_bytes 3\n");
}

TEST(SelfCatalog, ListsEveryFamilyThatIsExported) {
  SelfState state{.web_config = {{true, std::chrono::seconds(1)}},
                  .certificate_expiry_timestamp_seconds = 1,
                  .collectors = {{.name = "amd",
                                  .last_success_timestamp_seconds = 1,
                                  .read_errors = {{0, {}}},
                                  .denied = {{"busy_time", "pmu.conf"}}}},
                  .passes = {{"amd", 0, "fast", 1}},
                  .parts = {{"health", true}},
                  .pci_devices = {{"amd", 1}},
                  .given_devices = {Labels({{"pci_address", "0000:02:00.0"}})},
                  .devices_expected = {{"any", 1}},
                  .http_requests = {{200, 1}},
                  .drm_scans = DrmScans::Figures{},
                  .process = ProcessStats{}};
  std::vector<std::string_view> exported;
  Store store;
  SeriesList series(store.attach());
  add_self_series(state, series);
  kubelet::add_series(kubelet::SourceId::logs, {.last_success = Nanoseconds(1)}, series);
  series.commit({});
  Source jobs = store.attach();
  const jobs::RunModel model(jobs, {}, [](const jobs::SenderId&) { return true; });
  jobs.commit({});
  store.walk([&](const Family& family) { exported.push_back(family.descriptor().name); });
  exported.push_back(self_catalog::nccl_state.name);  // gpumeter-nccl and gpumeter-nccl-files
  exported.push_back(self_catalog::nccl_files.name);
  exported.push_back(self_catalog::page_up.name);  // collectors/pages
  exported.push_back(self_catalog::page_age.name);
  exported.push_back(self_catalog::replay_time.name);
  exported.push_back(self_catalog::kernel_log_readable.name);  // collectors/kernel
  exported.push_back(self_catalog::kernel_log_lost.name);
  exported.push_back(self_catalog::powercap_readable.name);  // collectors/host
  exported.push_back(self_catalog::otlp_up.name);            // exporter/otlp
  exported.push_back(self_catalog::otlp_points.name);
  exported.push_back(self_catalog::otlp_queue.name);
  std::vector<std::string_view> listed;
  for (const MetricDescriptor* family : self_catalog::all()) listed.push_back(family->name);
  std::ranges::sort(exported);
  std::ranges::sort(listed);
  EXPECT_EQ(exported, listed);
}

class ProcessStatsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "gpumeter-procXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    std::filesystem::create_directories(root_ + "/self/fd");
    for (const char* fd : {"0", "1", "2"}) write("self/fd/" + std::string(fd), "");
    write("stat", "cpu  1 2 3\nbtime 1700000000\nprocesses 9\n");
    write("self/limits",
          "Limit                     Soft Limit           Hard Limit           Units     \n"
          "Max open files            1024                 524288               files     \n");
    write("self/stat",
          "7 (a) b) (c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 12345 4096000 100 "
          "18446744073709551615 1 1\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) { std::ofstream(root_ + "/" + path) << text; }

  std::string root_;
};

TEST_F(ProcessStatsTest, ReadsTheKernelsFilesInBaseUnits) {
  const auto stats = read_process_stats(root_);
  ASSERT_TRUE(stats) << stats.error().message();
  const auto hertz = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_EQ(stats->cpu_seconds, 300 / hertz);
  EXPECT_EQ(stats->start_time_seconds, 1700000000 + 12345 / hertz);
  EXPECT_EQ(stats->virtual_bytes, 4096000);
  EXPECT_EQ(stats->resident_bytes, 100.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(stats->threads, 3);
  EXPECT_EQ(stats->open_fds, 3);
  EXPECT_EQ(stats->max_fds, 1024);
}

TEST_F(ProcessStatsTest, KnowsNoLimitAsInfinity) {
  write("self/limits", "Max open files            unlimited            unlimited            files     \n");
  EXPECT_EQ(read_process_stats(root_)->max_fds, INFINITY);
}

TEST_F(ProcessStatsTest, SaysWhatItCannotRead) {
  write("self/stat", "7 (cut off) S 1 7");
  EXPECT_EQ(read_process_stats(root_).error().message(), root_ + "/self: does not match proc(5)");
  EXPECT_EQ(read_process_stats("/nowhere").error().message(), "cannot read /nowhere/self");
}

/// Field 20 of proc(5)'s stat, which is at least 1 if a kernel wrote it.
long threads_of_this_process() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int number = 3; number <= 20; ++number) fields >> field;
  return std::stol(field);
}

TEST(ProcessStats, ReadsThisProcess) {
  if (threads_of_this_process() == 0) GTEST_SKIP() << "/proc/self/stat is an emulator's: it has no threads";
  const auto stats = read_process_stats("/proc");
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_GT(stats->resident_bytes, 0);
  EXPECT_GE(stats->virtual_bytes, stats->resident_bytes);
  EXPECT_GE(stats->threads, 1);
}

}  // namespace
}  // namespace gpumeter
