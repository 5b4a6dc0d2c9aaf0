#include "exporter/web/part.hpp"

#include "collectors/api/machine.hpp"
#include "exporter/history/history.hpp"
#include "exporter/web/live_answers.hpp"

namespace gpumeter::web {
namespace {

class Recorder final : public Part {
 public:
  explicit Recorder(const PartContext& context) : machine_(context.machine) {}

  Nanoseconds turn(Nanoseconds) override {
    machine_.history->sample();
    machine_.live->refresh();
    return std::chrono::seconds(1);
  }

 private:
  const Machine& machine_;
};

}  // namespace

const PartEntry kHistory = {.name = "history", .reads_store = true, .open = open_part<Recorder>};

}  // namespace gpumeter::web
