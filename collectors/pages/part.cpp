#include "collectors/pages/part.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/folder.hpp"
#include "base/log.hpp"
#include "base/proc.hpp"
#include "base/text.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/api/self_catalog.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/pages/page.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::pages {
namespace {

using options::check_users;
using options::checked;
using options::Complaint;
using options::Option;
using options::option;
using options::Reload;

Complaint check_folders(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    if (Complaint wrong = options::check_absolute_path(folder)) return wrong;
  }
  return std::nullopt;
}

Complaint check_expires(const Duration& expires) {
  if (expires >= std::chrono::seconds(1) && expires <= kLongestPage) return std::nullopt;
  return "must be from 1s to 744h, not " + duration_text(expires);
}

// One row an option.
// clang-format off
constexpr Option kOptions[] = {
    option<&Settings::folders>("folders", Reload::applies, "Folders whose files `NAME.prom` are on the page (docs/pages.md); `[]`: none.", checked<check_folders>),
    option<&Settings::trusted>("trusted", Reload::applies, "Names or uids of users of /etc/passwd whose pages may use every name and have no label `author`, in addition to root.", checked<check_users>),
    option<&Settings::expires>("expires", Reload::applies, "Age from which the series of a page are omitted, unless the page has a line `# gpumeter: expires DURATION`.", checked<check_expires>),
};
// clang-format on

constexpr Nanoseconds kEvery = std::chrono::seconds(2);
constexpr Nanoseconds kLogPeriod = std::chrono::minutes(1);  // of a LogBudget
// A page that a limit excludes is read again then, because others may have left.
constexpr Nanoseconds kRetry = std::chrono::minutes(1);
// A listing of 65 536 names takes 50 ms; whoever makes more hides some of the others' pages, and is in the
// log.
constexpr std::size_t kMostNames = 65'536;
constexpr std::string_view kSuffix = ".prom";
// Of the owner of an entry that cannot be asked.
constexpr std::uint32_t kNobody = 65'534;

/// The name is a label's value and a field of the log.
bool is_page_name(std::string_view name) {
  constexpr std::size_t kLongest = 128;
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return name.size() > kSuffix.size() && name.size() <= kLongest && name.ends_with(kSuffix) &&
         std::ranges::all_of(name, is_plain);
}

/// The uids of these users, of root and of the daemon itself. Reads /etc/passwd and asks no name service,
/// which might hang: the programs' users are the system's own.
std::set<std::uint32_t> uids_of(const std::vector<std::string>& users) {
  constexpr std::size_t kMost = std::size_t{4} << 20U;
  std::set<std::uint32_t> uids = {0, geteuid()};
  for (const std::string& user : users) {
    if (const auto uid = parse_number<std::uint32_t>(user)) uids.insert(*uid);
  }
  const std::string passwd = read_small_file("/etc/passwd", kMost).text;
  for (std::string_view rest = passwd; !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    const std::string_view name = take_until(line, ':');
    take_until(line, ':');
    const auto uid = parse_number<std::uint32_t>(take_until(line, ':'));
    if (uid && std::ranges::find(users, name) != users.end()) uids.insert(*uid);
  }
  return uids;
}

Nanoseconds time_of(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  const auto of = [](const struct stat& each) {
    return std::tuple(each.st_dev, each.st_ino, each.st_mode, each.st_nlink, each.st_uid, each.st_size,
                      time_of(each.st_mtim), time_of(each.st_ctim));
  };
  return of(a) == of(b);
}

/// A user can set mtime to any time, but not ctime.
Nanoseconds written_at(const struct stat& facts) {
  return std::min(time_of(facts.st_mtim), time_of(facts.st_ctim));
}

/// One entry of a folder.
struct File {
  explicit File(Source source) : list(std::move(source)) {}

  std::string label;  ///< `page`
  struct stat facts {};
  Author author;
  std::uint64_t since = 0;  ///< grows with each file that is found: the first one has a name
  bool is_read = false;     ///< `page` or `wrong` is what these facts and this author give
  Nanoseconds retry_at{};   ///< CLOCK_MONOTONIC; 0: not before the file changes
  Page page;
  std::string wrong;     ///< why the file cannot be shown, with its line; empty: it can
  std::string problem;   ///< why it is not shown now; empty: it is
  std::string reported;  ///< the last problem in the log
  std::vector<const MetricDescriptor*> families;  ///< of `page.families`, while it is shown
  SeriesList list;
};

/// The families of all pages: one name has one type and one help text. A family is in the store while a page
/// has it.
class Families {
 public:
  explicit Families(Store& store) : store_(store) {}
  Families(const Families&) = delete;
  Families& operator=(const Families&) = delete;
  ~Families() {
    for (const auto& [name, held] : held_) store_.release(*held);
  }

  void begin_plan() {
    planned_.clear();
    taken_.clear();
  }
  /// Adds the families of a page to the plan. Returns the first one that differs from an earlier page's, and
  /// then adds none.
  std::optional<BadLine> plan(const Page& page);
  /// True if a family of the store stands in the way of a planned one.
  bool is_in_the_way(const MetricDescriptor& held) const {
    const auto same = planned_.find(std::string(held.name));
    if (same != planned_.end()) return !same->second.is(held);
    return std::ranges::any_of(names_taken_by(held),
                               [&](const std::string& name) { return taken_.contains(name); });
  }
  /// True if the plan has this family.
  bool is_planned(const MetricDescriptor& held) const {
    const auto planned = planned_.find(std::string(held.name));
    return planned != planned_.end() && planned->second.is(held);
  }
  bool any(const std::function<bool(const MetricDescriptor&)>& is_so) const {
    return std::ranges::any_of(held_, [&](const auto& each) { return is_so(*each.second); });
  }
  /// Removes families that no page may show any more.
  void release_if(const std::function<bool(const MetricDescriptor&)>& goes) {
    std::erase_if(held_, [&](const auto& each) {
      const bool is_released = goes(*each.second);
      if (is_released) store_.release(*each.second);
      return is_released;
    });
  }
  Result<const MetricDescriptor*> get(const std::string& name);

 private:
  struct Planned {
    MetricType type;
    std::optional<std::string> help;
    bool is(const MetricDescriptor& held) const { return type == held.type && (!help || *help == held.help); }
  };

  Store& store_;
  std::map<std::string, Planned> planned_;
  std::map<std::string, std::string> taken_;  ///< the names of lines -> the family
  std::map<std::string, const MetricDescriptor*> held_;
};

std::optional<BadLine> Families::plan(const Page& page) {
  const auto names_of = [](const Page::Family& each) {
    return names_taken_by({each.name, "", "", each.type});
  };
  for (const Page::Family& each : page.families) {
    const auto known = planned_.find(each.name);
    if (known != planned_.end()) {
      const bool is_same = known->second.type == each.type &&
                           (!known->second.help || !each.help || known->second.help == each.help);
      if (is_same) continue;
      return BadLine{each.line, each.name + " has another type or help text in another page"};
    }
    for (const std::string& name : names_of(each)) {
      if (const auto taken = taken_.find(name); taken != taken_.end()) {
        return BadLine{each.line, each.name + " has a line of the name " + name + ", as " + taken->second +
                                      " has in a page"};
      }
    }
  }
  for (const Page::Family& each : page.families) {
    Planned& planned = planned_.try_emplace(each.name, Planned{each.type, each.help}).first->second;
    if (!planned.help) planned.help = each.help;
    for (std::string& name : names_of(each)) taken_.try_emplace(std::move(name), each.name);
  }
  return std::nullopt;
}

Result<const MetricDescriptor*> Families::get(const std::string& name) {
  if (const auto held = held_.find(name); held != held_.end()) return held->second;
  const Planned& planned = planned_.at(name);
  const auto declared =
      store_.declare({name, planned.help ? std::string_view(*planned.help) : "", "", planned.type});
  if (declared) held_.emplace(name, *declared);
  return declared;
}

class Pages final : public Part {
 public:
  explicit Pages(const PartContext& context)
      : settings_(context.settings_of<Settings>()),
        context_(context),
        trusted_(uids_of(settings_.trusted)),
        families_(context.store),
        own_(context.store.attach({}, context.name)) {}

  Nanoseconds turn(Nanoseconds now) override {
    look();
    read(now);
    judge();
    show(now);
    for (auto& [path, file] : files_) {
      own(file);
      report(path, file);
    }
    std::erase_if(budgets_, [&](const auto& each) { return now - each.second.begun > kLogPeriod; });
    own_.commit(now);
    return kEvery;
  }

 private:
  using Found = std::set<std::string>;  ///< paths
  /// What the pages of one user, or of all, take.
  struct Share {
    std::size_t bytes = 0, series = 0;
    void add(const File& file) {
      bytes += file.page.families.empty() ? 0 : static_cast<std::size_t>(file.facts.st_size);
      series += file.page.size();
    }
  };
  struct LogBudget {
    Nanoseconds begun{};
    unsigned lines = 0;
  };

  void look();
  void look(const std::string& folder, Found& found);
  void note(const std::string& path, const std::string& label, const std::optional<struct stat>& facts);
  Author author_of(std::uint32_t uid);
  void note_devices();
  void read(Nanoseconds now);
  void read(const std::string& path, File& file, Nanoseconds now);
  std::optional<std::string> beyond_limits(const File& file, std::size_t series) const;
  void judge();
  std::string problem_of(const std::string& path, const File& file);
  void show(Nanoseconds now);
  std::string add(const std::string& path, File& file);
  void own(const File& file);
  void report(const std::string& path, File& file);
  std::vector<std::pair<const std::string*, File*>> in_order();

  const Settings settings_;
  const PartContext context_;
  const std::set<std::uint32_t> trusted_;
  Families families_;                  ///< destroyed after the files, whose series are of them
  std::map<std::string, File> files_;  ///< by path
  std::uint64_t found_ = 0;
  Devices devices_;                                   ///< as of the last turn
  std::map<std::string, std::string> folder_errors_;  ///< empty: none
  std::map<std::uint32_t, Author> authors_;           ///< of this turn
  std::map<std::uint32_t, std::size_t> counts_;       ///< of this turn: files by owner
  std::set<std::uint32_t> crowded_;                   ///< owners of more than kMostPages
  std::map<std::uint32_t, LogBudget> budgets_;
  std::set<std::pair<std::string_view, const void*>> shown_;  ///< of this turn: family and key of each metric
  SeriesList own_;
};

void Pages::look() {
  authors_.clear();
  counts_.clear();
  Found found;
  for (const std::string& folder : settings_.folders) look(folder, found);
  std::erase_if(files_, [&](const auto& each) { return !found.contains(each.first); });
  for (const auto& [uid, count] : counts_) {
    const bool is_crowded = count > kMostPages;
    if (!is_crowded) crowded_.erase(uid);
    if (is_crowded && crowded_.insert(uid).second) {
      context_.log.warn("a user has too many pages; the last ones by name are not shown",
                        {{"user", author_of(uid).name}, {"most", std::to_string(kMostPages)}});
    }
  }
  note_devices();
}

void Pages::look(const std::string& path, Found& found) {
  const Result<Folder> folder = Folder::open(path);
  const bool is_missing = !folder && errno == ENOENT;
  std::string error = folder || is_missing ? "" : folder.error().message();
  std::vector<std::string> names;
  if (folder) names = folder->names(kMostNames);
  if (names.size() == kMostNames) error = path + ": has more than " + std::to_string(kMostNames) + " entries";
  if (std::exchange(folder_errors_[path], error) != error) {
    error.empty() ? context_.log.info("a folder of pages is read again", {{"folder", path}})
                  : context_.log.warn("pages of a folder are not shown", {{"error", error}});
  }
  const bool is_first = path == settings_.folders.front();
  for (const std::string& name : names) {
    if (!is_page_name(name)) continue;
    const std::string stem = name.substr(0, name.size() - kSuffix.size());
    errno = 0;
    const std::optional<struct stat> facts = folder->foreign_facts(name);
    if (!facts && errno == ENOENT) continue;  // replaced or removed in this moment
    if (++counts_[facts ? facts->st_uid : kNobody] > kMostPages) continue;
    const std::string file = path + "/" + name;
    if (found.insert(file).second) note(file, is_first ? stem : path + "/" + stem, facts);
  }
}

void Pages::note(const std::string& path, const std::string& label, const std::optional<struct stat>& facts) {
  auto known = files_.find(path);
  if (known == files_.end()) {
    known = files_.try_emplace(path, context_.store.attach_guest(context_.name)).first;
    known->second.since = ++found_;
    known->second.label = label;
  }
  File& file = known->second;
  const Author author = author_of(facts ? facts->st_uid : kNobody);
  const bool is_same = facts && is_same_file(file.facts, *facts) && file.author == author;
  if (!is_same) file.is_read = false;
  file.facts = facts.value_or(std::remove_reference_t<decltype(file.facts)>{});
  file.author = author;
}

Author Pages::author_of(std::uint32_t uid) {
  const auto [known, is_new] = authors_.try_emplace(uid);
  if (is_new) {
    const WorkloadSettings* const workloads = context_.machine.workloads.get();
    known->second = {uid, workloads == nullptr ? std::to_string(uid) : workloads->user_name(uid),
                     trusted_.contains(uid)};
  }
  return known->second;
}

void Pages::note_devices() {
  Devices devices;
  const auto known = context_.machine.known_devices.get();
  const auto read = context_.machine.read_devices.get();
  for (const DeviceIdentity& each : known->empty() ? *read : *known) {
    devices.emplace_back(std::to_string(each.index), each.info.uuid);
  }
  if (devices == devices_) return;
  devices_ = std::move(devices);
  for (auto& [path, file] : files_) file.is_read = false;
}

// Trusted pages first, then those that were there first: a page that comes later takes no name from another.
std::vector<std::pair<const std::string*, File*>> Pages::in_order() {
  std::vector<std::pair<const std::string*, File*>> order;
  for (auto& [path, file] : files_) order.emplace_back(&path, &file);
  std::ranges::sort(order, {}, [](const auto& each) {
    return std::pair(!each.second->author.is_trusted, each.second->since);
  });
  return order;
}

void Pages::read(Nanoseconds now) {
  for (const auto& [path, file] : in_order()) {
    const bool is_due = file->retry_at.count() > 0 && now >= file->retry_at;
    if (!file->is_read || is_due) read(*path, *file, now);
  }
}

std::optional<std::string> irregular(const struct stat& facts) {
  if (facts.st_mode == 0) return "another file system is mounted on it, or it cannot be asked";
  if (!S_ISREG(facts.st_mode)) return "is not a regular file";
  if (facts.st_nlink != 1) return "has a second name (a hard link)";
  if (facts.st_size > static_cast<off_t>(kMostBytes))
    return "is larger than " + std::to_string(kMostBytes) + " bytes";
  return std::nullopt;
}

// A page that changes just now is read with the next turn; until then its series stay as they are.
void Pages::read(const std::string& path, File& file, Nanoseconds now) {
  const PathOfFile place(path);
  file.retry_at = {};
  file.is_read = true;
  std::optional<std::string> wrong = irregular(file.facts);
  std::optional<BadLine> line;
  Page page;
  if (!wrong) {
    const Result<Folder> folder = Folder::open(place.folder);
    errno = 0;
    const Result<std::string> text = folder ? folder->read_foreign(place.name, file.facts, kMostBytes)
                                            : Result<std::string>(folder.error());
    if (!text && errno == EACCES) {
      wrong = "gpumeter may not read it; its mode must be 0644";
    } else if (!text) {
      file.is_read = false;
      if (file.page.families.empty() && file.wrong.empty()) file.wrong = path + ": changed while it was read";
      return;
    } else {
      page = read_page(*text, kMostSeries, line);
      if (!line) line = sign(page, file.author, devices_);
    }
  }
  file.page = {};
  if (!wrong && !line) wrong = beyond_limits(file, page.size());
  if (line) wrong = line->text;
  const std::string where = path + (line ? ":" + std::to_string(line->line) : "") + ": ";
  file.wrong = wrong ? where + *wrong : "";
  if (file.wrong.empty()) {
    file.page = std::move(page);
  } else if (!line && !irregular(file.facts)) {
    file.retry_at = now + kRetry;
  }
}

std::optional<std::string> Pages::beyond_limits(const File& file, std::size_t series) const {
  Share all{static_cast<std::size_t>(file.facts.st_size), series};
  Share user = all;
  for (const auto& [path, other] : files_) {
    if (&other == &file || other.author.is_trusted != file.author.is_trusted) continue;
    all.add(other);
    if (other.author.uid == file.author.uid) user.add(other);
  }
  if (all.bytes > kMostBytesOfAll)
    return "all pages together have more than " + std::to_string(kMostBytesOfAll) + " bytes";
  if (file.author.is_trusted) return std::nullopt;
  if (all.series > kMostSeriesOfAll)
    return "the pages of all users together have more than " + std::to_string(kMostSeriesOfAll) + " series";
  if (user.bytes > kMostBytesOfUser)
    return "the pages of its owner together have more than " + std::to_string(kMostBytesOfUser) + " bytes";
  if (user.series > kMostSeriesOfUser)
    return "the pages of its owner together have more than " + std::to_string(kMostSeriesOfUser) + " series";
  return std::nullopt;
}

void Pages::judge() {
  families_.begin_plan();
  shown_.clear();
  for (const auto& [path, file] : in_order()) file->problem = problem_of(*path, *file);
}

// A metric that two pages have would be mixed from both.
std::string Pages::problem_of(const std::string& path, const File& file) {
  if (!file.wrong.empty()) return file.wrong;
  const Duration most = file.page.expires.value_or(settings_.expires);
  if (context_.clock.realtime() - written_at(file.facts) > most)
    return path + ": is older than " + duration_text(most);
  const auto at = [&](std::size_t line) { return path + ":" + std::to_string(line) + ": "; };
  for (const Page::Family& family : file.page.families) {
    for (const Page::Series& each : family.series) {
      if (!shown_.contains({family.name, each.key.id()})) continue;
      return at(each.line) + "another page has this series of " + family.name;
    }
  }
  if (const auto wrong = families_.plan(file.page)) return at(wrong->line) + wrong->text;
  for (const Page::Family& family : file.page.families) {
    for (const Page::Series& each : family.series) shown_.emplace(family.name, each.key.id());
  }
  return "";
}

// A family that changes leaves the store before its successor enters it.
void Pages::show(Nanoseconds now) {
  const auto is_in_the_way = [&](const MetricDescriptor& held) { return families_.is_in_the_way(held); };
  if (families_.any(is_in_the_way)) {
    for (auto& [path, file] : files_) {
      const bool is_touched = std::ranges::any_of(
          file.families, [&](const MetricDescriptor* each) { return is_in_the_way(*each); });
      if (is_touched) file.list.commit(now);
    }
    families_.release_if(is_in_the_way);
  }
  for (auto& [path, file] : files_) {
    file.families.clear();
    if (file.problem.empty()) file.problem = add(path, file);
    file.list.commit(now);
  }
  families_.release_if([&](const MetricDescriptor& held) { return !families_.is_planned(held); });
}

/// Adds the page's series. Returns what the store has against one of its families, and then adds none.
std::string Pages::add(const std::string& path, File& file) {
  for (const Page::Family& each : file.page.families) {
    const auto family = families_.get(each.name);
    if (!family) {
      file.families.clear();
      return path + ":" + std::to_string(each.line) + ": " + family.error().message();
    }
    file.families.push_back(*family);
  }
  for (std::size_t i = 0; i < file.families.size(); ++i) {
    for (const Page::Series& each : file.page.families[i].series)
      file.list.add(*file.families[i], each.labels, each.value, each.part);
  }
  return "";
}

void Pages::own(const File& file) {
  const Labels labels = {{"page", file.label}, {"author", file.author.is_trusted ? "" : file.author.name}};
  own_.add(self_catalog::page_up, labels, file.problem.empty() ? 1 : 0);
  if (file.facts.st_mode == 0) return;
  const Nanoseconds age = context_.clock.realtime() - written_at(file.facts);
  own_.add(self_catalog::page_age, labels, std::max(0.0, to_seconds(age)));
}

// One line for each change, and not more than a few a minute for each user.
void Pages::report(const std::string& path, File& file) {
  constexpr unsigned kMostLines = 20;
  const std::string& problem = file.problem;
  if (std::exchange(file.reported, problem) == problem) return;
  LogBudget& budget = budgets_[file.author.uid];
  const Nanoseconds now = context_.clock.monotonic();
  if (now - budget.begun > kLogPeriod) budget = {now, 0};
  if (++budget.lines > kMostLines) return;
  const char* const rest =
      budget.lines == kMostLines ? "more changes of this user's pages are not logged for a minute" : "";
  problem.empty() ? context_.log.info("a page is shown again", {{"page", path}, {"note", rest}})
                  : context_.log.warn("a page is not shown", {{"error", problem}, {"note", rest}});
}

}  // namespace

constinit const options::Section kSection = options::section("pages", kOptions);

const PartEntry kPart = {
    .name = "pages", .options = &kSection, .is_on_single_page = true, .open = open_part<Pages>};

}  // namespace gpumeter::pages
