#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "programs/top/layout.hpp"
#include "programs/top/pages.hpp"
#include "programs/top/snapshot.hpp"

namespace gpumeter::top {

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

/// Returns the screen: exactly `height` lines of at most `width` columns. Limits `view.first_line` to the
/// lines that exist.
Lines compose(View& view, const Snapshot& snapshot, const Frame& frame);

/// Returns the lines for a terminal that is none: all GPUs, findings and jobs.
Lines plain_page(const Snapshot& snapshot, const Frame& frame, Sort sort);

}  // namespace gpumeter::top
