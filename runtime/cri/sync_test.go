package cri_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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

func TestSyncPodMakesOneStepAtATime(t *testing.T) {
	f := newFake()
	f.has("img:1")
	rt, seen := f.engine(t, cri.Config{})
	pod := podOf(container("web"), container("log"))
	pod.Spec.InitContainers = []v1.Container{container("setup"), sidecar("proxy")}

	res := syncs(t, rt, pod)
	require.Len(t, res.Actions, 2)
	assert.Equal(t, runtime.CreatePodSandbox, res.Actions[0].Kind)
	assert.Equal(t, "web_prod", res.Actions[0].Target)
	assert.Equal(t, "setup", res.Actions[1].Target)
	assert.Equal(t, []string{"RunPodSandbox u-1", "ImageStatus img:1", "CreateContainer setup", "StartContainer setup"}, f.did())
	assert.Equal(t, []string{ // rt-78, rt-79, rt-80, rt-81
		`Normal Pulled spec.initContainers{setup}: Container image "img:1" already present on machine and can be accessed by the pod`,
		`Normal Created spec.initContainers{setup}: Container created`,
		`Normal Started spec.initContainers{setup}: Container started`,
	}, seen.take())

	require.Empty(t, syncs(t, rt, pod).Actions, "setup still runs")
	f.exits("setup", 0)
	syncs(t, rt, pod)
	assert.Equal(t, []string{"proxy"}, f.running())
	syncs(t, rt, pod)
	assert.Equal(t, []string{"log", "proxy", "web"}, f.running())
	require.Empty(t, syncs(t, rt, pod).Actions, "nothing left to do")

	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
	require.Empty(t, f.running())
	st, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	assert.Len(t, st.Containers, 4, "exited containers are kept")
	assert.False(t, st.Running())
	require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: "unknown"}))
}

// Whichever call fails or loses its response, at most one instance of the container runs
// at any time, and afterwards exactly one does.
func TestALostResponseDoesNotStartASecondInstance(t *testing.T) {
	for _, op := range []string{"RunPodSandbox", "CreateContainer", "StartContainer"} {
		for _, lost := range []bool{true, false} {
			for _, err := range []error{errLost, errors.New("a plain error")} {
				t.Run(fmt.Sprintf("%s effect=%v %v", op, lost, err), func(t *testing.T) {
					f := newFake()
					f.has("img:1")
					rt, _ := f.engine(t, cri.Config{})
					pod := podOf(container("web"))
					fault := failing(1, op, err)
					if lost {
						f.after = fault
					} else {
						f.before = fault
					}
					for range 4 {
						_, _ = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
					}
					assert.Equal(t, []string{"web"}, f.running())
					assert.Equal(t, 1, f.atOnce["web"])
					assert.Len(t, f.containers(), 1, "nothing is created twice")
					assert.Len(t, f.sandboxes(), 1)
					assert.Zero(t, f.containers()[0].Config.Metadata.Attempt, "the attempt does not change")
					assert.Empty(t, syncs(t, rt, pod).Actions)
				})
			}
		}
	}
}

// The response of a create is lost, and the status was read before the create took
// effect.
func TestANameThatIsTakenIsLookedUp(t *testing.T) {
	f := newFake()
	f.has("img:1")
	rt, _ := f.engine(t, cri.Config{})
	pod := podOf(container("web"))
	before, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	f.before = failing(1, "StartContainer", errLost)
	_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Status: before})
	require.Error(t, err)
	require.Len(t, f.containers(), 1)

	empty, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	empty.Containers = nil // as in a status read just before the container was created
	_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Status: empty})
	require.NoError(t, err)
	assert.Equal(t, []string{"web"}, f.running())
	assert.Len(t, f.containers(), 1)

	// With a stale status, SyncPod must not start a second instance of a running
	// container.
	_, _ = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod, Status: empty})
	assert.Equal(t, 1, f.atOnce["web"])
	assert.Len(t, f.containers(), 1)
}

func TestAFailedStartIsReportedWithTheReasonOfTheAPI(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(*fakeCRI, *v1.Pod)
		reason  string
		message string
		events  []string // the warnings
	}{
		{"create", func(f *fakeCRI, _ *v1.Pod) {
			f.before = failing(9, "CreateContainer", status.Error(codes.Unknown, "no space left"))
		}, "CreateContainerError", "no space left", []string{"Warning Failed spec.containers{web}: Error: no space left"}},
		{"start", func(f *fakeCRI, _ *v1.Pod) {
			f.before = failing(9, "StartContainer", status.Error(codes.Unknown, "exec: no such file"))
		}, "RunContainerError", "exec: no such file", []string{"Warning Failed spec.containers{web}: Error: exec: no such file"}},
		{"volume", func(_ *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{{Name: "data", MountPath: "/data"}}
		}, "CreateContainerConfigError", `volume "data"`, nil},
		{"env pe-6", func(_ *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Env = []v1.EnvVar{{Name: "A", ValueFrom: &v1.EnvVarSource{
				SecretKeyRef: &v1.SecretKeySelector{LocalObjectReference: v1.LocalObjectReference{Name: "s"}, Key: "k"}}}}
		}, "CreateContainerConfigError", "couldn't get secret prod/s, no kubeClient defined", nil},
		{"non-root se-5", func(_ *fakeCRI, p *v1.Pod) {
			p.Spec.SecurityContext.RunAsNonRoot = new(true)
		}, "CreateContainerConfigError", `container has runAsNonRoot and image will run as root (pod: "web_prod(u-1)", container: web)`, nil},
		{"image name img-1", func(_ *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Image = "Not A Name"
		}, "InvalidImageName", `couldn't parse image name "Not A Name"`, nil},
		{"never img-3", func(_ *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Image = "absent:1"
			p.Spec.Containers[0].ImagePullPolicy = v1.PullNever
		}, "ErrImageNeverPull", `Container image "absent:1" is not present with pull policy of Never`, []string{
			`Warning ErrImageNeverPull spec.containers{web}: Container image "absent:1" is not present with pull policy of Never`,
			"Warning Failed spec.containers{web}: Error: ErrImageNeverPull",
		}},
		{"inspect img-2", func(f *fakeCRI, _ *v1.Pod) {
			f.before = failing(9, "ImageStatus", status.Error(codes.Unknown, "disk"))
		}, "ImageInspectError", `Failed to inspect image "img:1": rpc error: code = Unknown desc = disk`, []string{
			`Warning InspectFailed spec.containers{web}: Failed to inspect image "img:1": rpc error: code = Unknown desc = disk`,
			"Warning Failed spec.containers{web}: Error: ImageInspectError",
		}},
		{"pull img-8", func(f *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Image = "absent:1"
			f.pull = func(context.Context, string) error { return errors.New("no such host") }
		}, "ErrImagePull", "no such host", []string{
			`Warning Failed spec.containers{web}: Failed to pull image "absent:1": no such host`,
			"Warning Failed spec.containers{web}: Error: ErrImagePull",
		}},
		{"registry img-9", func(f *fakeCRI, p *v1.Pod) {
			p.Spec.Containers[0].Image = "absent:1"
			f.pull = func(context.Context, string) error { return errors.New("RegistryUnavailable: 503") }
		}, "RegistryUnavailable", "503", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			f.has("img:1")
			rt, seen := f.engine(t, cri.Config{})
			pod := podOf(container("web"), container("other"))
			tc.change(f, pod)
			pod.Spec.Containers = pod.Spec.Containers[:1]
			res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.Error(t, err)
			require.Len(t, res.Actions, 2)
			a := res.Actions[1]
			assert.Equal(t, runtime.StartContainer, a.Kind)
			assert.Equal(t, tc.reason, a.Reason)
			assert.Contains(t, a.Message, tc.message)
			var warnings []string
			for _, ev := range seen.take() {
				if strings.HasPrefix(ev, "Warning") {
					warnings = append(warnings, ev)
				}
			}
			if tc.events != nil {
				assert.Equal(t, tc.events, warnings)
			} else {
				assert.NotEmpty(t, warnings)
			}
		})
	}
}

func TestASandboxThatCannotBeMadeStopsTheStep(t *testing.T) {
	f := newFake()
	rt, seen := f.engine(t, cri.Config{})
	f.before = failing(9, "RunPodSandbox", status.Error(codes.Unknown, "no IP"))
	res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(container("web"))})
	require.ErrorContains(t, err, `failed to "CreatePodSandbox" for "web_prod" with CreatePodSandboxError: "no IP"`)
	require.Len(t, res.Actions, 1)
	assert.Equal(t, []string{"Warning FailedCreatePodSandBox : Failed to create pod sandbox: no IP"}, seen.take()) // rt-24
}

func TestOneContainerThatCannotStartDoesNotHoldUpTheOthers(t *testing.T) {
	f := newFake()
	f.has("img:1")
	rt, _ := f.engine(t, cri.Config{})
	bad := container("bad")
	bad.ImagePullPolicy, bad.Image = v1.PullNever, "absent:1"
	_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: podOf(bad, container("good"))})
	require.Error(t, err)
	assert.Equal(t, []string{"good"}, f.running())
}

func TestPullsAreSerializedAndCanBeCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		pulling, most := 0, 0
		f.pull = func(ctx context.Context, _ string) error {
			f.mu.Lock()
			pulling++
			most = max(most, pulling)
			f.mu.Unlock()
			defer func() { f.mu.Lock(); pulling--; f.mu.Unlock() }()
			select {
			case <-time.After(time.Hour):
				return nil
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			}
		}
		rt, _ := f.engine(t, cri.Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		errs := make(chan error, 3)
		for _, uid := range []types.UID{"a", "b", "c"} {
			pod := podOf(container("web"))
			pod.UID = uid
			pod.Spec.Containers[0].Image = "img:" + string(uid) // one image would be one pull
			go func() {
				_, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod})
				errs <- err
			}()
		}
		for range 3 {
			require.ErrorIs(t, <-errs, context.DeadlineExceeded)
		}
		require.Equal(t, time.Minute, time.Since(begun), "an end of ctx is not waited for (lq-8)")
		synctest.Wait()
		require.Equal(t, 1, most)

		// A canceled pull is not a failure, and there is no back-off.
		f.pull = nil
		pod := podOf(container("web"))
		pod.UID = "a"
		pod.Spec.Containers[0].Image = "img:a"
		syncs(t, rt, pod)
		require.Equal(t, []string{"web"}, f.running())
	})
}

func TestASandboxThatDiedIsReplaced(t *testing.T) {
	f := newFake()
	f.has("img:1")
	rt, seen := f.engine(t, cri.Config{})
	pod := podOf(container("web"))
	syncs(t, rt, pod)
	seen.take()
	require.NoError(t, f.StopPodSandbox(t.Context(), f.sandboxes()[0].ID))
	syncs(t, rt, pod)
	assert.Equal(t, []string{"web"}, f.running())
	require.Len(t, f.sandboxes(), 2)
	assert.EqualValues(t, 1, f.sandboxes()[1].Config.Metadata.Attempt)
	assert.Contains(t, seen.take(), "Normal SandboxChanged : Pod sandbox changed, it will be killed and re-created.") // rt-26
}

func TestAnotherImageReplacesTheContainer(t *testing.T) {
	f := newFake()
	f.has("img:1", "img:2")
	rt, seen := f.engine(t, cri.Config{})
	pod := podOf(container("web"), container("log"))
	syncs(t, rt, pod)
	seen.take()
	pod = pod.DeepCopy()
	pod.Spec.Containers[0].Image = "img:2"
	syncs(t, rt, pod)
	assert.Equal(t, []string{"log", "web"}, f.running())
	assert.Equal(t, "img:2", f.newest("web").Config.Image.UserSpecifiedImage)
	assert.Contains(t, seen.take(), "Normal Killing spec.containers{web}: Container web definition changed, will be restarted") // rt-30
}

// The numbers of instances that were collected are read from the log directory
// (rt-75).
func TestRestartCountsContinueFromTheLogs(t *testing.T) {
	f := newFake()
	f.has("img:1")
	dir := t.TempDir()
	rt, err := cri.New(cri.Config{Name: "fake", Runtime: f, Images: f, Dirs: cri.Dirs{Root: dir, PodLogs: dir, ContainerLogs: dir + "/links"}})
	require.NoError(t, err)
	logs := dir + "/prod_web_u-1/web"
	require.NoError(t, os.MkdirAll(logs, 0o755))
	for _, name := range []string{"4.log", "11.log.20260101-000000.gz", "12.log"} {
		require.NoError(t, os.WriteFile(filepath.Join(logs, name), nil, 0o644))
	}
	// The runtime writes the log when the container starts.
	f.observe = func(c fakecri.Change) {
		if c.To == fakecri.Running {
			assert.NoError(t, os.WriteFile(filepath.Join(logs, "13.log"), nil, 0o644))
		}
	}
	syncs(t, rt, podOf(container("web")))
	c := f.newest("web")
	assert.EqualValues(t, 13, c.Config.Metadata.Attempt)
	assert.Equal(t, "13", c.Config.Annotations["io.kubernetes.container.restartCount"])
	link, err := os.Readlink(dir + "/links/web_prod_web-" + c.ID + ".log") // rt-86
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(logs, "13.log"), link)
}

func TestPodStatusOmitsVanishedContainersAndFailsForOtherErrors(t *testing.T) {
	f := newFake()
	f.has("img:1")
	rt, _ := f.engine(t, cri.Config{})
	pod := podOf(container("web"), container("log"))
	syncs(t, rt, pod)
	pods, err := rt.Pods(t.Context())
	require.NoError(t, err)
	require.Len(t, pods, 1)
	assert.Equal(t, "fake://"+f.containers()[0].ID, pods[0].Containers[1].ID)
	st, err := rt.PodStatus(t.Context(), pod.UID)
	require.NoError(t, err)
	assert.Equal(t, []string{"10.0.0.1", "fd00::7"}, st.IPs)
	assert.Equal(t, pods[0], st.Pod())

	broken := brokenStatus{f, status.Error(codes.NotFound, "gone")}
	rt, err = cri.New(cri.Config{Name: "fake", Runtime: broken, Images: f})
	require.NoError(t, err)
	st, err = rt.PodStatus(t.Context(), pod.UID) // rt-7
	require.NoError(t, err)
	assert.Empty(t, st.Containers)
	broken.err = errors.New("broken")
	rt, err = cri.New(cri.Config{Name: "fake", Runtime: broken, Images: f})
	require.NoError(t, err)
	_, err = rt.PodStatus(t.Context(), pod.UID)
	require.ErrorContains(t, err, "broken")
}

// A brokenStatus lists containers, but ContainerStatus fails with err.
type brokenStatus struct {
	*fakeCRI
	err error
}

func (b brokenStatus) ContainerStatus(context.Context, string, bool) (*runtimeapi.ContainerStatusResponse, error) {
	return nil, b.err
}
