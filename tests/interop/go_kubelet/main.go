// A kubelet of Kubernetes' own parts: grpc-go, and the services Pods and PodResourcesLister of k8s.io/kubelet.
//
// usage: go_kubelet FOLDER
// Serves FOLDER/pods-api.sock and FOLDER/kubelet.sock. Each line of the standard input is a State in JSON; the answer is the line "ok" when
// the servers have it. A state that changes the servers' settings restarts them.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	resources "k8s.io/kubelet/pkg/apis/podresources/v1"
	pods "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// Settings of the servers. A time of 0 is grpc-go's default.
type Settings struct {
	Serve             bool
	PodsAPI           bool
	PingMilliseconds  int // an idle connection is pinged, and closed without an answer in this time (grpc-go: at least 1 s)
	AgeMilliseconds   int // GOAWAY after this time
	GraceMilliseconds int // and the end of the connection this much later
	WriteBytes        int // bytes of a write; small ones make many frames
}

type Pod struct{ Namespace, Name, UID, Container, ID string }

type Given struct {
	Namespace, Name, Container string
	Devices                    []string
}

type State struct {
	Settings          Settings
	Pods              []Pod
	Given             []Given
	DelayMilliseconds int  // before each answer of List
	Refuse            bool // as the kubelet's rate limit does
}

type kubelet struct {
	pods.UnimplementedPodsServer
	resources.UnimplementedPodResourcesListerServer

	folder  string
	mutex   sync.Mutex
	state   State
	changed chan struct{} // closed with each change
	servers []*grpc.Server
}

func (k *kubelet) now() (State, chan struct{}) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.state, k.changed
}

// The kubelet's own interceptor refuses with these words (pkg/kubelet/apis/grpc/ratelimit.go).
func (k *kubelet) limit(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	state, _ := k.now()
	if state.Refuse {
		return nil, status.Error(codes.ResourceExhausted, "rejected by rate limit")
	}
	time.Sleep(time.Duration(state.DelayMilliseconds) * time.Millisecond)
	return next(ctx, request)
}

func (k *kubelet) List(context.Context, *resources.ListPodResourcesRequest) (*resources.ListPodResourcesResponse, error) {
	state, _ := k.now()
	answer := &resources.ListPodResourcesResponse{}
	for _, given := range state.Given {
		devices := []*resources.ContainerDevices{{ResourceName: "nvidia.com/gpu", DeviceIds: given.Devices,
			Topology: &resources.TopologyInfo{Nodes: []*resources.NUMANode{{ID: 1}}}}}
		container := &resources.ContainerResources{Name: given.Container, Devices: devices, CpuIds: []int64{0, 64},
			Memory: []*resources.ContainerMemory{{MemoryType: "memory", Size: 1 << 34}}}
		answer.PodResources = append(answer.PodResources, &resources.PodResources{Name: given.Name, Namespace: given.Namespace,
			Containers: []*resources.ContainerResources{container}, CpuIds: []int64{0, 64}})
	}
	return answer, nil
}

func field(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

// k8s.io/api/core/v1: metadata 1 {name 1, namespace 3, uid 5}, status 3 {phase 1, containerStatuses 8 {name 1, containerID 8}}.
func (p Pod) bytes() []byte {
	metadata := field(field(field(nil, 1, []byte(p.Name)), 3, []byte(p.Namespace)), 5, []byte(p.UID))
	container := field(field(nil, 1, []byte(p.Container)), 8, []byte("containerd://"+p.ID))
	return field(field(nil, 1, metadata), 3, field(field(nil, 1, []byte("Running")), 8, container))
}

func (k *kubelet) ListPods(context.Context, *pods.ListPodsRequest) (*pods.ListPodsResponse, error) {
	state, _ := k.now()
	answer := &pods.ListPodsResponse{}
	for _, pod := range state.Pods {
		answer.Pods = append(answer.Pods, pod.bytes())
	}
	return answer, nil
}

// Sends all pods and the mark of the list's end, and after each change the pods that are new or different, and those that are gone.
func (k *kubelet) WatchPods(_ *pods.WatchPodsRequest, stream grpc.ServerStreamingServer[pods.WatchPodsEvent]) error {
	sent := map[string]Pod{}
	for first := true; ; first = false {
		state, changed := k.now()
		present := map[string]bool{}
		for _, pod := range state.Pods {
			present[pod.UID] = true
			if old, known := sent[pod.UID]; known && old == pod {
				continue
			}
			sent[pod.UID] = pod
			if err := stream.Send(&pods.WatchPodsEvent{Type: pods.EventType_ADDED, Pod: pod.bytes()}); err != nil {
				return err
			}
		}
		for uid, pod := range sent {
			if present[uid] {
				continue
			}
			delete(sent, uid)
			if err := stream.Send(&pods.WatchPodsEvent{Type: pods.EventType_DELETED, Pod: pod.bytes()}); err != nil {
				return err
			}
		}
		if first {
			if err := stream.Send(&pods.WatchPodsEvent{Type: pods.EventType_INITIAL_SYNC_COMPLETE}); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

func (k *kubelet) serve(name string, settings Settings, register func(*grpc.Server)) error {
	path := filepath.Join(k.folder, name)
	os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	milliseconds := func(value int) time.Duration { return time.Duration(value) * time.Millisecond }
	options := []grpc.ServerOption{grpc.UnaryInterceptor(k.limit), grpc.KeepaliveParams(keepalive.ServerParameters{
		MaxConnectionAge: milliseconds(settings.AgeMilliseconds), MaxConnectionAgeGrace: milliseconds(settings.GraceMilliseconds),
		Time: milliseconds(settings.PingMilliseconds), Timeout: milliseconds(settings.PingMilliseconds)})}
	if settings.WriteBytes > 0 {
		options = append(options, grpc.WriteBufferSize(settings.WriteBytes))
	}
	server := grpc.NewServer(options...)
	register(server)
	k.servers = append(k.servers, server)
	go server.Serve(listener)
	return nil
}

// Stop closes every connection at once, as a kubelet that is killed does, and removes the sockets.
func (k *kubelet) restart(settings Settings) error {
	for _, server := range k.servers {
		server.Stop()
	}
	k.servers = nil
	if !settings.Serve {
		return nil
	}
	if settings.PodsAPI {
		if err := k.serve("pods-api.sock", settings, func(s *grpc.Server) { pods.RegisterPodsServer(s, k) }); err != nil {
			return err
		}
	}
	return k.serve("kubelet.sock", settings, func(s *grpc.Server) { resources.RegisterPodResourcesListerServer(s, k) })
}

func (k *kubelet) take(line []byte) error {
	var next State
	if err := json.Unmarshal(line, &next); err != nil {
		return err
	}
	k.mutex.Lock()
	before := k.state.Settings
	k.state = next
	close(k.changed)
	k.changed = make(chan struct{})
	k.mutex.Unlock()
	if before == next.Settings {
		return nil
	}
	return k.restart(next.Settings)
}

func main() {
	k := &kubelet{folder: os.Args[1], changed: make(chan struct{})}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		if err := k.take(lines.Bytes()); err != nil {
			log.Fatal(err)
		}
		fmt.Println("ok")
	}
}
