package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
	"github.com/kubeparts/kubeparts/volume"
)

var seeds = flag.Uint64("seeds", 3, "number of seeds that TestAnUnmodifiedAgentReplaysItsRecording runs")

func TestAnUnmodifiedAgentReplaysItsRecording(t *testing.T) {
	latencies := []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond}
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := open(t, recordNode(t, nodeConfig{latency: latencies[seed%3], seed: seed}, busy))
			require.NoError(t, r.Damage)
			result, err := replay.Run(t.Context(), r, replay.Options{})
			require.NoError(t, err)
			require.Nil(t, result.Divergence, "seed %d: %v", seed, result.Divergence)
			assert.Equal(t, r.Length, result.Until)
			assert.Greater(t, result.Compared, 80)
			t.Logf("seed %d: compared %d, unrecorded %d", seed, result.Compared, result.Unrecorded)
		})
	}
}

func TestReplaysOfARecordingAreEqual(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, busy))
	var first replay.Result
	for i := range 20 {
		result, err := replay.Run(t.Context(), r, replay.Options{})
		require.NoError(t, err)
		if i == 0 {
			first = result
		}
		require.Equal(t, first.Digest, result.Digest, "replay %d", i)
		require.Equal(t, first.Compared, result.Compared)
		require.Len(t, result.Timeline.Marks, len(first.Timeline.Marks))
	}
}

// halfGrace terminates pods with half of their grace period.
type halfGrace struct{ runtime.Runtime }

func (r halfGrace) KillPod(ctx context.Context, req runtime.KillRequest) error {
	if req.GracePeriodSeconds != nil {
		half := *req.GracePeriodSeconds / 2
		req.GracePeriodSeconds = &half
	}
	return r.Runtime.KillPod(ctx, req)
}

// withoutLiveness does not report the results of liveness probes.
type withoutLiveness struct{ pipeline.Probes }

func (withoutLiveness) Results(*v1.Pod) *runtime.ProbeResults { return nil }

func TestADefectDiverges(t *testing.T) {
	failing := func(n node) {
		web := pod("web", probed(container("main", "nginx")))
		web.Spec.Containers[0].LivenessProbe.Exec.Command = []string{"dead"}
		n.source.Set(web, pod("stubborn", container("main", "stubborn")), pod("crash", container("main", "crash")))
		time.Sleep(time.Minute)
		n.source.Add(deleted(pod("stubborn", container("main", "stubborn"))))
		time.Sleep(time.Minute)
	}
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, failing))
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	require.Nil(t, result.Divergence, "%v", result.Divergence)
	for name, test := range map[string]struct {
		opts replay.Options
		want replay.Divergence // Recorded, Replayed and Reason: parts of them
	}{
		"a shorter back-off": {
			replay.Options{Adjust: adjusting(func(c *cri.Config) { c.Containers.Backoff = plan.BackoffConfig{Initial: time.Second} })},
			replay.Divergence{Pod: "default/crash", What: "calls", Recorded: "CreateContainer main, attempt 2", Replayed: "CreateContainer main, attempt 2", Reason: "earlier than recorded"},
		},
		"a longer back-off": {
			replay.Options{Adjust: adjusting(func(c *cri.Config) { c.Containers.Backoff = plan.BackoffConfig{Initial: 30 * time.Second} })},
			replay.Divergence{Pod: "default/crash", What: "statuses", Recorded: "UpdatePodStatus", Replayed: "UpdatePodStatus", Reason: `recorded "back-off 10s restarting failed container=main pod=crash_default(uid-crash)", replayed "back-off 30s `},
		},
		"half of the grace period": {
			replay.Options{Adjust: adjusting(func(p *pipeline.Config) { p.Runtime = halfGrace{p.Runtime} })},
			replay.Divergence{Pod: "default/stubborn", What: "calls", Recorded: `"timeout":"10"`, Replayed: `"timeout":"5"`, Reason: `timeout: recorded "10", replayed "5"`},
		},
		"liveness is ignored": {
			replay.Options{Adjust: adjusting(func(p *pipeline.Config) { p.Probes = withoutLiveness{p.Probes} })},
			replay.Divergence{Pod: "default/web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := replay.Run(t.Context(), r, test.opts)
			require.NoError(t, err)
			d := result.Divergence
			require.NotNil(t, d)
			t.Log(d)
			assert.Equal(t, test.want.Pod, d.Pod)
			if test.want.What != "" {
				assert.Equal(t, test.want.What, d.What)
			}
			assert.Contains(t, d.Recorded, test.want.Recorded)
			assert.Contains(t, d.Replayed, test.want.Replayed)
			assert.Contains(t, d.Reason, test.want.Reason)
			assert.LessOrEqual(t, result.Until, r.Length)
		})
	}
}

func TestAPodAndATime(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, busy))
	all, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	one, err := replay.Run(t.Context(), r, replay.Options{Pod: "default/crash", Until: 2 * time.Minute})
	require.NoError(t, err)
	assert.Nil(t, one.Divergence, "%v", one.Divergence)
	assert.Equal(t, 2*time.Minute, one.Until)
	assert.Less(t, one.Compared, all.Compared)
	for _, m := range one.Timeline.Marks {
		assert.Equal(t, "default/crash", m.Pod)
	}
	_, err = replay.Run(t.Context(), r, replay.Options{Pod: "default/unknown"})
	assert.ErrorContains(t, err, `pod "default/unknown" is not in the recording`)
}

// A recording that was cut at any byte is replayed to there.
func TestATruncatedRecordingIsReplayedToItsEnd(t *testing.T) {
	dir := recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, busy)
	files, err := record.Files(dir)
	require.NoError(t, err)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	whole := open(t, dir)
	for i := 1; i < 8; i++ {
		path := filepath.Join(t.TempDir(), "cut.kprec")
		cut := append([]byte(nil), data[:len(data)*i/8]...)
		if i%2 == 0 { // a changed byte instead
			cut = append([]byte(nil), data...)
			cut[len(data)*i/8]++
		}
		require.NoError(t, os.WriteFile(path, cut, 0o600))
		r := open(t, path)
		_, ok := errors.AsType[*record.DamageError](r.Damage)
		require.True(t, ok, "%v", r.Damage)
		assert.Less(t, r.Length, whole.Length)
		result, err := replay.Run(t.Context(), r, replay.Options{})
		require.NoError(t, err)
		assert.Nil(t, result.Divergence, "cut %d: %v", i, result.Divergence)
		assert.Equal(t, r.Length, result.Until)
	}
}

func TestInvalidRecordings(t *testing.T) {
	header := func(file int) record.Frame {
		return record.Frame{Header: &record.Header{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), File: file}}
	}
	other := header(1)
	other.Header.Start = other.Header.Start.Add(time.Hour)
	old := header(1)
	old.Header.Start = time.Time{}
	draw := func(at time.Duration) record.Frame { return record.Frame{At: at, Draw: &record.Draw{}} }
	for want, frames := range map[string][]record.Frame{
		"replay: the recording is empty":                                {},
		"replay: the first frame is not a header":                       {draw(0)},
		"replay: the recording has no beginning: it begins with file 2": {header(2)},
		"replay: recorded at 0001-01-01 00:00:00 +0000 UTC":             {old},
		"replay: the files are of two recordings, which began at 2026-01-01 00:00:00 +0000 UTC and 2026-01-01 01:00:00 +0000 UTC": {header(1), other},
		"replay: frame 1: invalid time -1ns, duration 0s":                                                                         {header(1), draw(-1)},
	} {
		_, err := replay.Read(sequence(frames))
		assert.EqualError(t, err, want)
	}
	r, err := replay.Read(sequence([]record.Frame{header(1), draw(time.Second), {At: time.Minute, Dropped: &record.Dropped{Count: 3, Reason: "queue full"}}, draw(time.Hour)}))
	require.NoError(t, err)
	assert.ErrorIs(t, r.Damage, replay.ErrDropped)
	assert.Equal(t, time.Second, r.Length)
	_, err = replay.Run(t.Context(), r, replay.Options{Until: -1})
	assert.Error(t, err)
	_, err = replay.Run(t.Context(), nil, replay.Options{})
	assert.Error(t, err)
}

func sequence(frames []record.Frame) func(func(record.Frame, error) bool) {
	return func(yield func(record.Frame, error) bool) {
		for _, f := range frames {
			if !yield(f, nil) {
				return
			}
		}
	}
}

func TestAReplayIsCanceled(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{seed: 1}, busy))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := replay.Run(ctx, r, replay.Options{})
	assert.ErrorIs(t, err, context.Canceled)
}

func TestSpeed(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{seed: 1}, busy))
	began := time.Now()
	result, err := replay.Run(t.Context(), r, replay.Options{Speed: 100, Until: 20 * time.Second})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
	assert.Greater(t, time.Since(began), 150*time.Millisecond)
}

// An operations has the cgroups and volumes of a recorded node. The first operation of each kind fails.
type operations struct {
	mu     sync.Mutex
	failed map[string]bool
	report func(volume.OperationInfo)
}

func (o *operations) do(name string, uid types.UID) error {
	time.Sleep(300 * time.Millisecond)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed[name+string(uid)] {
		return nil
	}
	o.failed[name+string(uid)] = true
	return errors.New("busy")
}

func (o *operations) Ensure(_ context.Context, pod *v1.Pod) error   { return o.do("ensure", pod.UID) }
func (o *operations) Remove(_ context.Context, uid types.UID) error { return o.do("remove", uid) }
func (*operations) Has(*v1.Pod) bool                                { return true }
func (*operations) Retain(context.Context, func(types.UID) bool) error {
	return nil
}

// Mount tries twice, as a volume manager that retries.
func (o *operations) Mount(_ context.Context, pod *v1.Pod) (map[string]runtime.Volume, error) {
	for err := errors.New("first"); err != nil; {
		began := time.Now()
		err = o.do("mount", pod.UID)
		o.report(volume.OperationInfo{Operation: "volume_mount", Volume: "data", PodUID: pod.UID, Duration: time.Since(began), Err: err})
	}
	return map[string]runtime.Volume{"data": {Path: "/data"}}, nil
}

func (o *operations) Unmount(_ context.Context, pod *v1.Pod) error {
	o.report(volume.OperationInfo{Operation: "volume_unmount", Volume: "data", PodUID: pod.UID})
	return nil
}

func TestVolumesAndCgroupsAreReplayed(t *testing.T) {
	ops := &operations{failed: map[string]bool{}}
	cfg := nodeConfig{latency: 20 * time.Millisecond, seed: 1, volumes: func(r *record.Recorder) { ops.report = r.Volumes }}
	cfg.adjust = adjusting(func(c *agent.Config) { c.Subsystems.Cgroups, c.Subsystems.Volumes = ops, ops })
	r := open(t, recordNode(t, cfg, func(n node) {
		web := pod("web", container("main", "nginx"))
		web.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}}}
		n.source.Set(web)
		time.Sleep(time.Minute)
		n.source.Add(deleted(web))
		time.Sleep(time.Minute)
	}))
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
	assert.Greater(t, result.Compared, 10)
}

// A stream of events that was opened after the last one that ended, and that was open at
// the end of the recording, has no frame of its own.
func TestEventsOfTheLastStreamAreDelivered(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		n.source.Set(pod("web", container("main", "nginx")))
		time.Sleep(18 * time.Second)
		require.NoError(t, n.fake.Exit("uid-web", "main", 3))
		time.Sleep(5 * time.Second)
	}))
	frames := slices.Collect(r.Frames())
	broken := record.Frame{At: 14 * time.Second, Call: &record.Call{
		Method: "GetContainerEvents", Took: 13800 * time.Millisecond, Request: json.RawMessage(`{}`),
		Error: &record.Error{Message: "EOF", Code: codes.Unavailable.String()},
	}}
	i := slices.IndexFunc(frames, func(f record.Frame) bool { return f.At > broken.At })
	r, err := replay.Read(sequence(slices.Insert(frames, i, broken)))
	require.NoError(t, err)
	result, err := replay.Run(t.Context(), r, replay.Options{Tolerance: time.Second})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
	assert.Greater(t, result.Compared, 8)
}

// A blockedVolume mounts the second volume of a pod at once, and the first one after 20 seconds of failures.
type blockedVolume struct{ report func(volume.OperationInfo) }

func (v *blockedVolume) Mount(_ context.Context, pod *v1.Pod) (map[string]runtime.Volume, error) {
	v.report(volume.OperationInfo{Operation: "volume_mount", Volume: "second", PodUID: pod.UID})
	for range 10 {
		v.report(volume.OperationInfo{Operation: "volume_mount", Volume: "first", PodUID: pod.UID, Err: errors.New("not found")})
		time.Sleep(2 * time.Second)
	}
	v.report(volume.OperationInfo{Operation: "volume_mount", Volume: "first", PodUID: pod.UID})
	return map[string]runtime.Volume{"first": {Path: "/first"}, "second": {Path: "/second"}}, nil
}

func (*blockedVolume) Unmount(context.Context, *v1.Pod) error { return nil }

func TestAVolumeThatFailsDoesNotDelayOthers(t *testing.T) {
	volumes := new(blockedVolume)
	cfg := nodeConfig{seed: 1, volumes: func(r *record.Recorder) { volumes.report = r.Volumes }}
	cfg.adjust = adjusting(func(c *agent.Config) { c.Subsystems.Volumes = volumes })
	r := open(t, recordNode(t, cfg, func(n node) {
		web := pod("web", container("main", "nginx"))
		for _, name := range []string{"first", "second"} {
			web.Spec.Volumes = append(web.Spec.Volumes, v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
		}
		n.source.Set(web)
		time.Sleep(time.Minute)
	}))
	result, err := replay.Run(t.Context(), r, replay.Options{})
	require.NoError(t, err)
	assert.Nil(t, result.Divergence, "%v", result.Divergence)
	assert.Greater(t, result.Compared, 12)
}
