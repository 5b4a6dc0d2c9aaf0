// The text of /proc/PID/cgroup, in which users name groups, and of /proc/PID/stat, in which users name
// processes.
#include <string>

#include "base/proc.hpp"
#include "collectors/attribution/cgroup/cache.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace gpumeter::cgroup {
namespace {

/// A label's text is short and printable, and stays the same if it is converted again.
void expect_label(const std::string& text) {
  fuzz::expect(text.size() <= kLongestLabel);
  fuzz::expect(label_text(text) == text);
}

void expect_piece(std::string_view whole, std::string_view piece) {
  fuzz::expect(piece.empty() ||
               (piece.data() >= whole.data() && piece.data() + piece.size() <= whole.data() + whole.size()));
}

void expect_pieces(std::string_view text, const Path& path) {
  for (const std::string_view piece :
       {path.text, path.slice, path.unit, path.owner, path.container, path.pod, path.machine, path.slurm.job,
        path.slurm.sluid, path.slurm.step, path.slurm.task}) {
    expect_piece(text, piece);
    fuzz::expect(piece.find('\n') == std::string_view::npos);
  }
}

/// No group that a user can create is attributed to another owner.
void expect_no_forgery(const Path& path) {
  if (!path.text.starts_with("/user.slice/")) return;
  fuzz::expect(path.kind != Kind::slurm_job && path.kind != Kind::pod && path.kind != Kind::systemd_unit);
  fuzz::expect(path.slurm.id().empty() && path.pod.empty() && !path.owner.empty());
}

void expect_attribution(const Path& path) {
  const Attribution found = attribution_of(path);
  for (const std::string& text :
       {found.workload, found.unit, found.container_id, found.pod_uid, found.slurm_job, found.slurm_sluid}) {
    expect_label(text);
  }
  fuzz::expect(found.kind == path.kind);
  fuzz::expect((found.kind == Kind::unattributed) == (found.reason != Reason::none));
  fuzz::expect((found.kind == Kind::unattributed) == found.workload.empty());
  fuzz::expect((found.kind == Kind::pod) == !found.pod_uid.empty());
  fuzz::expect((found.kind == Kind::slurm_job) == !(found.slurm_job.empty() && found.slurm_sluid.empty()));
  fuzz::expect(found.kind != Kind::container || !found.container_id.empty());
}

}  // namespace
}  // namespace gpumeter::cgroup

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gpumeter;
  const std::string_view text = fuzz::text_of(data, size);
  const cgroup::Path path = cgroup::most_telling_path(text);
  cgroup::expect_pieces(text, path);
  cgroup::expect_no_forgery(path);
  cgroup::expect_attribution(path);
  // A path alone gives the same result as in its line.
  const cgroup::Path alone = cgroup::read_path(path.text);
  fuzz::expect(path.deleted || (alone.kind == path.kind && alone.unit == path.unit && alone.pod == path.pod));
  if (const auto ticks = proc::start_ticks(text)) {
    fuzz::expect(proc::start_ticks(") S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 " +
                                   std::to_string(*ticks)) == ticks);
  }
  return 0;
}
