#pragma once

#include <memory>

#include "base/result.hpp"
#include "programs/top/layout.hpp"
#include "programs/top/view.hpp"

namespace gpumeter::top {

/// The terminal in full-screen mode, by ncurses. The destructor restores it. One at a time, one thread.
class Terminal {
 public:
  /// Returns an Error if the terminal's type ($TERM) is unknown or cannot move its cursor. Sets no colours if
  /// the terminal has none or $NO_COLOR is set.
  static Result<std::unique_ptr<Terminal>> open();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  int width() const noexcept;
  int height() const noexcept;
  void draw(const Lines& lines);
  /// Draws all at the next draw(), also what ncurses believes to be there.
  void redraw() noexcept;
  /// Returns the next key without waiting; Key::none if there is none. A change of the size is Key::none too.
  KeyPress read();

 private:
  struct Screen;
  explicit Terminal(std::unique_ptr<Screen> screen);

  std::unique_ptr<Screen> screen_;
};

}  // namespace gpumeter::top
