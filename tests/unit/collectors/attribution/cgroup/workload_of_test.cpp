#include "collectors/attribution/cgroup/workload_of.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter::cgroup {
namespace {

const std::string kOther = "\xEF\xBF\xBD";  // U+FFFD

TEST(Unescaped, UndoesWhatSystemdWrote) {
  EXPECT_EQ(unescaped(R"(machine-qemu\x2d2\x2dbig.scope)"), "machine-qemu-2-big.scope");
  EXPECT_EQ(unescaped(R"(\xc3\xA4)"), "ä");
  EXPECT_EQ(unescaped(R"(a\x5cx2d)"), R"(a\x2d)");  // only once
}

TEST(Unescaped, LeavesWhatIsNoEscape) {
  for (const char* const text : {"", "\\", "\\x", "\\x2", "\\xg0", "\\x-1", "\\x 1", "\\X2d", "plain"}) {
    EXPECT_EQ(unescaped(text), text);
  }
}

TEST(LabelText, IsValidUtf8) {
  EXPECT_EQ(label_text("straße-Ω-😀"), "straße-Ω-😀");
  EXPECT_EQ(label_text("a\xFFz"), "a" + kOther + "z");
  EXPECT_EQ(label_text("\xC0\xAF"), kOther + kOther);                   // overlong
  EXPECT_EQ(label_text("\xED\xA0\x80"), kOther + kOther + kOther);      // a surrogate
  EXPECT_EQ(label_text("\xF4\x90\x80\x80").size(), 4 * kOther.size());  // above U+10FFFF
  EXPECT_EQ(label_text("\xE2\x82"), kOther + kOther);                   // cut off
  EXPECT_EQ(label_text("\xF4\x8F\xBF\xBF\xEE\x80\x80"), "\xF4\x8F\xBF\xBF\xEE\x80\x80");
}

TEST(LabelText, HasNoControlCharacters) {
  EXPECT_EQ(label_text(std::string("a\0b\x1B\x7F", 5)), "a" + kOther + "b" + kOther + kOther);
}

TEST(LabelText, ALongOneIsCutAndStaysItself) {
  const std::string longest(kLongestLabel, 'x');
  EXPECT_EQ(label_text(longest), longest);
  const std::string cut = label_text(longest + "1");
  // FNV-1a of the whole text, computed by another program.
  EXPECT_EQ(cut, std::string(119, 'x') + "~85e9351c");
  EXPECT_EQ(cut.size(), kLongestLabel);
  EXPECT_NE(label_text(longest + "2"), cut);
}

TEST(LabelText, IsNotCutAmidstACharacter) {
  const std::string cut = label_text(std::string(118, 'x') + "😀" + std::string(20, 'x'));
  EXPECT_EQ(cut.substr(0, cut.size() - 8), std::string(118, 'x') + "~");
}

const std::string kId(64, 'a');
const std::string kUid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
const std::string kUser = "0::/user.slice/user-1000.slice/";
const std::string kManager = kUser + "user@1000.service/";

std::string path_of(const std::string& text) { return std::string(most_telling_path(text).text); }

Attribution attribution(const std::string& text) { return attribution_of(most_telling_path(text)); }

std::string workload(const std::string& text) { return attribution(text).workload; }

std::string group(const std::string& text) { return attribution(text).group; }

TEST(AttributionOf, TheGroupIsTheWorkloadsOwn) {
  EXPECT_EQ(group("0::/system.slice/train.service/worker\n"), "/system.slice/train.service");
  EXPECT_EQ(group("0::/system.slice/docker-" + kId + ".scope/init\n"),
            "/system.slice/docker-" + kId + ".scope");
  const std::string pod = "/kubepods.slice/kubepods-pod0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0.slice";
  EXPECT_EQ(group("0::" + pod + "/cri-containerd-" + kId + ".scope\n"), pod);
  EXPECT_EQ(group("4:cpuacct:/slurm/uid_1000/job_42/step_0/task_0\n"), "/slurm/uid_1000/job_42");
  EXPECT_EQ(group("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n"),
            "/system.slice/slurmstepd.scope/job_42");
  EXPECT_EQ(group(kUser + "session-3.scope\n"), "/user.slice/user-1000.slice");
  EXPECT_EQ(group(kManager + "app.slice/server.service\n"),
            "/user.slice/user-1000.slice/user@1000.service/app.slice/server.service");
  EXPECT_EQ(group("0::/custom/group\n"), "/custom/group");
}

TEST(AttributionOf, NoGroupOutsideTheNamespaceAndInTheRoot) {
  EXPECT_EQ(group("0::/\n"), "");
  EXPECT_EQ(group("0::/../train.service\n"), "");
}

TEST(MostTellingPath, IsThatOfTheHighestRank) {
  // On a hybrid tree, runtimes leave v2's line at their own service, or v1's at the root.
  EXPECT_EQ(
      path_of("4:memory:/kubepods/pod" + kUid + "/" + kId + "\n0::/reserved.slice/containerd.service\n"),
      "/kubepods/pod" + kUid + "/" + kId);
  EXPECT_EQ(path_of("1:name=systemd:/\n0::/system.slice/docker-" + kId + ".scope\n"),
            "/system.slice/docker-" + kId + ".scope");
  EXPECT_EQ(path_of("8:memory:/init.scope\n2:cpu:/\n1:name=systemd:/system.slice/a.service\n"),
            "/system.slice/a.service");
  EXPECT_EQ(path_of("0::/docker/" + kId + "\n9:devices:/slurm/uid_1/job_2\n"), "/slurm/uid_1/job_2");
}

TEST(MostTellingPath, AtATieIsThatOfTheHierarchyBelievedMost) {
  EXPECT_EQ(path_of("5:pids:/b\n0::/a\n"), "/a");
  EXPECT_EQ(path_of("6:memory:/c\n5:pids:/b\n"), "/b");
  EXPECT_EQ(path_of("7:cpu,cpuacct:/d\n6:hugetlb,memory:/c\n"), "/c");
  EXPECT_EQ(path_of("1:name=systemd:/e\n7:cpuacct:/d\n"), "/d");
  EXPECT_EQ(path_of("9:devices:/f\n1:name=systemd:/e\n"), "/e");
  EXPECT_EQ(path_of("9:devices:/f\n8:freezer:/g\n"), "/f");
  EXPECT_EQ(path_of("9:cpuset:/f\n8:cpu:/g\n"), "/g");  // cpuset is not cpu
}

TEST(MostTellingPath, APathMayHaveColons) {
  EXPECT_EQ(path_of("0::/user.slice/user:with:colon.slice/session-3.scope"),
            "/user.slice/user:with:colon.slice/session-3.scope");
}

TEST(MostTellingPath, WhatIsNoLineIsSkipped) {
  EXPECT_EQ(path_of("malformed\r\nx::/a\n:memory:/b\n0:/c\n0::d\n\n0::/unified\r\n"), "/unified");
  EXPECT_EQ(path_of(""), "");
  EXPECT_EQ(path_of("nothing of this"), "");
}

TEST(Attribution, NobodysProcessSaysWhy) {
  EXPECT_EQ(attribution("").reason, Reason::no_line);
  EXPECT_EQ(attribution("0::/\n").reason, Reason::root);
  EXPECT_EQ(attribution("0::/\n").kind, Kind::unattributed);
  EXPECT_EQ(attribution("0::/\n").workload, "");
  EXPECT_EQ(attribution("0::/system.slice/a.service").reason, Reason::none);
  EXPECT_EQ(to_string(Reason::root), "root");
}

TEST(Attribution, KindsAreNamedAsTheLabel) {
  EXPECT_EQ(to_string(Kind::systemd_unit), "systemd_unit");
  EXPECT_EQ(to_string(Kind::slurm_job), "slurm_job");
  EXPECT_EQ(to_string(Kind::unattributed), "unattributed");
}

TEST(Workload, IsTheUnitsNameWithoutEscapes) {
  EXPECT_EQ(workload(R"(0::/system.slice/train\x2dbig.service)"), "train-big.service");
  EXPECT_EQ(attribution(R"(0::/system.slice/train\x2dbig.service)").unit, "train-big.service");
  EXPECT_EQ(attribution(R"(0::/system.slice/system-serial\x2dgetty.slice/a.service)").slice,
            "system-serial-getty.slice");
}

TEST(Workload, OfAUserBeginsWithTheirSlice) {
  EXPECT_EQ(workload(kManager + "app.slice/jupyter.service"), "user-1000.slice/jupyter.service");
  EXPECT_EQ(workload(kManager + "user.slice/libpod-" + kId + ".scope"), "user-1000.slice/" + kId);
  EXPECT_EQ(workload(kManager + "libpod-conmon-" + kId + ".scope"), "user-1000.slice/conmon");
  // A slice that a user creates is not a system slice.
  EXPECT_EQ(workload(kUser + "system.slice"), "/user.slice/user-1000.slice/system.slice");
}

TEST(Workload, TransientScopesAreTheirSlices) {
  for (const std::string text :
       {"0::/system.slice/run-r0123abcd.scope", "0::/system.slice/run-p12-i34.scope"}) {
    EXPECT_EQ(workload(text), "system.slice") << text;
    EXPECT_TRUE(attribution(text).transient) << text;
  }
  EXPECT_EQ(workload(kUser + "session-3.scope"), "user-1000.slice");
  EXPECT_EQ(workload(kManager + "tmux-spawn-" + kUid + ".scope"), "user-1000.slice");
  EXPECT_EQ(workload(kManager + "app.slice/run-u7.scope"), "user-1000.slice");
  EXPECT_EQ(workload("0::/run-u7.scope"), "-.slice");
  EXPECT_EQ(attribution(kUser + "session-3.scope").unit, "session-3.scope");
}

TEST(Workload, OtherNamesAreNotTransient) {
  EXPECT_EQ(workload("0::/system.slice/run-train.service"), "run-train.service");
  EXPECT_EQ(workload("0::/system.slice/my-spawn-pool.scope"), "my-spawn-pool.scope");
  EXPECT_EQ(workload("0::/system.slice/run-u7.scope/libpod-payload-" + kId), kId);
  EXPECT_EQ(workload("0::/system.slice/app-train@1.service"), "app-train@1.service");
  EXPECT_FALSE(attribution("0::/system.slice/a.service").transient);
}

TEST(Workload, OfADesktopApplicationIsWithoutItsRandomPart) {
  EXPECT_EQ(workload(kManager + "app.slice/app-flatpak-org.blender.Blender-1234.scope"),
            "user-1000.slice/app-flatpak-org.blender.Blender");
  EXPECT_EQ(workload(kManager + R"(app.slice/app-gnome-my\x2dapp-99.scope)"),
            "user-1000.slice/app-gnome-my-app");
  EXPECT_EQ(workload(kManager + "app.slice/app-org.kde.konsole@f00d.service"),
            "user-1000.slice/app-org.kde.konsole");
  EXPECT_EQ(workload(kManager + "app.slice/app-one.scope"), "user-1000.slice/app-one.scope");
  EXPECT_EQ(workload(kManager + "app.slice/app-one.service"), "user-1000.slice/app-one.service");
}

TEST(Workload, OfContainersPodsJobsAndMachinesIsTheirId) {
  EXPECT_EQ(workload("0::/docker/" + kId), kId);
  EXPECT_EQ(workload("0::/kubepods.slice/kubepods-pod0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0.slice"), kUid);
  EXPECT_EQ(attribution("0::/kubepods.slice/kubepods-pod0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0.slice").pod_uid,
            kUid);
  EXPECT_EQ(workload("7:memory:/slurm/uid_1000/job_55/step_0"), "55");
  EXPECT_EQ(attribution("7:memory:/slurm/uid_1000/job_55/step_0").uid, 1000U);
  EXPECT_EQ(workload("0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00"), "s5K1KKYAYG5D00");
  EXPECT_EQ(attribution("0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00").sluid->cluster, 1432);
  EXPECT_EQ(attribution("7:memory:/slurm/uid_1000/job_55/step_0").sluid, std::nullopt);
}

TEST(Workload, OfAMachineIsWithoutTheNumberOfItsStart) {
  EXPECT_EQ(workload(R"(0::/machine.slice/machine-qemu\x2d2\x2dbig\x2done.scope)"), "big-one");
  EXPECT_EQ(workload(R"(0::/machine.slice/machine-qemu\x2dbig.scope)"), "qemu-big");
  EXPECT_EQ(workload("0::/qemu.slice/100.scope"), "100");
}

TEST(Workload, OfABatchSystemIsItsJob) {
  const Attribution pbs = attribution("4:memory:/pbs_jobs.service/jobid/2404743.opbs/child");
  EXPECT_EQ(pbs.kind, Kind::systemd_unit);
  EXPECT_EQ(pbs.workload, "pbs_jobs.service/2404743.opbs");
  EXPECT_EQ(pbs.unit, "pbs_jobs.service");
  EXPECT_EQ(pbs.group, "/pbs_jobs.service/jobid/2404743.opbs");
  EXPECT_EQ(workload("0::/pbs_jobs.service/jobs/12345[1].pbs"), "pbs_jobs.service/12345[1].pbs");
  EXPECT_EQ(workload("0::/pbs_jobs.service"), "pbs_jobs.service");
  const std::string slot = "/htcondor/condor_var_lib_condor_execute_slot1_23@node7";
  EXPECT_EQ(workload("5:memory:" + slot), "htcondor/slot1_23@node7");
  EXPECT_EQ(workload("0::/system.slice" + slot + "/control"), "htcondor/slot1_23@node7");
  EXPECT_EQ(attribution("0::/system.slice" + slot + "/control").group, "/system.slice" + slot);
  EXPECT_EQ(workload("3:memory:/lsf/cluster1/job.2517.23470.1609771890"), "lsf/2517");
  EXPECT_EQ(workload("0::/user.slice/user-765.slice/user@765.service/imp-shell-450-fPY66riwfnP.service"),
            "user-765.slice/imp-shell-450-fPY66riwfnP.service");  // Flux
  EXPECT_EQ(workload("0::/docker/" + kId + "/pbs_jobs.service/jobid/1"), kId);
  EXPECT_EQ(workload(kUser + "htcondor/condor_x_slot1@a").find("htcondor/slot"), std::string::npos)
      << "a user may create any name";
}

TEST(Workload, OfAnotherGroupIsItsSliceOrPath) {
  EXPECT_EQ(workload("0::/system.slice"), "system.slice");
  EXPECT_EQ(workload(kUser.substr(0, kUser.size() - 1)), "user-1000.slice");
  EXPECT_EQ(workload("0::/htcondor/slot1"), "/htcondor/slot1");
  EXPECT_EQ(workload("0::/lxc.monitor.db"), "lxc.monitor");
}

TEST(Attribution, AQuadletHasItsUnitBesideTheContainer) {
  const Attribution quadlet = attribution("0::/system.slice/web.service/libpod-payload-" + kId);
  EXPECT_EQ(quadlet.kind, Kind::container);
  EXPECT_EQ(quadlet.unit, "web.service");
  EXPECT_EQ(quadlet.container_id, kId);
  EXPECT_EQ(quadlet.container_runtime, "podman");
  EXPECT_EQ(attribution(kManager + "user.slice/libpod-" + kId + ".scope").unit, "");
}

TEST(Attribution, EveryNameIsALabelsText) {
  const Attribution odd = attribution("0::/system.slice/" + std::string(200, 'x') + "\xFF.service");
  EXPECT_EQ(odd.workload.size(), 128U);
  EXPECT_EQ(odd.unit, odd.workload);
  EXPECT_EQ(workload("0::/lxc/\xFF"), "\xEF\xBF\xBD");
}

}  // namespace

}  // namespace gpumeter::cgroup
