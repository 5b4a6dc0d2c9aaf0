#include "programs/top/terminal.hpp"

#include <curses.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>

// curses.h defines macros with names such as `erase` and `move`: only this file includes it.
namespace gpumeter::top {
namespace {

enum : short { kGood = 1, kWarning, kBad, kSelected };
constexpr int kEscape = 27;
constexpr int kControlL = 12;
constexpr int kControlH = 8;
constexpr int kDelete = 127;
constexpr int kEscapeMilliseconds = 25;

bool set_up_colours() {
  const char* refused = std::getenv("NO_COLOR");
  if ((refused != nullptr && *refused != '\0') || !has_colors() || start_color() == ERR) return false;
  use_default_colors();
  init_pair(kGood, COLOR_GREEN, -1);
  init_pair(kWarning, COLOR_YELLOW, -1);
  init_pair(kBad, COLOR_RED, -1);
  return true;
}

constexpr std::pair<int, Key> kKeys[] = {
    {KEY_UP, Key::up},      {KEY_DOWN, Key::down},   {KEY_PPAGE, Key::page_up}, {KEY_NPAGE, Key::page_down},
    {KEY_HOME, Key::first}, {KEY_END, Key::last},    {KEY_ENTER, Key::enter},   {'\n', Key::enter},
    {'\r', Key::enter},     {KEY_RIGHT, Key::enter}, {KEY_LEFT, Key::back},     {KEY_BACKSPACE, Key::back},
    {kDelete, Key::back},   {kControlH, Key::back},  {kEscape, Key::back}};

KeyPress key_of(int code) {
  const auto found = std::ranges::find(kKeys, code, &std::pair<int, Key>::first);
  if (found != std::end(kKeys)) return {found->second};
  if (code > ' ' && code < 127) return {Key::letter, static_cast<char>(code)};
  return {};
}

}  // namespace

struct Terminal::Screen {
  SCREEN* screen = nullptr;
  bool has_colours = false;

  attr_t attributes(Style style) const {
    switch (style) {
      case Style::dim:
        return A_DIM;
      case Style::bold:
        return A_BOLD;
      case Style::title:
        return A_BOLD | A_UNDERLINE;
      case Style::good:
        return has_colours ? COLOR_PAIR(kGood) : A_NORMAL;
      case Style::warning:
        return has_colours ? COLOR_PAIR(kWarning) | A_BOLD : A_BOLD;
      case Style::bad:
        return has_colours ? COLOR_PAIR(kBad) | A_BOLD : A_BOLD;
      default:
        return A_NORMAL;
    }
  }
};

Terminal::Terminal(std::unique_ptr<Screen> screen) : screen_(std::move(screen)) {}

Result<std::unique_ptr<Terminal>> Terminal::open() {
  const char* type = std::getenv("TERM");
  set_escdelay(kEscapeMilliseconds);
  auto made = std::make_unique<Screen>();
  made->screen = newterm(nullptr, stdout, stdin);
  if (made->screen == nullptr)
    return Error("the terminal type " + std::string(type == nullptr ? "(TERM is not set)" : type) +
                 " is unknown; use --once");
  cbreak();
  noecho();
  nonl();
  keypad(stdscr, TRUE);
  nodelay(stdscr, TRUE);
  curs_set(0);
  made->has_colours = set_up_colours();
  return std::unique_ptr<Terminal>(new Terminal(std::move(made)));
}

Terminal::~Terminal() {
  endwin();
  delscreen(screen_->screen);
}

int Terminal::width() const noexcept { return getmaxx(stdscr); }
int Terminal::height() const noexcept { return getmaxy(stdscr); }

void Terminal::draw(const Lines& lines) {
  werase(stdscr);
  const int rows = std::min(static_cast<int>(lines.size()), height());
  for (int row = 0; row < rows; ++row) {
    const Line& line = lines[static_cast<std::size_t>(row)];
    const attr_t selected = line.is_selected ? A_REVERSE : A_NORMAL;
    wmove(stdscr, row, 0);
    for (const Piece& piece : line.pieces) {
      wattrset(stdscr, static_cast<int>(screen_->attributes(piece.style) | selected));
      // ERR at the last column of the last row, where the cursor cannot move on: the text is written.
      waddnstr(stdscr, piece.text.c_str(), static_cast<int>(piece.text.size()));
    }
  }
  wattrset(stdscr, A_NORMAL);
  wrefresh(stdscr);
}

void Terminal::redraw() noexcept { clearok(stdscr, TRUE); }

KeyPress Terminal::read() {
  const int code = wgetch(stdscr);
  if (code == kControlL) redraw();
  return code == ERR ? KeyPress{} : key_of(code);
}

}  // namespace gpumeter::top
