package record_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
)

const marker = "MARKER-secret"

// secretPod has the marker in each field that may contain a secret.
func secretPod() *v1.Pod {
	p := pod("web")
	p.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": marker}
	p.Spec.RestartPolicy = v1.RestartPolicyAlways
	exec := &v1.ExecAction{Command: []string{"check", marker}}
	p.Spec.Containers[0] = v1.Container{
		Name: "main", Image: "nginx", Command: []string{"run", marker}, Args: []string{"--password=" + marker},
		Env:           []v1.EnvVar{{Name: "PASSWORD", Value: marker}},
		LivenessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: exec}, PeriodSeconds: 10, TimeoutSeconds: 1, FailureThreshold: 3, SuccessThreshold: 1},
		Lifecycle: &v1.Lifecycle{PreStop: &v1.LifecycleHandler{HTTPGet: &v1.HTTPGetAction{
			Path: "/" + marker, HTTPHeaders: []v1.HTTPHeader{{Name: "Authorization", Value: marker}},
		}}},
	}
	p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: "d", VolumeAttributes: map[string]string{"key": marker}}}}}
	return p
}

// fakeProbe is a probe handler whose outcomes contain the marker.
type fakeProbe struct{}

func (fakeProbe) Probe(context.Context, prober.Target) (prober.Outcome, error) {
	return prober.Outcome{Result: runtime.ProbeSuccess, Output: marker, Detail: marker}, nil
}

// A failingSink fails each second call, with the marker in its error.
type failingSink struct {
	status.MemorySink
	calls atomic.Int64
}

func (s *failingSink) UpdatePodStatus(ctx context.Context, pod *v1.Pod, st v1.PodStatus) error {
	if s.calls.Add(1)%2 == 1 {
		return errors.New("no room for " + marker)
	}
	return s.MemorySink.UpdatePodStatus(ctx, pod, st)
}

// fakeCgroups implements record.Cgroups.
type fakeCgroups struct{}

func (fakeCgroups) Ensure(context.Context, *v1.Pod) error   { return nil }
func (fakeCgroups) Remove(context.Context, types.UID) error { return errors.New("busy: " + marker) }
func (fakeCgroups) Has(*v1.Pod) bool                        { return true }
func (fakeCgroups) Retain(context.Context, func(types.UID) bool) error {
	return nil
}

// recordAgent records an agent with all wrappers that runs the pods for a time.
func recordAgent(t *testing.T, cfg record.Config, runs time.Duration, pods ...*v1.Pod) []string {
	state := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r, err := record.New(cfg)
		require.NoError(t, err)
		fake, err := fakecri.New(fakecri.Config{})
		require.NoError(t, err)
		rt, err := cri.New(cri.Config{
			Name: "fakecri", Runtime: r.RuntimeService(fake), Images: r.ImageService(fake), Dirs: cri.Dirs{Root: state, PodLogs: state + "/logs"},
		})
		require.NoError(t, err)
		source := new(podsource.Memory)
		source.Set(pods...)
		agentConfig := agent.Config{
			Runtime: rt, Sources: map[string]podsource.PodSource{podsource.APISource: source}, Sink: new(failingSink),
			Subsystems: agent.Subsystems{Probes: prober.Handlers{Exec: fakeProbe{}}, Cgroups: fakeCgroups{}},
		}
		r.Agent(&agentConfig)
		a, err := agent.New(agentConfig)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		recorderCtx, stop := context.WithCancel(t.Context())
		ended, recorded := make(chan error), make(chan error)
		go func() { recorded <- r.Run(recorderCtx) }()
		go func() { ended <- a.Run(ctx) }()
		time.Sleep(runs)
		_, err = r.ImageService(fake).PullImage(ctx, &runtimeapi.ImageSpec{Image: "nginx"}, &runtimeapi.AuthConfig{
			Username: marker, Password: marker, Auth: marker, IdentityToken: marker, RegistryToken: marker, ServerAddress: "registry.example",
		}, nil)
		require.NoError(t, err)
		r.Volumes(volume.OperationInfo{Operation: "volume_mount", Volume: "v", PodUID: "web", Err: errors.New("mount --password=" + marker)})
		_ = r.Cgroups(fakeCgroups{}).Remove(ctx, "web")
		cancel()
		require.NoError(t, <-ended)
		stop()
		require.NoError(t, <-recorded)
	})
	files, err := record.Files(cfg.Dir)
	require.NoError(t, err)
	return files
}

// The recording of an agent contains each border, and no secret, compressed or not.
func TestAnAgentIsRecordedWithoutSecrets(t *testing.T) {
	files := recordAgent(t, record.Config{Dir: t.TempDir()}, time.Minute, secretPod())
	require.Len(t, files, 1)
	raw, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.NotContains(t, string(raw), marker)

	inBytes := base64.RawStdEncoding.EncodeToString([]byte(marker))[:16]
	kinds, methods := map[string]int{}, map[string]int{}
	for _, f := range read(t, files...) {
		text, err := json.Marshal(f)
		require.NoError(t, err)
		assert.False(t, bytes.Contains(text, []byte(marker)), "%s", text)
		assert.NotContains(t, f.String(), marker)
		assert.NotContains(t, string(text), inBytes, "bytes are in base64")
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &fields))
		for kind := range fields {
			kinds[kind]++
		}
		if f.Call != nil && f.Call.Error == nil {
			methods[f.Call.Method]++
			assert.NotEmpty(t, f.Call.Request, f.Call.Method)
			if f.Call.Method == "CreateContainer" {
				assert.Contains(t, string(f.Call.Request), `"PASSWORD"`, "names of variables are kept")
				assert.Contains(t, string(f.Call.Request), `masked:`)
			}
		}
	}
	for _, kind := range []string{"header", "pods", "call", "event", "probe", "operation", "status", "draw", "end"} {
		assert.Positive(t, kinds[kind], "%s: %v", kind, kinds)
	}
	for _, method := range []string{"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer", "ContainerStatus", "ListContainers"} {
		assert.Positive(t, methods[method], "%s: %v", method, methods)
	}
}

// slowRuntime does not return from a call for a minute.
type slowRuntime struct{ *fakecri.Runtime }

func (slowRuntime) StopContainer(context.Context, string, int64) error {
	time.Sleep(time.Minute)
	return context.DeadlineExceeded
}

func TestAPendingCallIsRecorded(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		recorded(t, record.Config{Dir: dir}, func(r *record.Recorder) {
			err := r.RuntimeService(slowRuntime{}).StopContainer(t.Context(), "c1", 30)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	})
	files, err := record.Files(dir)
	require.NoError(t, err)
	all := read(t, files...)
	assert.Equal(t, `10.000000s call: StopContainer {"containerId":"c1","timeout":"30"}: not returned after 10s`, all[1].String())
	assert.Equal(t, `60.000000s call: StopContainer {"containerId":"c1","timeout":"30"}: 1m0s error DeadlineExceeded context deadline exceeded`, all[2].String())
}

// An unchanged answer is written once in each file, and read as often as it was returned.
func TestEqualAnswersAreWrittenOnce(t *testing.T) {
	fake, err := fakecri.New(fakecri.Config{})
	require.NoError(t, err)
	all := read(t, recorded(t, record.Config{Dir: t.TempDir()}, func(r *record.Recorder) {
		images := r.ImageService(fake)
		for range 2 {
			for range 3 {
				_, err := images.ListImages(t.Context(), nil)
				require.NoError(t, err)
			}
			_, err := images.PullImage(t.Context(), &runtimeapi.ImageSpec{Image: "nginx"}, nil, nil)
			require.NoError(t, err)
		}
	})...)
	var same []bool
	for _, f := range all {
		if f.Call != nil {
			same = append(same, f.Call.Same != 0)
			assert.NotEmpty(t, f.Call.Answer)
		}
	}
	assert.Equal(t, []bool{false, true, true, false, false, true, true, false}, same)
}

// localRuntime has streams of its own, as process.Runtime.
type localRuntime struct {
	internalapi.RuntimeService
	cri.LocalStreams
}

func TestLocalStreamsAreKept(t *testing.T) {
	r, err := record.New(record.Config{Dir: t.TempDir()})
	require.NoError(t, err)
	_, ok := compose.As[cri.LocalStreams](r.RuntimeService(localRuntime{}))
	assert.True(t, ok)
	_, ok = compose.As[cri.LocalStreams](r.RuntimeService(struct{ internalapi.RuntimeService }{}))
	assert.False(t, ok)
}
