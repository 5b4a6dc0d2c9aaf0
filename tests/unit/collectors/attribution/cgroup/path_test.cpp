#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>

#include "collectors/attribution/cgroup/workload_of.hpp"

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

}  // namespace
}  // namespace gpumeter::cgroup
