#include "collectors/pages/replay.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/log.hpp"
#include "base/scheduler.hpp"
#include "base/text.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/pages/page.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter::pages {
namespace {

using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::Reload;

Complaint check_speed(const unsigned& speed) {
  if (speed >= 1 && speed <= 100) return std::nullopt;
  return "must be from 1 to 100";
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&ReplaySettings::file>("file", Reload::restart, "A recording of `gpumeter record` to serve in place of this machine (docs/recordings.md). Empty: none.", checked<options::check_optional_path>),
    option<&ReplaySettings::speed>("speed", Reload::restart, "Seconds of the recording for each second.", checked<check_speed>),
};
// clang-format on

constexpr std::string_view kHeading = "# gpumeter: recorded ";

gzFile gz(void* file) noexcept { return static_cast<gzFile>(file); }

/// False for a series of the daemon that recorded the page. This one has its own.
bool is_of_machine(std::string_view family) {
  const bool is_own = family.starts_with("gpumeter_") || family.starts_with("process_");
  return !is_own || family.starts_with("gpumeter_collector_") ||
         family == self_catalog::devices_expected.name || family == self_catalog::pci_devices.name ||
         family == self_catalog::given_device_info.name || family == self_catalog::read_errors.name;
}

}  // namespace

constinit const options::Section kReplaySection = options::section("replay", kOptions);

std::string heading_of(const RecordedPage& page) {
  return std::string(kHeading) + std::to_string(page.time) + " " + std::to_string(page.text.size()) + "\n";
}

void Recording::Close::operator()(void* file) const noexcept { gzclose(gz(file)); }

Result<Recording> Recording::open(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return Error(path + ": " + std::strerror(errno));
  struct stat facts {};
  if (fstat(file.number(), &facts) != 0 || !S_ISREG(facts.st_mode))
    return Error(path + ": is not a regular file");
  return Recording(std::move(file), path);
}

Recording::Recording(Descriptor&& file, std::string name)
    : name_(std::move(name)), file_(gzdopen(file.number(), "rb")) {
  if (file_) file.release();
}

Result<std::optional<RecordedPage>> Recording::end(std::string_view wrong) const {
  int error = Z_OK;
  gzerror(gz(file_.get()), &error);
  const bool is_torn = error == Z_BUF_ERROR || (error == Z_OK && gzeof(gz(file_.get())) != 0);
  if (is_torn) return std::optional<RecordedPage>();
  return Error(name_ + ": byte " + std::to_string(begin_) + ": " +
               std::string(error == Z_OK ? wrong : "the compressed data is damaged"));
}

Result<std::optional<RecordedPage>> Recording::next() {
  if (!file_) return Error(name_ + ": there is not enough memory");
  // Without compression, gzoffset() counts bytes that are read ahead.
  begin_ = gzdirect(gz(file_.get())) != 0 ? gztell(gz(file_.get())) : gzoffset(gz(file_.get()));
  std::array<char, 64> line{};
  if (gzgets(gz(file_.get()), line.data(), line.size()) == nullptr) return end("cannot be read");
  std::string_view heading = line.data();
  if (!heading.ends_with('\n')) return end("is not the beginning of a recorded page");
  heading.remove_suffix(1);
  const bool is_heading = heading.starts_with(kHeading);
  if (is_heading) heading.remove_prefix(kHeading.size());
  const auto time = parse_number<std::int64_t>(take_until(heading, ' '));
  const auto size = parse_number<std::size_t>(heading);
  if (!is_heading || !time || !size) {
    return Error(name_ + ": byte " + std::to_string(begin_) + ": is not the beginning of a recorded page");
  }
  if (*size > kMostRecordedBytes) {
    return Error(name_ + ": byte " + std::to_string(begin_) + ": a page must have at most " +
                 std::to_string(kMostRecordedBytes >> 20U) + " MiB, not " + std::to_string(*size) + " bytes");
  }
  // A stranger's size is believed as far as there are bytes.
  constexpr std::size_t kStep = std::size_t{1} << 20U;
  RecordedPage page{*time, {}};
  while (page.text.size() < *size) {
    const std::size_t before = page.text.size();
    page.text.resize(std::min(*size, before + kStep));
    const std::size_t wanted = page.text.size() - before;
    const int got = gzread(gz(file_.get()), page.text.data() + before, static_cast<unsigned>(wanted));
    if (got < 0 || static_cast<std::size_t>(got) < wanted) return end("cannot be read");
  }
  return std::optional(std::move(page));
}

Result<Done> check_recording(const std::string& path) {
  Result<Recording> recording = Recording::open(path);
  if (!recording) return recording.error();
  const Result<std::optional<RecordedPage>> page = recording->next();
  if (!page) return page.error();
  return *page ? Result<Done>(Done{}) : Error(path + ": has no recorded page");
}

namespace {

class Replay final : public Part {
 public:
  explicit Replay(const PartContext& context)
      : context_(context),
        settings_(context.settings_of<ReplaySettings>()),
        series_(context.store.attach({}, context.name)) {}

  static std::shared_ptr<Part> open(const PartContext& context) {
    if (context.settings_of<ReplaySettings>().file.empty()) return nullptr;
    return std::make_shared<Replay>(context);
  }

  Nanoseconds turn(Nanoseconds now) override {
    if (is_over_) return Scheduler::kForever;
    if (!recording_) begin(now);
    std::optional<RecordedPage> due;
    while (next_ && pause(now) <= Nanoseconds{}) {
      due = std::move(next_);
      advance();
    }
    if (due) show(*due, now);
    if (next_) return pause(now);
    if (due) return of_recording(1);
    is_over_ = true;
    series_.commit(now);
    context_.log.info("the recording has ended; its series leave the page", {{"file", settings_.file}});
    return Scheduler::kForever;
  }

 private:
  Nanoseconds of_recording(double seconds) const {
    constexpr double kMost = 1e6;  // a stranger's times may be any
    return std::chrono::duration_cast<Nanoseconds>(
        std::chrono::duration<double>(std::clamp(seconds / settings_.speed, -kMost, kMost)));
  }

  /// Until the next page. Pages whose clock was set back have no pause.
  Nanoseconds pause(Nanoseconds now) const {
    const double seconds = (static_cast<double>(next_->time) - static_cast<double>(first_)) / 1e3;
    return begun_ + of_recording(seconds) - now;
  }

  void begin(Nanoseconds now) {
    begun_ = now;
    Result<Recording> opened = Recording::open(settings_.file);
    if (!opened) return complain(opened.error().message());
    recording_ = std::make_unique<Recording>(*std::move(opened));
    advance();
    if (next_) first_ = next_->time;
  }

  void advance() {
    Result<std::optional<RecordedPage>> page = recording_->next();
    if (!page) complain(page.error().message());
    next_ = page ? *std::move(page) : std::nullopt;
  }

  void show(const RecordedPage& recorded, Nanoseconds now) {
    std::optional<BadLine> wrong;
    const Page page = read_page(recorded.text, kMostRecordedSeries, wrong);
    const std::string where =
        settings_.file + ": the page of time " + std::to_string(recorded.time) + ": line ";
    if (wrong) complain(where + std::to_string(wrong->line) + ": " + wrong->text);
    series_.add(self_catalog::replay_time, {}, static_cast<double>(recorded.time) / 1e3);
    for (const Page::Family& each : page.families) {
      if (!is_of_machine(each.name)) continue;
      const Result<const MetricDescriptor*> family = family_of(each);
      if (!family) complain(where + std::to_string(each.line) + ": " + family.error().message());
      for (const Page::Series& one : each.series) {
        if (family) series_.add(**family, Labels(one.pairs), one.value, one.part);
      }
    }
    series_.commit(now);
  }

  // A family of another version may have another help text. This version's then counts.
  Result<const MetricDescriptor*> family_of(const Page::Family& recorded) {
    if (const auto known = families_.find(recorded.name); known != families_.end()) return known->second;
    Result<const MetricDescriptor*> family =
        context_.store.declare({recorded.name, recorded.help.value_or(""), "", recorded.type});
    if (!family) family = context_.store.declare({recorded.name, "", "", recorded.type});
    if (family) families_.emplace(recorded.name, *family);
    return family;
  }

  // Only once: a stranger's recording must not fill the log.
  void complain(const std::string& error) {
    if (std::exchange(has_complained_, true)) return;
    context_.log.error("the recording is not shown as it was", {{"error", error}});
  }

  const PartContext context_;
  const ReplaySettings settings_;
  std::unique_ptr<Recording> recording_;
  std::optional<RecordedPage> next_;
  Nanoseconds begun_{};
  std::int64_t first_ = 0;  ///< the time of the first page
  std::map<std::string, const MetricDescriptor*, std::less<>> families_;
  SeriesList series_;
  bool is_over_ = false;
  bool has_complained_ = false;
};

}  // namespace

const PartEntry kReplay = {.name = "replay", .options = &kReplaySection, .open = Replay::open};

}  // namespace gpumeter::pages
