package cri_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

// A restoring is a fake with a checkpoint of a pod that has been removed, and the pod that is restored from it.
type restoring struct {
	*fakeCRI
	dirs  string // of agents
	dir   string // of the checkpoint
	asked int    // calls of Providers.RestoreFrom
	fail  error  // of the next ones
	pod   *v1.Pod
}

// onCheckpoint calls test with a checkpoint of a pod whose containers are as old as a minute.
func onCheckpoint(t *testing.T, test func(t *testing.T, r *restoring)) {
	r := &restoring{fakeCRI: newFake(), dirs: t.TempDir(), dir: t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		r.has("img:1")
		rt, _ := r.agent(t, cri.Config{})
		pod := podOf(greeting("web"), container("log"))
		pod.Spec.InitContainers = []v1.Container{container("setup"), sidecar("proxy")}
		r.pod = pod.DeepCopy()
		r.pod.Name, r.pod.UID = "copy", "u-2"
		for range 3 {
			syncs(t, rt, pod)
			_ = r.mem.Exit("u-1", "setup", 0) // it runs once
		}
		require.Equal(t, []string{"log", "proxy", "web"}, r.running())
		time.Sleep(time.Minute)
		require.NoError(t, rt.CheckpointPod(t.Context(), pod, r.dir))
		require.Equal(t, []string{"log", "proxy", "web"}, r.running())
		r.forgets()
		r.did()
		test(t, r)
	})
}

// agent returns a Runtime that has the state of the one before it.
func (r *restoring) agent(t *testing.T, cfg cri.Config) (*cri.Runtime, *events) {
	t.Helper()
	seen := new(events)
	if cfg.Runtime == nil {
		cfg.Runtime = r.fakeCRI
	}
	cfg.Name, cfg.Images, cfg.Record = "fake", r.fakeCRI, seen.record
	cfg.Dirs.Root, cfg.Dirs.PodLogs = r.dirs+"/root", r.dirs+"/logs"
	cfg.Providers.RestoreFrom = func(pod *v1.Pod) (string, error) {
		if pod.UID != "u-2" {
			return "", nil
		}
		r.asked++
		return r.dir, r.fail
	}
	rt, err := cri.New(cfg)
	require.NoError(t, err)
	return rt, seen
}

// fails calls SyncPod, which must fail.
func (r *restoring) fails(t *testing.T, rt *cri.Runtime) (runtime.SyncResult, error) {
	t.Helper()
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: r.pod})
	require.Error(t, err)
	return res, err
}

// interrupted calls SyncPod with a context that is done with the n-th call of op, which has its effect.
func (r *restoring) interrupted(t *testing.T, rt *cri.Runtime, op string, n int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.after = func(o, _ string) error {
		if o != op {
			return nil
		}
		if n--; n > 0 {
			return nil
		}
		cancel()
		return errLost
	}
	_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: r.pod})
	require.ErrorIs(t, err, context.Canceled)
	r.after = nil
}

// restored are the calls of a restore.
var restored = []string{
	"ImageStatus img:1", "ImageStatus img:1", "ImageStatus img:1",
	"RestorePod u-2", "StartContainer proxy", "StartContainer web", "ExecSync web", "StartContainer log",
}

func TestAPodIsRestored(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		rt, seen := r.agent(t, cri.Config{})
		res := syncs(t, rt, r.pod)
		assert.Equal(t, restored, r.did(), "no init container, no new sandbox or container; the postStart hook runs, as of each new instance")
		assert.Equal(t, []string{"log", "proxy", "web"}, r.running())
		assert.Equal(t, []runtime.Action{
			{Kind: runtime.CreatePodSandbox, Target: "copy_prod"}, {Kind: runtime.InitContainer, Target: "proxy"},
			{Kind: runtime.StartContainer, Target: "web"}, {Kind: runtime.StartContainer, Target: "log"},
		}, res.Actions)
		pulled := `: Container image "img:1" already present on machine and can be accessed by the pod`
		assert.Equal(t, []string{
			"Normal Pulled spec.initContainers{proxy}" + pulled, "Normal Pulled spec.containers{web}" + pulled, "Normal Pulled spec.containers{log}" + pulled,
			"Normal Started spec.initContainers{proxy}: Container started", "Normal Started spec.containers{web}: Container started",
			"Normal Started spec.containers{log}: Container started", "Normal RestoreSucceeded : Pod restored from a checkpoint",
		}, seen.take())
		st, err := rt.PodStatus(t.Context(), "u-2")
		require.NoError(t, err)
		require.Len(t, st.Containers, 3)
		for _, c := range st.Containers {
			assert.Zero(t, c.RestartCount)
		}
		web := r.newest("web").Config
		assert.Equal(t, types.UID("u-2"), types.UID(web.Labels["io.kubernetes.pod.uid"]))
		require.NotEmpty(t, web.Mounts)
		assert.Equal(t, "/etc/hosts", web.Mounts[0].ContainerPath)
		hosts, err := os.ReadFile(web.Mounts[0].HostPath)
		require.NoError(t, err)
		assert.Contains(t, string(hosts), st.IPs[0]+"\tcopy", "it was written when the sandbox had an address")

		syncs(t, rt, r.pod)
		rt, _ = r.agent(t, cri.Config{})
		syncs(t, rt, r.pod)
		assert.Empty(t, r.did())
		assert.Equal(t, 1, r.asked)
	})
}

// A restored container that exits is created from its spec, and so is the pod when its sandbox is lost.
func TestACheckpointIsUsedOnce(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		rt, _ := r.agent(t, cri.Config{})
		syncs(t, rt, r.pod)
		r.did()
		r.exits("log", 1)
		syncs(t, rt, r.pod)
		assert.Equal(t, []string{"ImageStatus img:1", "CreateContainer log", "StartContainer log"}, r.did())

		require.NoError(t, r.mem.KillSandbox("u-2"))
		rt, _ = r.agent(t, cri.Config{})
		syncs(t, rt, r.pod)
		assert.Equal(t, []string{"StopPodSandbox copy/0", "RunPodSandbox u-2", "ImageStatus img:1", "CreateContainer setup", "StartContainer setup"}, r.did()[3:], "after its containers were stopped")
		r.forgets()
		syncs(t, rt, r.pod)
		assert.Contains(t, r.did(), "RunPodSandbox u-2")
		assert.Equal(t, 1, r.asked)
	})
}

func TestAPodWithoutCheckpointIsCreated(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		r.dir = ""
		rt, _ := r.agent(t, cri.Config{})
		syncs(t, rt, r.pod)
		assert.Equal(t, []string{"RunPodSandbox u-2", "ImageStatus img:1", "CreateContainer setup", "StartContainer setup"}, r.did())
		assert.Equal(t, 1, r.asked)
	})
}

// A pod whose checkpoint is not ready waits for it.
func TestAPodWaitsForItsCheckpoint(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		rt, seen := r.agent(t, cri.Config{})
		r.fail = errors.New("checkpoint prod/copy is not complete")
		res, err := r.fails(t, rt)
		require.ErrorIs(t, err, r.fail)
		assert.Equal(t, "CreatePodSandboxError", res.Actions[0].Reason)
		assert.Equal(t, []string{"Warning CheckpointNotReady : Failed to get the checkpoint of the pod: checkpoint prod/copy is not complete"}, seen.take())
		assert.Empty(t, r.did())

		deleted := r.pod.DeepCopy()
		deleted.DeletionTimestamp = new(metav1.Now())
		syncs(t, rt, deleted)

		r.fail = nil
		syncs(t, rt, r.pod)
		assert.Equal(t, restored, r.did())
		assert.Equal(t, 2, r.asked)
	})
}

// The runtime removes what a failed call has created.
func TestARestoreThatFailsIsRepeated(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		rt, seen := r.agent(t, cri.Config{})
		r.before = failing(1, "RestorePod", status.Error(codes.Internal, "criu failed"))
		res, _ := r.fails(t, rt)
		assert.Equal(t, runtime.CreatePodSandbox, res.Actions[0].Kind)
		assert.Contains(t, seen.take(), "Warning FailedCreatePodSandBox : Failed to create pod sandbox: criu failed")
		assert.Empty(t, r.sandboxes())

		r.fail = errors.New("it was removed")
		r.did()
		r.fails(t, rt)
		assert.Empty(t, r.did(), "it is looked for again")
		r.fail = nil
		syncs(t, rt, r.pod)
		assert.Equal(t, restored, r.did())
	})
}

func TestARestoreWithoutResponseIsFound(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		rt, _ := r.agent(t, cri.Config{})
		r.after = failing(1, "RestorePod", errLost)
		syncs(t, rt, r.pod)
		assert.Equal(t, restored, r.did())
		assert.Len(t, r.sandboxes(), 1)
	})
}

// An agent continues what the one before it has begun, at any call.
func TestAnInterruptedRestoreContinues(t *testing.T) {
	for _, call := range []string{"RestorePod", "StartContainer"} {
		for n := 1; n <= 3 && (call == "StartContainer" || n == 1); n++ {
			onCheckpoint(t, func(t *testing.T, r *restoring) {
				rt, _ := r.agent(t, cri.Config{})
				r.interrupted(t, rt, call, n)
				r.fail = errors.New("it was removed when it had been used")
				rt, _ = r.agent(t, cri.Config{})
				syncs(t, rt, r.pod)
				assert.Equal(t, []string{"log", "proxy", "web"}, r.running())
				assert.Len(t, r.sandboxes(), 1)
				assert.Len(t, r.containers(), 3)
				calls := r.did()
				assert.Contains(t, calls, "ExecSync web")
				syncs(t, rt, r.pod)
				assert.Empty(t, r.did())

				r.forgets()
				syncs(t, rt, r.pod)
				assert.Contains(t, r.did(), "CreateContainer setup", "%s %d: the checkpoint was used", call, n)
			})
		}
	}
}

// A pod of which a restored container cannot be started stays Pending, whatever its restart policy is.
func TestARestoreIsRemovedIfAStartFails(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		r.pod.Spec.RestartPolicy = v1.RestartPolicyNever
		rt, _ := r.agent(t, cri.Config{})
		r.before = func(op, name string) error {
			if op == "StartContainer" && name == "web" {
				return status.Error(codes.Internal, "no memory")
			}
			return nil
		}
		res, _ := r.fails(t, rt)
		assert.Equal(t, "RunContainerError", res.Actions[2].Reason)
		assert.Equal(t, append(restored[:6:6], "StopPodSandbox copy/0", "RemovePodSandbox copy/0"), r.did(), "log is not started")
		assert.Empty(t, r.containers())
		assert.Empty(t, r.sandboxes())

		r.before = nil
		syncs(t, rt, r.pod)
		assert.Equal(t, restored, r.did())
		assert.EqualValues(t, 1, r.sandboxes()[0].Attempt)
		for _, c := range r.containers() {
			assert.EqualValues(t, 1, c.Attempt, "%s: restart counts are not used twice, also of a container that was not started", c.Name)
		}
	})
}

// A container whose start had no response may run, and then the restore continues.
func TestARestoreWithAnUnknownStartIsInspected(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		u := &unreadable{fakeCRI: r.fakeCRI}
		rt, _ := r.agent(t, cri.Config{Runtime: u})
		u.down = true
		r.after = failing(1, "StartContainer", errLost)
		r.fails(t, rt)
		assert.Equal(t, []string{"proxy"}, r.running(), "the next ones wait")
		u.down = false
		r.did()
		syncs(t, rt, r.pod)
		assert.Equal(t, []string{"StartContainer web", "ExecSync web", "StartContainer log"}, r.did())
	})
}

// An unreadable is a runtime that does not return the status of a container while it is down.
type unreadable struct {
	*fakeCRI
	down bool
}

func (u *unreadable) ContainerStatus(ctx context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	if u.down {
		return nil, status.Error(codes.Unavailable, "connection refused")
	}
	return u.RuntimeService.ContainerStatus(ctx, id, verbose)
}

// What could not be removed is replaced by a later sync.
func TestAFailedRestoreIsReplaced(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		rt, _ := r.agent(t, cri.Config{})
		r.before = func(op, name string) error {
			if op == "StartContainer" && name == "web" || op == "StopPodSandbox" {
				return status.Error(codes.Internal, "no memory")
			}
			return nil
		}
		r.fails(t, rt)
		r.alter(r.newest("web"), func(s *runtimeapi.ContainerStatus) {
			s.State, s.ExitCode, s.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, 128, time.Now().UnixNano()
		})
		require.Len(t, r.containers(), 3)
		r.before = nil
		r.did()
		syncs(t, rt, r.pod)
		assert.Equal(t, append([]string{"StopContainer proxy", "StopPodSandbox copy/0"}, restored...), r.did())
		assert.Equal(t, []string{"log", "proxy", "web"}, r.running())
	})
}

func TestAnIncompleteRestoreIsReplaced(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		rt, _ := r.agent(t, cri.Config{})
		r.interrupted(t, rt, "RestorePod", 1)
		require.NoError(t, r.mem.RemoveContainer(t.Context(), r.newest("log").ID))
		r.did()
		syncs(t, rt, r.pod)
		assert.Equal(t, append([]string{"StopPodSandbox copy/0"}, restored...), r.did())
		assert.Equal(t, []string{"log", "proxy", "web"}, r.running())
		var ready []uint32
		for _, s := range r.sandboxes() {
			if s.State == fakecri.Ready {
				ready = append(ready, s.Attempt)
			}
		}
		assert.Equal(t, []uint32{1}, ready)
	})
}

// Instances that were removed before they were started are counted.
func TestRestartCountsOfARestoreAreRecorded(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		rt, _ := r.agent(t, cri.Config{})
		r.interrupted(t, rt, "StartContainer", 1)
		r.forgets()
		syncs(t, rt, r.pod)
		for _, c := range r.containers() {
			assert.EqualValues(t, 1, c.Attempt, c.Name)
		}
	})
	onCheckpoint(t, func(t *testing.T, r *restoring) { // also if the response was lost
		rt, _ := r.agent(t, cri.Config{})
		r.interrupted(t, rt, "RestorePod", 1)
		r.before = failing(1, "StartContainer", status.Error(codes.Internal, "no memory"))
		r.fails(t, rt)
		require.Empty(t, r.containers())
		syncs(t, rt, r.pod)
		for _, c := range r.containers() {
			assert.EqualValues(t, 1, c.Attempt, c.Name)
		}
	})
}

// A partial is a runtime whose response to RestorePod is incomplete.
type partial struct {
	*fakeCRI
	change func(*runtimeapi.RestorePodResponse)
	limit  time.Duration
}

func (p *partial) RestorePod(ctx context.Context, req *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	at, _ := ctx.Deadline()
	p.limit = time.Until(at)
	answer, err := p.fakeCRI.RuntimeService.RestorePod(ctx, req)
	if err == nil {
		p.change(answer)
	}
	return answer, err
}

// The instances are listed if the response has not all of them.
func TestAnIncompleteResponseIsVerified(t *testing.T) {
	for name, change := range map[string]func(*runtimeapi.RestorePodResponse){
		"no sandbox":   func(a *runtimeapi.RestorePodResponse) { a.PodSandboxId = "" },
		"no container": func(a *runtimeapi.RestorePodResponse) { a.RestoredContainers[1].ContainerId = "" },
		"another one":  func(a *runtimeapi.RestorePodResponse) { a.RestoredContainers[1].Name = "other" },
		"one more": func(a *runtimeapi.RestorePodResponse) {
			a.RestoredContainers = append(a.RestoredContainers, a.RestoredContainers[0])
		},
		"what is expected": func(*runtimeapi.RestorePodResponse) {},
	} {
		t.Run(name, func(t *testing.T) {
			onCheckpoint(t, func(t *testing.T, r *restoring) {
				p := &partial{fakeCRI: r.fakeCRI, change: change}
				rt, _ := r.agent(t, cri.Config{Runtime: p})
				syncs(t, rt, r.pod)
				assert.Equal(t, []string{"log", "proxy", "web"}, r.running())
				assert.Len(t, r.sandboxes(), 1)
				assert.Equal(t, 4*time.Minute, p.limit)
			})
		})
	}
}

// The images of the containers are pulled before the restore.
func TestARestoreWaitsForImages(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		r.pod.Spec.Containers[1].Image = "img:2"
		r.pull = func(context.Context, string) error { return errors.New("no route") }
		rt, _ := r.agent(t, cri.Config{})
		res, err := r.fails(t, rt)
		require.ErrorContains(t, err, "container log")
		assert.NotContains(t, r.did(), "RestorePod u-2")
		assert.Equal(t, runtime.CreatePodSandbox, res.Actions[0].Kind)
		res, _ = r.fails(t, rt)
		assert.False(t, res.RetryAt.IsZero(), "the end of the back-off of the image")
	})
}

// Managers take part in a restore as in a creation.
func TestManagersTakePartInARestore(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		m := &managers{fail: "start web"}
		rt, _ := r.agent(t, cri.Config{Providers: cri.Providers{Managers: m}})
		r.fails(t, rt)
		assert.Empty(t, r.containers())
		require.Len(t, m.calls, 9)
		assert.Equal(t, []string{"prepare", "create proxy", "create web", "create log", "start proxy", "start web"}, m.calls[:6])
		for _, call := range m.calls[6:] {
			assert.Contains(t, call, "stopped fake://")
		}
	})
}

// The record of a restore is synced: only it has whether the checkpoint is to be used.
func TestTheRecordOfARestore(t *testing.T) {
	onCheckpoint(t, func(t *testing.T, r *restoring) {
		rt, _ := r.agent(t, cri.Config{})
		file := filepath.Join(r.dirs, "root/pods/u-2/runtime.json")
		r.interrupted(t, rt, "RestorePod", 1)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(text), r.dir)
		syncs(t, rt, r.pod)
		text, err = os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(text), r.dir)
		assert.Contains(t, string(text), `"attempts":1`)
	})
}
