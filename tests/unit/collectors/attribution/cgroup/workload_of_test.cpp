#include "collectors/attribution/cgroup/workload_of.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>

namespace gpumeter::cgroup {
namespace {

using namespace std::string_literals;

const std::string kId(64, 'a');
const std::string kInnerId(64, 'b');
const std::string kUid = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0";
const std::string kUidOfSystemd = "0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0";

/// Keeps the text, because a Path consists of views.
Path read(std::string text) {
  static std::deque<std::string> kept;
  return read_path(kept.emplace_back(std::move(text)));
}

Kind kind_of(const std::string& path) { return read_path(path).kind; }

TEST(CgroupPath, AUnitIsTheOutermostOneBelowSlices) {
  const Path path = read("/system.slice/system-getty.slice/getty@tty1.service/worker.scope/child");
  EXPECT_EQ(path.kind, Kind::systemd_unit);
  EXPECT_EQ(path.unit, "getty@tty1.service");
  EXPECT_EQ(path.slice, "system-getty.slice");
  EXPECT_EQ(read("/init.scope").unit, "init.scope");
  EXPECT_EQ(read("/pbs_jobs.service/jobid/17.server").unit, "pbs_jobs.service");
}

TEST(CgroupPath, AUsersUnitIsTheOneBelowTheManager) {
  const Path path = read("/user.slice/user-1000.slice/user@1000.service/app.slice/jupyter.service/kernel");
  EXPECT_EQ(path.kind, Kind::user_unit);
  EXPECT_EQ(path.unit, "jupyter.service");
  EXPECT_EQ(path.slice, "app.slice");
  EXPECT_EQ(path.owner, "user-1000.slice");
  EXPECT_EQ(path.uid, 1000U);
  EXPECT_EQ(read("/user.slice/user-1000.slice/user@1000.service/folder").unit, "user@1000.service");
}

TEST(CgroupPath, ASessionIsALogin) {
  const Path path = read("/user.slice/user-0.slice/session-c12.scope");
  EXPECT_EQ(path.kind, Kind::session);
  EXPECT_EQ(path.unit, "session-c12.scope");
  EXPECT_EQ(path.uid, 0U);
  EXPECT_EQ(kind_of("/system.slice/session-migration.service"), Kind::systemd_unit);
}

TEST(CgroupPath, ASliceOrAFolderIsAnotherGroup) {
  EXPECT_EQ(kind_of("/user.slice/user-1000.slice"), Kind::other);
  EXPECT_EQ(kind_of("/system.slice"), Kind::other);
  EXPECT_EQ(kind_of("/htcondor/condor_var_lib_condor_execute_slot1_1@host"), Kind::other);
  EXPECT_EQ(kind_of("/.slice/.service"), Kind::other);
}

TEST(CgroupPath, TheRootIsNobodys) {
  EXPECT_EQ(kind_of("/"), Kind::unattributed);
  EXPECT_EQ(kind_of(""), Kind::unattributed);
  EXPECT_EQ(kind_of("/../.."), Kind::unattributed);
}

struct Named {
  std::string path;
  std::string_view runtime;
};

TEST(CgroupPath, ContainersByTheirRuntimesNames) {
  const Named kPaths[] = {
      {"/docker/" + kId, "docker"},
      {"/docker/" + kId + ".scope", "docker"},
      {"/system.slice/docker-" + kId + ".scope/init", "docker"},
      {"/system.slice/cri-containerd-" + kId + ".scope", "containerd"},
      {"/system.slice:cri-containerd:" + kId, "containerd"},
      {"/crio-" + kId + ".scope/container", "cri-o"},
      {"/libpod_parent/libpod-" + kId, "podman"},
      {"/machine.slice/libpod-" + kId + ".scope/container", "podman"},
      {"/system.slice/web.service/libpod-payload-" + kId, "podman"},
      {"/system.slice/nerdctl-" + kId + ".scope", "nerdctl"},
      {"/default/" + kId, "nerdctl"},
      {"/ecs/cluster/0123456789abcdef0123456789abcdef/" + kId, "ecs"},
  };
  for (const Named& named : kPaths) {
    const Path path = read(named.path);
    EXPECT_EQ(path.kind, Kind::container) << named.path;
    EXPECT_EQ(path.container, kId) << named.path;
    EXPECT_EQ(path.runtime, named.runtime) << named.path;
  }
}

TEST(CgroupPath, ContainersWithIdsOfTheirOwn) {
  EXPECT_EQ(read("/ecs/task/0123456789abcdef0123456789abcdef-42").container,
            "0123456789abcdef0123456789abcdef-42");
  EXPECT_EQ(read("/garden/0f1e2d3c-4b5a-6978-8796-a5b4").container, "0f1e2d3c-4b5a-6978-8796-a5b4");
  EXPECT_EQ(read("/lxc/db").container, "db");
  EXPECT_EQ(read("/lxc.payload.db/system.slice/ssh.service").container, "db");
  EXPECT_EQ(read("/lxc.payload.db/system.slice/ssh.service").unit, "");
  EXPECT_EQ(read(R"(/machine.slice/machine-lxc\x2d7\x2ddb.scope)").container, R"(7\x2ddb)");
  EXPECT_EQ(read("/lxc/db").runtime, "lxc");
}

TEST(CgroupPath, LxcStandsAtTheRoot) {
  EXPECT_EQ(kind_of("/system.slice/backup.service/lxc/db"), Kind::systemd_unit);
  EXPECT_EQ(kind_of("/user.slice/user-1000.slice/user@1000.service/lxc.payload.db"), Kind::user_unit);
}

TEST(CgroupPath, WhatIsNoIdIsNoContainer) {
  for (const std::string& id :
       {kId + "a", kId.substr(1), std::string(64, 'A'), std::string(63, 'a') + "g", ""s}) {
    EXPECT_EQ(kind_of("/docker/" + id), Kind::other) << id;
    EXPECT_EQ(kind_of("/system.slice/docker-" + id + ".scope"), Kind::systemd_unit) << id;
  }
  // The owner of a bare id is unknown.
  EXPECT_EQ(kind_of("/" + kId), Kind::other);
  EXPECT_EQ(kind_of("/custom/" + kId), Kind::other);
}

TEST(CgroupPath, APodByEitherDriver) {
  const Path own = read("/kubepods/burstable/pod" + kUid + "/" + kId);
  EXPECT_EQ(own.kind, Kind::pod);
  EXPECT_EQ(own.pod, kUid);
  EXPECT_EQ(own.container, kId);
  EXPECT_EQ(own.runtime, "");
  EXPECT_EQ(own.qos, "burstable");
  EXPECT_EQ(own.driver, "cgroupfs");
  const Path systemds = read("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" +
                             kUidOfSystemd + ".slice/cri-containerd-" + kId + ".scope");
  EXPECT_EQ(systemds.pod, kUidOfSystemd);
  EXPECT_EQ(systemds.container, kId);
  EXPECT_EQ(systemds.runtime, "containerd");
  EXPECT_EQ(systemds.qos, "besteffort");
  EXPECT_EQ(systemds.driver, "systemd");
  EXPECT_EQ(read("/kubepods/pod" + kUid).qos, "guaranteed");
}

TEST(CgroupPath, APodWhoseRuntimeTookSystemdsNameForAPath) {
  const Path path = read("/system.slice/containerd.service/kubepods-burstable-pod" + kUidOfSystemd +
                         ".slice:cri-containerd:" + kId);
  EXPECT_EQ(path.kind, Kind::pod);
  EXPECT_EQ(path.pod, kUidOfSystemd);
  EXPECT_EQ(path.container, kId);
  EXPECT_EQ(path.unit, "");
}

TEST(CgroupPath, APodsFolderMayHaveAColonToo) {
  const Path path = read("/kubepods/pod" + kUid + ":cri-containerd:" + kId);
  EXPECT_EQ(path.pod, kUid);
  EXPECT_EQ(path.container, kId);
}

TEST(CgroupPath, ABareIdIsAPodsContainerOnlyRightBelowThePod) {
  EXPECT_EQ(read("/kubepods/pod" + kUid + "/" + kId + "/folder/" + kInnerId).container, kId);
  EXPECT_EQ(read("/kubepods/pod" + kUid + "/folder/" + kId).container, "");
}

TEST(CgroupPath, AStaticPodHasAHash) {
  EXPECT_EQ(read("/kubepods/burstable/pod0123456789abcdef0123456789abcdef/" + kId).pod,
            "0123456789abcdef0123456789abcdef");
  EXPECT_EQ(kind_of("/kubepods/pod0123456789abcdef0123456789abcde"), Kind::other);
  EXPECT_EQ(kind_of("/kubepods/pod0123456789abcdef0123456789abcdef0"), Kind::other);
  EXPECT_EQ(kind_of("/machine.slice/machine-libpod_pod_" + kId + ".slice"), Kind::other);
}

TEST(CgroupPath, TheInnermostContainerAndTheLastPodWin) {
  const Path kind = read("/docker/" + kInnerId + "/kubepods/pod" + kUid + "/" + kId);
  EXPECT_EQ(kind.kind, Kind::pod);
  EXPECT_EQ(kind.container, kId);
  EXPECT_EQ(read("/kubepods/pod0123456789abcdef0123456789abcdef/" + kInnerId + "/kubepods/pod" + kUid).pod,
            kUid);
  EXPECT_EQ(read("/lxc/host/docker/" + kId).container, kId);
  const Path node = read("/docker/" + kId + "/system.slice/kubelet.service");
  EXPECT_EQ(node.kind, Kind::container);
  EXPECT_EQ(node.container, kId);
  EXPECT_EQ(node.unit, "");
  // The pod's own group contains no container, so it does not belong to the outer one.
  EXPECT_EQ(read("/docker/" + kId + "/kubepods/pod" + kUid).container, "");
}

TEST(CgroupPath, AMonitorIsNoContainer) {
  for (const std::string& path :
       {"/kubepods/pod" + kUid + "/crio-conmon-" + kId, "/machine.slice/libpod-conmon-" + kId + ".scope",
        "/libpod_parent/conmon"s, "/lxc.monitor.db"s, "/lxc.monitor/db"s}) {
    const Path found = read(path);
    EXPECT_EQ(found.kind, Kind::other) << path;
    EXPECT_EQ(found.container, "") << path;
    EXPECT_EQ(found.pod, "") << path;
    EXPECT_NE(found.monitor, "") << path;
  }
}

TEST(CgroupPath, VirtualMachines) {
  EXPECT_EQ(read(R"(/machine.slice/machine-qemu\x2d2\x2dbig.scope/libvirt/emulator)").machine,
            R"(qemu\x2d2\x2dbig)");
  EXPECT_EQ(read("/machine/qemu-2-big.libvirt-qemu").machine, "qemu-2-big");
  EXPECT_EQ(read("/qemu.slice/100.scope").machine, "100");
  EXPECT_EQ(kind_of("/qemu.slice/100.scope"), Kind::vm);
  EXPECT_EQ(kind_of("/qemu.slice/helper.scope"), Kind::systemd_unit);
  EXPECT_EQ(kind_of("/system.slice/100.scope"), Kind::systemd_unit);
}

TEST(CgroupPath, ForgedPathsAreTheirMakers) {
  const std::string user = "/user.slice/user-1000.slice/";
  for (const std::string& forged :
       {user + "user@1000.service/slurmstepd.scope/job_9/step_0",
        user + "system.slice/slurmstepd.scope/job_9", "/user.slice/slurmstepd.scope/job_9"s,
        "/user-1000.slice/slurmstepd.scope/job_9"s,
        "/../user@1000.service/system.slice/slurmstepd.scope/job_9"s}) {
    EXPECT_EQ(kind_of(forged), Kind::user_unit) << forged;
    EXPECT_EQ(read(forged).slurm.id(), "") << forged;
  }
  const Path pod = read(user + "user@1000.service/kubepods/pod" + kUid + "/" + kId);
  EXPECT_EQ(pod.kind, Kind::user_unit);
  EXPECT_EQ(pod.pod, "");
  EXPECT_EQ(pod.container, "");
  const Path v1 = read(user + "user@1000.service/slurm/uid_0/job_9");
  EXPECT_EQ(v1.kind, Kind::user_unit);
}

TEST(CgroupPath, AUsersContainerIsTheUsers) {
  const std::string rootless =
      "/user.slice/user-1000.slice/user@1000.service/user.slice/docker-" + kInnerId + ".scope";
  const Path path = read(rootless + "/kubepods/pod" + kUid + "/docker/" + kId);
  EXPECT_EQ(path.kind, Kind::container);
  EXPECT_EQ(path.container, kId);
  EXPECT_EQ(path.owner, "user-1000.slice");
  EXPECT_EQ(path.uid, 1000U);
  EXPECT_EQ(path.slice, "user.slice");
}

TEST(CgroupPath, UsersInsideAContainerAreNotTheMachines) {
  const Path path =
      read("/docker/" + kId + "/user.slice/user-0.slice/user@0.service/docker-" + kInnerId + ".scope");
  EXPECT_EQ(path.container, kId);
  EXPECT_EQ(path.owner, "");
  EXPECT_EQ(path.uid, std::nullopt);
}

TEST(CgroupPath, ANamespaceHidesWhatIsAbove) {
  const Path crio = read("/../crio-" + kId + ".scope");
  EXPECT_TRUE(crio.namespaced);
  EXPECT_EQ(crio.kind, Kind::container);
  EXPECT_EQ(crio.text, "/../crio-" + kId + ".scope");
  const Path pod = read("/../../../burstable/pod" + kUid + "/" + kId);
  EXPECT_EQ(pod.pod, kUid);
  EXPECT_EQ(pod.qos, "burstable");
  EXPECT_EQ(read("/../../user@1000.service/app.slice/x.service").uid, 1000U);
  EXPECT_FALSE(read("/..x/docker/" + kId).namespaced);
}

TEST(CgroupPath, WhatIsAppendedIsTakenOff) {
  const Path path = read("/system.slice/foo.service (deleted)\r\n");
  EXPECT_TRUE(path.deleted);
  EXPECT_EQ(path.text, "/system.slice/foo.service");
  EXPECT_EQ(path.unit, "foo.service");
  EXPECT_FALSE(read("/system.slice/foo.service").deleted);
}

TEST(CgroupPath, RanksByWhatItTells) {
  EXPECT_EQ(rank(read("/")), 0);
  EXPECT_EQ(rank(read("/init.scope")), 0);
  EXPECT_EQ(rank(read("/system.slice")), 1);
  EXPECT_EQ(rank(read("/system.slice/a.service")), 1);
  EXPECT_EQ(rank(read("/docker/" + kId)), 2);
  EXPECT_EQ(rank(read("/qemu.slice/1.scope")), 2);
  EXPECT_EQ(rank(read("/kubepods/pod" + kUid)), 3);
  EXPECT_EQ(rank(read("/slurm/uid_1/job_2")), 4);
}

const std::string kOther = "\xEF\xBF\xBD";  // U+FFFD

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
}

TEST(Attribution, KindsAreNamedAsTheLabel) {
  EXPECT_EQ(to_string(Kind::systemd_unit), "systemd_unit");
  EXPECT_EQ(to_string(Kind::slurm_job), "slurm_job");
  EXPECT_EQ(to_string(Kind::unattributed), "unattributed");
}

TEST(Workload, IsTheUnitsNameWithoutEscapes) {
  EXPECT_EQ(workload(R"(0::/system.slice/train\x2dbig.service)"), "train-big.service");
  EXPECT_EQ(attribution(R"(0::/system.slice/train\x2dbig.service)").unit, "train-big.service");
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
  EXPECT_EQ(attribution("0::/system.slice/slurmstepd.scope/s5K1KKYAYG5D00").slurm_sluid, "s5K1KKYAYG5D00");
  EXPECT_EQ(attribution("7:memory:/slurm/uid_1000/job_55/step_0").slurm_sluid, "");
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
