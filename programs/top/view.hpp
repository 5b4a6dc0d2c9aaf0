#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "programs/top/layout.hpp"
#include "programs/top/snapshot.hpp"

namespace gpumeter::top {

// The pages (pages.cpp): all pure.

/// The order of the GPUs. Each name begins with the key that selects it.
enum class Sort : std::uint8_t { state, gpu, utilization, power, memory, temperature };
inline constexpr EnumNames<Sort, 6> kSortNames = {{{Sort::state, "state"},
                                                   {Sort::gpu, "gpu"},
                                                   {Sort::utilization, "utilization"},
                                                   {Sort::power, "power"},
                                                   {Sort::memory, "memory"},
                                                   {Sort::temperature, "temperature"}}};

/// Returns the GPUs in order: the worst state first, the lowest index first, or the highest value first;
/// reversed on request. GPUs without the value are the last in either case. Pure.
std::vector<const Gpu*> sorted(const std::vector<Gpu>& gpus, Sort sort, bool is_reversed);

/// One row per GPU, with a note on what is wrong. The column of models is omitted unless `with_model`.
Table gpu_table(const std::vector<const Gpu*>& gpus, const std::string& selected_uuid, bool with_model);

/// The state in a word: also "asleep" for a GPU that runtime power management has suspended.
std::string_view state_word(const Gpu& gpu);
Style style_of(State state);
/// True if all GPUs have the same model.
bool have_one_model(const std::vector<Gpu>& gpus);

/// One row per run. Pure.
Table job_table(const std::vector<Run>& runs);

/// All that is known of one GPU: why it is in its state and what to do, its values, who uses it. Pure.
Lines gpu_detail(const Snapshot& snapshot, const Gpu& gpu, int width, Charset charset);

/// One row for each process on the GPUs, or for each workload if the daemon does not export processes. Pure.
Table user_table(const std::vector<const Gpu*>& gpus);

/// The last minutes of the GPU as plots above each other. Pure.
Lines gpu_plots(const Past& past, const Gpu& gpu, int width, int height, Charset charset);

/// A finding in a line or more: severity, sentence, time, action, alert.
Lines finding_lines(const Finding& finding, int width, Charset charset);

// What the person chooses, and the screen that follows (view.cpp).

enum class Key : std::uint8_t { none, up, down, page_up, page_down, first, last, enter, back, letter };

struct KeyPress {
  Key key = Key::none;
  char letter = 0;
};

/// What the person has chosen to see.
struct View {
  enum class Page : std::uint8_t { gpus, jobs, gpu, help };

  Page page = Page::gpus;
  Page before_help = Page::gpus;
  Sort sort = Sort::state;
  bool is_reversed = false;
  std::string selected_uuid;  ///< empty: the first row. The selection follows its GPU when the order changes.
  int first_line = 0;         ///< of jobs, a GPU's detail or the help: the first line that is shown
};

/// The rest of what the screen shows.
struct Frame {
  int width = 80;
  int height = 24;
  Charset charset = Charset::ascii;
  std::string host;
  std::string time;      ///< "11:25:03"
  Number stale_seconds;  ///< the age of the snapshot, if the daemon no longer answers in time
  std::string problem;   ///< why it does not answer
};

/// Applies a key. Returns false if the key ends the program. Pure, as is everything below.
bool press(View& view, const Snapshot& snapshot, KeyPress key);

/// The uuid of the GPU whose last minutes the screen shows; empty: of none.
std::string plotted_gpu(const View& view, const Snapshot& snapshot, const Frame& frame);

/// Returns the screen: exactly `height` lines of at most `width` columns. Limits `view.first_line` to the
/// lines that exist.
Lines compose(View& view, const Snapshot& snapshot, const Frame& frame);

/// Returns the lines for a terminal that is none: all GPUs, findings and jobs.
Lines plain_page(const Snapshot& snapshot, const Frame& frame, Sort sort);

}  // namespace gpumeter::top
