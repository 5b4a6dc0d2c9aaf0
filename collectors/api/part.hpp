#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/paths.hpp"
#include "base/result.hpp"
#include "collectors/api/descriptor.hpp"

namespace gpumeter {

class Log;
struct Machine;
class Store;

/// What a part works with. Everything outlives the part and its turns.
struct PartContext {
  std::string_view name;  ///< of the part; the owner of its sources: `store.attach({}, name)`
  Store& store;
  Machine& machine;  ///< what parts know of each other
  const Clock& clock;
  Log& log;
  const Paths& paths;
  Nanoseconds interval =
      std::chrono::seconds(10);        ///< sampling.normal; for parts without a period of their own
  const void* settings = nullptr;      ///< its section's, see settings_of(); valid during open()
  std::function<void()> wake = [] {};  ///< moves the part's next turn to now; any thread, never blocks

  /// The settings that PartEntry::options declares.
  template <class Settings>
  const Settings& settings_of() const {
    return *static_cast<const Settings*>(settings);
  }
};

/// A periodic subject: it reads something of the machine, sets its series and commits them. One thread at a
/// time calls it, so that it needs no lock of its own. A turn may hang in the system; then only this part
/// waits, and its series leave the page.
class Part {
 public:
  virtual ~Part() = default;

  /// Works once, at `now` by the monotonic clock. Returns the pause until the next turn; Scheduler::kForever:
  /// until the part is woken.
  virtual Nanoseconds turn(Nanoseconds now) = 0;
};

/// A part whose figures survive a restart, a reload and a crash, as a section of the state file.
class Keeps {
 public:
  virtual ~Keeps() = default;
  /// Called after each turn, on its thread.
  virtual std::string save() const = 0;
  /// Called once, before the first turn. An Error means that the section is not understood.
  virtual Result<Done> resume(std::string_view section, bool is_of_this_boot) = 0;
};

/// A plugin: one row of the table in daemon/parts. Its name is also the label `part`.
struct PartEntry {
  std::string_view name;
  /// Its section of the configuration; null: it has no keys. A change of a key by a reload opens the part
  /// again.
  const options::Section* options = nullptr;
  /// What it exports, for the documents and for the names that no page of a user may have.
  std::span<const MetricDescriptor* const> families = {};
  /// Of one turn. A later one counts as hanging: gpumeter_part_up 0.
  Nanoseconds deadline = std::chrono::seconds(3);
  /// The section of the state file, of a part that is Keeps; empty: none.
  std::string_view section = {};
  /// The part reads the whole store: it begins after the first pass over the devices or 5 s, because walks
  /// delay the lanes that still add their series.
  bool reads_store = false;
  /// The part has series on the page of --once, which gives it one turn after the last pass.
  bool is_on_single_page = false;
  /// Returns null if the configuration disables the part.
  std::shared_ptr<Part> (*open)(const PartContext& context);
};

/// The usual `open`.
template <class SomePart>
std::shared_ptr<Part> open_part(const PartContext& context) {
  return std::make_shared<SomePart>(context);
}

}  // namespace gpumeter
