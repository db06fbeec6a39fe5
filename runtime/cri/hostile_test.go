package cri_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// Whatever a runtime responds, nothing panics, errors name the operation and the
// object, and foreign containers are left unchanged.
func TestARuntimeWithInvalidResponses(t *testing.T) {
	const (
		noSandbox   = "status of sandbox OURS: the runtime gave no metadata"
		noContainer = "status of container WEB: the runtime gave no metadata"
	)
	each := func(change func(*runtimeapi.Container)) func(w *twister) {
		return func(w *twister) {
			w.containers = func(list []*runtimeapi.Container) []*runtimeapi.Container {
				for _, c := range list {
					change(c)
				}
				return list
			}
		}
	}
	eachSandbox := func(change func(*runtimeapi.PodSandbox)) func(w *twister) {
		return func(w *twister) {
			w.sandboxes = func(list []*runtimeapi.PodSandbox) []*runtimeapi.PodSandbox {
				for _, s := range list {
					change(s)
				}
				return list
			}
		}
	}
	status := func(change func(*runtimeapi.ContainerStatus)) func(w *twister) {
		return func(w *twister) {
			w.containerStatus = func(r *runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse {
				change(r.Status)
				return r
			}
		}
	}
	sandboxStatus := func(change func(*runtimeapi.PodSandboxStatus)) func(w *twister) {
		return func(w *twister) {
			w.sandboxStatus = func(r *runtimeapi.PodSandboxStatusResponse) *runtimeapi.PodSandboxStatusResponse {
				change(r.Status)
				return r
			}
		}
	}
	for _, tc := range []struct {
		name  string
		twist func(*twister)
		want  string // of PodStatus, SyncPod and KillPod; "" is success
	}{
		{"unchanged responses", func(*twister) {}, ""},
		{"nil among the containers", func(w *twister) {
			w.containers = func(l []*runtimeapi.Container) []*runtimeapi.Container {
				return append(l, nil, &runtimeapi.Container{})
			}
		}, ""},
		{"nil among the sandboxes", func(w *twister) {
			w.sandboxes = func(l []*runtimeapi.PodSandbox) []*runtimeapi.PodSandbox {
				return append(l, nil, &runtimeapi.PodSandbox{})
			}
		}, ""},
		{"a sandbox without a namespace", func(w *twister) {
			eachSandbox(func(s *runtimeapi.PodSandbox) {
				s.Metadata = &runtimeapi.PodSandboxMetadata{Name: "web", Uid: "u-1"}
			})(w)
			sandboxStatus(func(s *runtimeapi.PodSandboxStatus) {
				s.Metadata = &runtimeapi.PodSandboxMetadata{Name: "web", Uid: "u-1"}
			})(w)
		}, ""},
		{"everything twice", func(w *twister) {
			w.containers = func(l []*runtimeapi.Container) []*runtimeapi.Container { return append(l, l...) }
			w.sandboxes = func(l []*runtimeapi.PodSandbox) []*runtimeapi.PodSandbox { return append(l, l...) }
		}, ""},
		{"a container without an ID", each(func(c *runtimeapi.Container) { c.Id = "" }), "cri: list containers: sandbox or container without ID"},
		{"a sandbox without an ID", eachSandbox(func(s *runtimeapi.PodSandbox) { s.Id = "" }), "cri: list sandboxes: sandbox or container without ID"},
		{"unknown states", func(w *twister) {
			each(func(c *runtimeapi.Container) { c.State = -7 })(w)
			eachSandbox(func(s *runtimeapi.PodSandbox) { s.State = 99 })(w)
			status(func(s *runtimeapi.ContainerStatus) { s.State = math.MaxInt32 })(w)
		}, ""},
		{"no status of a sandbox", func(w *twister) {
			w.sandboxStatus = func(*runtimeapi.PodSandboxStatusResponse) *runtimeapi.PodSandboxStatusResponse { return nil }
		}, noSandbox},
		{"an empty status of a sandbox", func(w *twister) {
			w.sandboxStatus = func(*runtimeapi.PodSandboxStatusResponse) *runtimeapi.PodSandboxStatusResponse {
				return &runtimeapi.PodSandboxStatusResponse{}
			}
		}, noSandbox},
		{"no metadata of a sandbox", sandboxStatus(func(s *runtimeapi.PodSandboxStatus) { s.Metadata = nil }), noSandbox},
		{"the status of another sandbox", sandboxStatus(func(s *runtimeapi.PodSandboxStatus) { s.Id = "foreign-s" }),
			`status of sandbox OURS: runtime returned the status of "foreign-s"`},
		{"no status of a container", func(w *twister) {
			w.containerStatus = func(*runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse { return nil }
		}, noContainer},
		{"no metadata of a container", status(func(s *runtimeapi.ContainerStatus) { s.Metadata = nil }), noContainer},
		{"the status of another container", status(func(s *runtimeapi.ContainerStatus) { s.Id = "foreign-runs" }),
			`status of container WEB: runtime returned the status of "foreign-runs"`},
		{"invalid addresses", sandboxStatus(func(s *runtimeapi.PodSandboxStatus) {
			s.Network = &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.7", AdditionalIps: []*runtimeapi.PodIP{nil, {Ip: "not one"}}}
		}), ""},
		{"no network, no namespaces, no labels", sandboxStatus(func(s *runtimeapi.PodSandboxStatus) {
			s.Network, s.Linux, s.Labels = nil, nil, nil
		}), ""},
		{"a container with nil fields", status(func(s *runtimeapi.ContainerStatus) {
			s.Labels, s.Annotations, s.Resources = nil, nil, nil
			s.Mounts = []*runtimeapi.Mount{nil, {}}
		}), ""},
		{"a container without an image rt-146", status(func(s *runtimeapi.ContainerStatus) { s.Image = nil }), "the runtime gave no image"},
		{"annotations without values", status(func(s *runtimeapi.ContainerStatus) {
			for k := range s.Annotations {
				s.Annotations[k] = "{\xff["
			}
		}), ""},
		{"minimum times", func(w *twister) {
			each(func(c *runtimeapi.Container) { c.CreatedAt = math.MinInt64 })(w)
			status(func(s *runtimeapi.ContainerStatus) {
				s.CreatedAt, s.StartedAt, s.FinishedAt = -1, math.MinInt64, math.MinInt64
			})(w)
			eachSandbox(func(s *runtimeapi.PodSandbox) { s.CreatedAt = -1 })(w)
		}, ""},
		{"maximum times", func(w *twister) {
			each(func(c *runtimeapi.Container) { c.CreatedAt = math.MaxInt64 })(w)
			status(func(s *runtimeapi.ContainerStatus) {
				s.CreatedAt, s.StartedAt, s.FinishedAt = math.MaxInt64, math.MaxInt64, math.MaxInt64
			})(w)
			eachSandbox(func(s *runtimeapi.PodSandbox) { s.CreatedAt = math.MaxInt64 })(w)
		}, ""},
		{"maximum attempts", func(w *twister) {
			each(func(c *runtimeapi.Container) {
				c.Metadata = &runtimeapi.ContainerMetadata{Name: "web", Attempt: math.MaxUint32}
			})(w)
			sandboxStatus(func(s *runtimeapi.PodSandboxStatus) {
				s.Metadata = &runtimeapi.PodSandboxMetadata{Name: "web", Uid: "u-1", Namespace: "prod", Attempt: math.MaxUint32}
			})(w)
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				untouched := foreigners(f)
				w := &twister{fakeCRI: f}
				rt, _, _ := w.over(t)
				pod := podOf(container("web"))
				f.has("img:1")
				syncs(t, rt, pod)
				web := f.newest("web")
				want := strings.NewReplacer("OURS", web.SandboxID, "WEB", web.ID).Replace(tc.want)
				tc.twist(w)
				l := w.life(t, rt, pod)
				for name, err := range map[string]error{"PodStatus": l.status, "SyncPod": l.sync, "KillPod": l.kill} {
					if want == "" {
						assert.NoError(t, err, name)
					} else {
						assert.ErrorContains(t, err, want, name)
					}
				}
				untouched(t)
			})
		})
	}
}

// A runtime whose responses are all empty goes through a whole pod lifecycle.
func TestARuntimeWithEmptyResponses(t *testing.T) {
	f := newFake()
	w := &twister{
		fakeCRI:         f,
		sandboxes:       func([]*runtimeapi.PodSandbox) []*runtimeapi.PodSandbox { return nil },
		containers:      func([]*runtimeapi.Container) []*runtimeapi.Container { return nil },
		sandboxStatus:   func(*runtimeapi.PodSandboxStatusResponse) *runtimeapi.PodSandboxStatusResponse { return nil },
		containerStatus: func(*runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse { return nil },
		made:            func(string) string { return "" },
	}
	rt, seen, _ := w.over(t)
	l := w.life(t, rt, podOf(container("web")))
	assert.NoError(t, l.pods)
	assert.NoError(t, l.status)
	assert.ErrorContains(t, l.sync, `failed to "CreatePodSandbox" for "web_prod" with CreatePodSandboxError: "the runtime gave the new sandbox no ID"`) // rt-147
	assert.NoError(t, l.kill)
	assert.NoError(t, l.collect)
	assert.Equal(t, []string{"Warning FailedCreatePodSandBox : Failed to create pod sandbox: the runtime gave the new sandbox no ID"}, seen.take())
}

func TestAContainerWithoutAnIDIsNotStarted(t *testing.T) {
	f := newFake()
	f.has("img:1")
	w := &twister{fakeCRI: f}
	w.made = func(id string) string {
		if c := f.newest("web"); c != nil && c.ID == id {
			return ""
		}
		return id
	}
	w.containers = func([]*runtimeapi.Container) []*runtimeapi.Container { return nil }
	rt, _, _ := w.over(t)
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(container("web"))})
	require.ErrorContains(t, err, "the runtime gave the new container no ID") // rt-147
	assert.Equal(t, "CreateContainerError", res.Actions[len(res.Actions)-1].Reason)
	assert.NotContains(t, strings.Join(f.did(), "\n"), "StartContainer")
}

// If a pod has two ready sandboxes, it is not defined which one its containers belong
// to: both are stopped, and a new one is created (4.4).
func TestTwoSandboxesOfOnePodAreReplacedByOne(t *testing.T) {
	f := newFake()
	f.has("img:1")
	untouched := foreigners(f)
	rt, _ := f.engine(t, cri.Config{})
	pod := podOf(container("web"))
	syncs(t, rt, pod)
	twin := f.statusOf(f.newest("web").SandboxID)
	twin.Id = "twin"
	f.put(twin)
	syncs(t, rt, pod)
	ready := 0
	for _, s := range f.sandboxes() {
		if s.State == fakecri.Ready && s.Pod == string(pod.UID) {
			ready++
			assert.EqualValues(t, 1, s.Attempt)
		}
	}
	assert.Equal(t, 1, ready)
	assert.Equal(t, 1, f.atOnce["web"])
	require.Empty(t, syncs(t, rt, pod).Actions, "nothing left to do")
	untouched(t)
}

// A runtime that ignores filters returns the containers of all pods in each list.
func TestARuntimeThatDoesNotFilter(t *testing.T) {
	f := newFake()
	f.has("img:1")
	foreign := foreigners(f)
	w := &twister{fakeCRI: f}
	w.containers = func([]*runtimeapi.Container) []*runtimeapi.Container {
		list, _ := f.ListContainers(t.Context(), nil)
		return list
	}
	w.sandboxes = func([]*runtimeapi.PodSandbox) []*runtimeapi.PodSandbox {
		list, _ := f.ListPodSandbox(t.Context(), nil)
		return list
	}
	rt, _, _ := w.over(t)
	one, other := podOf(container("web")), podOf(container("web"))
	other.UID = "u-2"
	syncs(t, rt, one)
	syncs(t, rt, other)
	require.Empty(t, syncs(t, rt, one).Actions)
	assert.Equal(t, []string{"foreign-runs", "web", "web"}, f.running())
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: one.UID, Pod: one}))
	st, err := rt.PodStatus(t.Context(), other.UID)
	require.NoError(t, err)
	assert.True(t, is(st, "web", runtime.ContainerRunning))
	assert.Len(t, st.Containers, 1)
	require.NoError(t, rt.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(types.UID) bool { return false }}))
	assert.Equal(t, []string{"foreign-runs", "web"}, f.running(), "running containers are not garbage")
	foreign(t)
}

// A container whose last instance has absurd times or an absurd restart count is
// restarted nevertheless.
func TestAContainerWithAnAbsurdHistoryIsRestarted(t *testing.T) {
	for name, change := range map[string]func(*runtimeapi.ContainerStatus){
		"in the year 2262": func(s *runtimeapi.ContainerStatus) {
			s.CreatedAt, s.StartedAt, s.FinishedAt = math.MaxInt64, math.MaxInt64, math.MaxInt64
		},
		"before the epoch": func(s *runtimeapi.ContainerStatus) { s.StartedAt, s.FinishedAt = -5, math.MinInt64 },
		"maximum restart count": func(s *runtimeapi.ContainerStatus) {
			s.Annotations["io.kubernetes.container.restartCount"] = "2147483647"
		},
		"overflowing restart count": func(s *runtimeapi.ContainerStatus) {
			s.Annotations["io.kubernetes.container.restartCount"] = "99999999999999999999"
		},
		"negative restart count": func(s *runtimeapi.ContainerStatus) { s.Annotations["io.kubernetes.container.restartCount"] = "-9" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.has("img:1")
				w := &twister{fakeCRI: f, containerStatus: func(r *runtimeapi.ContainerStatusResponse) *runtimeapi.ContainerStatusResponse {
					if r.Status.State == runtimeapi.ContainerState_CONTAINER_EXITED && r.Status.Id == f.containers()[0].ID {
						change(r.Status)
					}
					return r
				}}
				rt, _, _ := w.over(t)
				pod := podOf(container("web"))
				syncs(t, rt, pod)
				time.Sleep(time.Minute)
				f.exits("web", 1)
				for range 70 { // more than the longest back-off
					_, _ = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
					if len(f.running()) > 0 {
						break
					}
					time.Sleep(10 * time.Second)
				}
				assert.Equal(t, []string{"web"}, f.running())
				st, err := rt.PodStatus(t.Context(), pod.UID)
				require.NoError(t, err)
				require.Len(t, st.Containers, 2)
				count := f.newest("web").Config.Annotations["io.kubernetes.container.restartCount"]
				assert.NotContains(t, count, "-")
				assert.Equal(t, count, fmt.Sprint(f.newest("web").Config.Metadata.Attempt))
			})
		})
	}
}

// The output of a hook is truncated in messages and events.
func TestTheOutputOfAHookIsTruncated(t *testing.T) {
	f := newFake()
	f.has("img:1")
	flood := bytes.Repeat([]byte("\xffx"), 50<<20)
	w := &twister{fakeCRI: f, execOutput: func() ([]byte, []byte, error) { return flood, []byte("the last words"), errors.New("exit 1") }}
	rt, seen, _ := w.over(t)
	web := container("web")
	web.Lifecycle = &v1.Lifecycle{PostStart: execHook("x"), PreStop: execHook("x")}
	pod := podOf(web)
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
	require.Error(t, err)
	last := res.Actions[len(res.Actions)-1]
	require.Equal(t, "PostStartHookError", last.Reason)
	assert.Contains(t, last.Message, "the last words")
	assert.Less(t, len(last.Message), 64<<10)
	assert.Less(t, len(err.Error()), 128<<10)
	for _, e := range seen.take() {
		assert.Less(t, len(e), 64<<10)
	}
}

// Error messages of a runtime are truncated to sizes that the API accepts.
func TestARuntimeWithHugeErrorMessages(t *testing.T) {
	flood := strings.Repeat("é", 4<<20)
	for _, op := range []string{"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer"} {
		for _, err := range []error{
			status.Error(codes.NotFound, "failed:"+flood+"no space"), fmt.Errorf("failed:%sno space: %w", flood, runtime.ErrNotFound),
		} {
			f := newFake()
			if op != "PullImage" {
				f.has("img:1")
			}
			rt, seen := f.engine(t, cri.Config{})
			pod := podOf(container("web"))
			f.before = func(did, _ string) error {
				if did == op {
					return err
				}
				return nil
			}
			res, got := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.ErrorIs(t, got, runtime.ErrNotFound, op)
			assert.Less(t, len(got.Error()), 32<<10, op)
			failed := 0
			for _, a := range res.Actions {
				if a.Err != nil {
					failed++
					assert.LessOrEqual(t, len(a.Message), 4<<10, op)
					assert.Contains(t, a.Message, "failed:é", op)
					assert.Contains(t, a.Message, "no space", op)
					assert.True(t, utf8.ValidString(a.Message), op)
				}
			}
			assert.NotZero(t, failed)
			seen.mu.Lock()
			for _, e := range seen.list {
				assert.LessOrEqual(t, len(e.Message), 1024, op)
				assert.True(t, utf8.ValidString(e.Message), op)
			}
			assert.NotEmpty(t, seen.list)
			seen.mu.Unlock()
		}
	}
}
