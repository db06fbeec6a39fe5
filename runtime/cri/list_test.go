package cri_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

var listEpoch = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// found returns the statuses of a sandbox of pod uid, created the given number of
// minutes after the epoch, and of its containers: "web/1 exited" is an exited instance
// of web with attempt 1; each was created a minute after the previous one.
func found(uid, id string, attempt uint32, minute int, containers ...string) (*runtimeapi.PodSandboxStatus, []*runtimeapi.ContainerStatus) {
	at := listEpoch.Add(time.Duration(minute) * time.Minute)
	labels := map[string]string{
		"io.kubernetes.pod.uid": uid, "io.kubernetes.pod.name": "pod-" + uid, "io.kubernetes.pod.namespace": "ns",
	}
	s := &runtimeapi.PodSandboxStatus{
		Id: id, CreatedAt: at.UnixNano(), Labels: labels, Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.1.1.1"},
		Metadata: &runtimeapi.PodSandboxMetadata{Uid: uid, Name: "pod-" + uid, Namespace: "ns", Attempt: attempt},
	}
	var list []*runtimeapi.ContainerStatus
	for i, spec := range containers {
		spec, state, _ := strings.Cut(spec, " ")
		name, n, _ := strings.Cut(spec, "/")
		image := &runtimeapi.ImageSpec{Image: "img:1"}
		list = append(list, &runtimeapi.ContainerStatus{
			Id: id + "-" + spec, CreatedAt: at.Add(time.Duration(i+1) * time.Minute).UnixNano(),
			State:    runtimeapi.ContainerState(runtimeapi.ContainerState_value["CONTAINER_"+strings.ToUpper(state)]), // none: created
			Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: uint32(n[0] - '0')},
			Image:    image, ImageRef: image.Image, ImageId: image.Image,
			Labels:      labels,
			Annotations: map[string]string{"io.kubernetes.container.restartCount": n},
		})
	}
	return s, list
}

// holds adds a sandbox with its containers to f.
func (f *fakeCRI) holds(uid, id string, attempt uint32, minute int, containers ...string) {
	s, list := found(uid, id, attempt, minute, containers...)
	f.put(s, list...)
}

// held is holds for a sandbox that is not ready.
func (f *fakeCRI) held(uid, id string, attempt uint32, minute int, containers ...string) {
	s, list := found(uid, id, attempt, minute, containers...)
	s.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	f.put(s, list...)
}

// shown formats pods as "a: s1 s0 | web web", in the order of the list.
func shown(pods []*runtime.Pod) string {
	var lines []string
	for _, p := range pods {
		line := p.Name + ":"
		for _, s := range p.Sandboxes {
			line += " " + s.ID
		}
		line += " |"
		for _, c := range p.Containers {
			line += " " + strings.TrimPrefix(c.ID, "fake://")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestHowPodsAreListed(t *testing.T) {
	for _, tc := range []struct {
		name  string
		world func(*twister)
		want  string
	}{
		{"rt-1 sandboxes and containers of one UID are a pod", func(f *twister) {
			f.holds("a", "s1", 0, 0, "web/0")
			s, webs := found("b", "s2", 0, -1, "web/0")
			webs[0].Labels = f.fakeCRI.sandboxes()[0].Config.Labels // the label determines the owner
			f.put(s, webs...)
		}, "pod-a: s1 | s1-web/0 s2-web/0\npod-b: s2 |"},
		{"rt-2 the newest pod comes first", func(f *twister) {
			f.holds("a", "s1", 0, 0)
			f.holds("b", "s2", 0, 2)
			f.holds("c", "s3", 0, 1)
		}, "pod-b: s2 |\npod-c: s3 |\npod-a: s1 |"},
		{"rt-3 sandboxes by attempt, then by age, then by ID", func(f *twister) {
			f.holds("a", "s1", 1, 0)
			f.holds("a", "s5", 0, 9)
			f.holds("a", "s4", 0, 9)
			f.holds("a", "s2", 0, 10)
			f.holds("a", "s3", 2, -5)
		}, "pod-a: s3 s1 s2 s4 s5 |"},
		{"rt-3 containers by age, then by ID", func(f *twister) {
			s, list := found("a", "s1", 0, 0, "web/0", "db/0", "web/1")
			list[0].CreatedAt = list[1].CreatedAt
			f.put(s, list...)
		}, "pod-a: s1 | s1-web/1 s1-db/0 s1-web/0"},
		{"rt-4 a sandbox without metadata", func(f *twister) {
			f.holds("a", "s1", 0, 0)
			s, _ := found("b", "s2", 0, 0)
			s.Metadata = nil
			f.put(s)
		}, "pod-a: s1 |"},
		{"rt-4 a container without metadata", func(f *twister) {
			s, webs := found("a", "s1", 0, 0, "web/0")
			webs[0].Metadata = nil
			f.put(s, webs...)
		}, "pod-a: s1 |"},
		{"rt-6 containers whose sandbox is gone", func(f *twister) {
			f.holds("a", "s1", 0, 0, "web/0")
			f.sandboxes = func([]*runtimeapi.PodSandbox) []*runtimeapi.PodSandbox { return nil }
		}, "pod-a: | s1-web/0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &twister{fakeCRI: newFake()}
			tc.world(w)
			rt, _, _ := w.over(t)
			pods, err := rt.Pods(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tc.want, shown(pods))
		})
	}
}

// The list is sufficient to determine the running containers: it contains states (rt-5).
func TestAListContainsStates(t *testing.T) {
	f := newFake()
	f.holds("a", "s1", 0, 0, "created/0", "running/0 running", "exited/0 exited", "unknown/0 unknown")
	f.held("a", "s0", 1, 0)
	rt, _ := f.engine(t, cri.Config{})
	pods, err := rt.Pods(t.Context())
	require.NoError(t, err)
	require.Len(t, pods, 1)
	for _, c := range pods[0].Containers {
		assert.Equal(t, c.Name, c.State.String())
	}
	assert.Equal(t, runtime.SandboxNotReady, pods[0].Sandboxes[0].State)
	assert.Equal(t, runtime.SandboxReady, pods[0].Sandboxes[1].State)
}

// A recording has sorted lists: a replay must make the same requests.
func TestTheOrderOfInspectionsIsNotThatOfTheLists(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		w := &twister{fakeCRI: newFake()}
		w.holds("a", "s1", 0, 0, "db/0 running", "web/0 running", "web/1 running")
		w.held("a", "s0", 1, -9)
		var inspected []string
		w.sandboxes = func(list []*runtimeapi.PodSandbox) []*runtimeapi.PodSandbox {
			if reverse {
				slices.Reverse(list)
			}
			return list
		}
		w.containers = func(list []*runtimeapi.Container) []*runtimeapi.Container {
			if reverse {
				slices.Reverse(list)
			}
			return list
		}
		w.sandboxStatus = func(s *runtimeapi.PodSandboxStatusResponse) *runtimeapi.PodSandboxStatusResponse {
			inspected = append(inspected, s.Status.Id)
			return s
		}
		w.containerStatus = func(s *runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse {
			inspected = append(inspected, s.Status.Id)
			return s
		}
		rt, _, _ := w.over(t)
		_, err := rt.PodStatus(t.Context(), "a")
		require.NoError(t, err)
		assert.Equal(t, []string{"s1", "s0", "s1-web/1", "s1-web/0", "s1-db/0"}, inspected)
	}
}

// The source of a pod is listed, so that static pods of a changed manifest can be
// terminated while the API server is not reachable.
func TestAListContainsTheSourceOfAPod(t *testing.T) {
	f := newFake()
	s, _ := found("a", "s0", 0, 0)
	s.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	f.put(s)
	f.holds("b", "s1", 0, 1)
	rt, _ := f.engine(t, cri.Config{})
	pods, err := rt.Pods(t.Context())
	require.NoError(t, err)
	require.Len(t, pods, 2)
	sources := map[string]string{}
	for _, p := range pods {
		sources[p.Name] = p.Source
		status, err := rt.PodStatus(t.Context(), p.UID)
		require.NoError(t, err)
		assert.Equal(t, p.Source, status.Pod().Source)
	}
	assert.Equal(t, map[string]string{"pod-a": "file", "pod-b": ""}, sources)
}

func TestObservedAtIsBeforeTheFirstRead(t *testing.T) { // rt-2
	f := newFake()
	w := &twister{fakeCRI: f}
	f.holds("a", "s1", 0, 0)
	var listed time.Time
	w.sandboxes = func(list []*runtimeapi.PodSandbox) []*runtimeapi.PodSandbox {
		listed = time.Now()
		return list
	}
	rt, _, _ := w.over(t)
	st, err := rt.PodStatus(t.Context(), "a")
	require.NoError(t, err)
	assert.False(t, st.ObservedAt.After(listed))
	assert.Less(t, listed.Sub(st.ObservedAt), time.Minute)
}

func TestWhichAddressesAPodHas(t *testing.T) { // rt-8
	network := func(ip string, more ...string) *runtimeapi.PodSandboxNetworkStatus {
		n := &runtimeapi.PodSandboxNetworkStatus{Ip: ip}
		for _, m := range more {
			n.AdditionalIps = append(n.AdditionalIps, &runtimeapi.PodIP{Ip: m})
		}
		return n
	}
	for _, tc := range []struct {
		name    string
		network *runtimeapi.PodSandboxNetworkStatus
		down    bool // the newest sandbox
		want    []string
	}{
		{"rt-8 the primary one first", network("10.0.0.7", "fd00::7", "10.0.0.8"), false, []string{"10.0.0.7", "fd00::7", "10.0.0.8"}},
		{"rt-8 of the newest sandbox if it is ready", network("10.0.0.7"), true, nil},
		{"rt-8 an invalid address drops all", network("10.0.0.7", "fd00::7", "localhost"), false, nil},
		{"rt-8 also the primary one", network("10.0.0.777", "fd00::7"), false, nil},
		{"rt-8 no primary one", network("", "fd00::7"), false, nil},
		{"rt-8 no network", nil, false, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			w := &twister{fakeCRI: f}
			f.holds("a", "old", 0, 5)
			if tc.down {
				f.held("a", "new", 1, 0)
			} else {
				f.holds("a", "new", 1, 0)
			}
			w.sandboxStatus = func(r *runtimeapi.PodSandboxStatusResponse) *runtimeapi.PodSandboxStatusResponse {
				r.Status.Network = network("192.0.2.1")
				if r.Status.Id == "new" {
					r.Status.Network = tc.network
				}
				return r
			}
			rt, _, _ := w.over(t)
			st, err := rt.PodStatus(t.Context(), "a")
			require.NoError(t, err)
			assert.Equal(t, tc.want, st.IPs)
		})
	}
}

func TestContainerStatusFields(t *testing.T) {
	begun, ended := listEpoch.Add(time.Hour), listEpoch.Add(2*time.Hour)
	for _, tc := range []struct {
		name   string
		state  runtimeapi.ContainerState
		change func(*runtimeapi.ContainerStatus)
		want   runtime.ContainerStatus
	}{
		{"rt-11 created", runtimeapi.ContainerState_CONTAINER_CREATED, nil, runtime.ContainerStatus{State: runtime.ContainerCreated}},
		{"rt-11 running", runtimeapi.ContainerState_CONTAINER_RUNNING, nil, runtime.ContainerStatus{State: runtime.ContainerRunning, StartedAt: begun}},
		{"rt-11 unknown", runtimeapi.ContainerState_CONTAINER_UNKNOWN, nil, runtime.ContainerStatus{State: runtime.ContainerUnknown, StartedAt: begun}},
		{"rt-11 exited", runtimeapi.ContainerState_CONTAINER_EXITED, nil, runtime.ContainerStatus{
			State: runtime.ContainerExited, StartedAt: begun, FinishedAt: ended, ExitCode: 3, Reason: "Error", Message: "why",
		}},
		{"rt-12 the image by its ID", runtimeapi.ContainerState_CONTAINER_CREATED, func(s *runtimeapi.ContainerStatus) {
			s.ImageId, s.ImageRef = "sha256:1", "docker.io/img@sha256:2"
		}, runtime.ContainerStatus{State: runtime.ContainerCreated, ImageID: "sha256:1", ImageRef: "docker.io/img@sha256:2"}},
		{"what asks it to stop", runtimeapi.ContainerState_CONTAINER_CREATED, func(s *runtimeapi.ContainerStatus) {
			s.StopSignal = runtimeapi.Signal_SIGNAL_SIGRTMINPLUS3
		}, runtime.ContainerStatus{State: runtime.ContainerCreated, StopSignal: "SIGRTMIN+3"}},
		{"rt-12 or by its reference", runtimeapi.ContainerState_CONTAINER_CREATED, func(s *runtimeapi.ContainerStatus) {
			s.ImageId, s.ImageRef = "", "docker.io/img@sha256:2"
		}, runtime.ContainerStatus{State: runtime.ContainerCreated, ImageID: "docker.io/img@sha256:2", ImageRef: "docker.io/img@sha256:2"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			w := &twister{fakeCRI: f}
			s, webs := found("a", "s1", 0, 0, "web/2")
			webs[0].State = tc.state
			f.put(s, webs...)
			w.containerStatus = func(r *runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse {
				s := r.Status // a runtime may set every field in every state
				s.StartedAt, s.FinishedAt, s.ExitCode, s.Reason, s.Message = begun.UnixNano(), ended.UnixNano(), 3, "Error", "why"
				if tc.change != nil {
					tc.change(s)
				}
				return r
			}
			rt, _, _ := w.over(t)
			st, err := rt.PodStatus(t.Context(), "a")
			require.NoError(t, err)
			require.Len(t, st.Containers, 1)
			got := st.Containers[0]
			want := tc.want
			want.ID, want.Name, want.SandboxID, want.RestartCount, want.CreatedAt = "fake://s1-web/2", "web", "s1", 2, got.CreatedAt
			want.Image, want.LogPath = "img:1", got.LogPath
			want.User = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{SupplementalGroups: []int64{0}}}
			if want.StopSignal == "" {
				want.StopSignal = v1.SIGTERM
			}
			if want.ImageID == "" {
				want.ImageID, want.ImageRef = "img:1", "img:1"
			}
			assert.True(t, want.StartedAt.Equal(got.StartedAt) && want.FinishedAt.Equal(got.FinishedAt))
			want.StartedAt, want.FinishedAt = got.StartedAt, got.FinishedAt
			assert.Equal(t, want, got)
		})
	}
}

// The newest instance made is the state of its container, whatever it does, and
// one that runs counts all the same (rt-10).
func TestInstancesAreInTheOrderOfTheirMaking(t *testing.T) {
	f := newFake()
	f.holds("a", "s1", 0, 0, "web/0 running", "web/1", "web/2")
	rt, _ := f.engine(t, cri.Config{})
	st, err := rt.PodStatus(t.Context(), "a")
	require.NoError(t, err)
	for i, want := range []int32{2, 1, 0} {
		assert.Equal(t, want, st.Containers[i].RestartCount)
	}
	assert.Equal(t, runtime.ContainerCreated, st.Container("web").State)
	assert.True(t, st.Running())
}
