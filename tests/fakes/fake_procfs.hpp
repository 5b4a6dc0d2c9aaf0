#pragma once

#include <string>
#include <string_view>

#include "tests/fakes/tree.hpp"

namespace gpumeter {

/// A /proc with init and the processes that a test adds. Files are replaced atomically.
class FakeProcfs {
 public:
  FakeProcfs() { add(1, "/init.scope"); }

  struct Facts {
    int start = 100;
    unsigned uid = 0;
    std::string_view name = "train";
    char state = 'S';
  };
  void add(int pid, std::string_view group, const Facts& facts) {
    const std::string folder = std::to_string(pid) + "/";
    const std::string name(facts.name);
    tree_.write(folder + "stat", std::to_string(pid) + " (" + name + ") " + facts.state +
                                     " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 1 18 " +
                                     std::to_string(facts.start) + " 20 21\n");
    tree_.write(folder + "cgroup", "0::" + std::string(group) + "\n");
    tree_.write(folder + "status", "Name:\t" + name + "\nUmask:\t0022\nUid:\t" + std::to_string(facts.uid) +
                                       "\t7\t7\t7\nGid:\t7\t7\t7\t7\n");
    tree_.write(folder + "comm", name + "\n");
  }
  void add(int pid, std::string_view group) { add(pid, group, {}); }
  /// `variables`: each ends with a NUL.
  void set_environment(int pid, std::string_view variables) {
    tree_.write(std::to_string(pid) + "/environ", std::string(variables));
  }
  void end(int pid) { tree_.remove(std::to_string(pid)); }

  std::string path() const { return tree_.path(); }

 private:
  Tree tree_ = make_tree({});
};

}  // namespace gpumeter
