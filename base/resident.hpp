#pragma once

namespace gpumeter {

/// Unmaps the pages of the program and of its libraries that no process writes to: code, constants and the
/// tables of the dynamic linker. They stay in the page cache. The next use of a page maps it again, together
/// with its neighbours, without a read. Breakpoints that a debugger has set by then are lost. Any thread.
void unmap_code() noexcept;

}  // namespace gpumeter
