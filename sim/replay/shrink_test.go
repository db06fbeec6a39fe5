package replay_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/sim"
	"github.com/kubeparts/kubeparts/sim/record"
	"github.com/kubeparts/kubeparts/sim/replay"
)

// An unmodified agent violates no invariant in a checked replay.
func TestAnUnmodifiedAgentViolatesNoInvariant(t *testing.T) {
	for seed := range *seeds {
		for name, cfg := range map[string]nodeConfig{
			"healthy": {latency: 20 * time.Millisecond, seed: seed},
			"errors":  {latency: 20 * time.Millisecond, seed: seed, errors: 20},
		} {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				r := open(t, recordNode(t, cfg, busy))
				began := time.Now()
				result, err := replay.Run(t.Context(), r, replay.Options{Invariants: replay.InvariantNames()})
				require.NoError(t, err)
				assert.Empty(t, result.Violations, result.Explain())
				assert.Equal(t, r.Length+10*time.Minute, result.Until)
				t.Logf("%d entries, %d things not recorded, in %v", len(result.Trace), result.Unrecorded, time.Since(began))
			})
		}
	}
}

func TestCheckedReplaysOfARecordingAreEqual(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, busy))
	opts := replay.Options{Invariants: replay.InvariantNames()}
	first, err := replay.Run(t.Context(), r, opts)
	require.NoError(t, err)
	require.Greater(t, len(first.Trace), 100)
	for i := range 10 {
		result, err := replay.Run(t.Context(), r, opts)
		require.NoError(t, err)
		require.Equal(t, first.Digest, result.Digest, "replay %d", i)
	}
}

// A runtimeDefect is a runtime.Runtime with a defect in one of its methods.
type runtimeDefect struct {
	runtime.Runtime
	sync func(next runtime.Runtime, ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error)
	kill func(next runtime.Runtime, ctx context.Context, req runtime.KillRequest) error
}

func (r runtimeDefect) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if r.sync == nil {
		return r.Runtime.SyncPod(ctx, req)
	}
	return r.sync(r.Runtime, ctx, req)
}

func (r runtimeDefect) KillPod(ctx context.Context, req runtime.KillRequest) error {
	if r.kill == nil {
		return r.Runtime.KillPod(ctx, req)
	}
	return r.kill(r.Runtime, ctx, req)
}

func defect(d runtimeDefect) []compose.Adjustment {
	return adjusting(func(p *pipeline.Config) { d.Runtime = p.Runtime; p.Runtime = d })
}

// defects are agents that are recorded, checked and shrunk.
var defects = map[string]struct {
	invariant string
	adjust    []compose.Adjustment
}{
	"half of the grace period": {"grace-period-given", adjusting(func(p *pipeline.Config) { p.Runtime = halfGrace{p.Runtime} })},
	"no back-off":              {"back-off", adjusting(func(c *cri.Config) { c.Containers.Backoff = plan.BackoffConfig{Initial: time.Second} })},
	"liveness is ignored":      {"unhealthy-restarted", adjusting(func(p *pipeline.Config) { p.Probes = withoutLiveness{p.Probes} })},
	"containers are not stopped": {"finally-deleted", defect(runtimeDefect{
		kill: func(runtime.Runtime, context.Context, runtime.KillRequest) error { return nil },
	})},
	"the restart policy is ignored": {"restart-policy", defect(runtimeDefect{
		sync: func(next runtime.Runtime, ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			req.Pod = req.Pod.DeepCopy()
			req.Pod.Spec.RestartPolicy = v1.RestartPolicyAlways
			return next.SyncPod(ctx, req)
		},
	})},
	"exited containers are not restarted": {"finally-running", defect(runtimeDefect{
		sync: func(next runtime.Runtime, ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
			if req.Status != nil && len(req.Status.Containers) > 0 && req.Status.Containers[0].State == runtime.ContainerExited {
				return runtime.SyncResult{}, nil
			}
			return next.SyncPod(ctx, req)
		},
	})},
}

// troubled has pods for all defects.
func troubled(n node) {
	web := pod("web", probed(container("main", "nginx")))
	web.Spec.Containers[0].LivenessProbe.Exec.Command = []string{"dead"}
	n.source.Set(web, pod("stubborn", container("main", "stubborn")), pod("crash", container("main", "crash")), pod("other", container("main", "nginx")))
	time.Sleep(20 * time.Second)
	job := pod("job", container("main", "once"), container("side", "nginx"))
	job.Spec.RestartPolicy = v1.RestartPolicyNever
	n.source.Add(job)
	time.Sleep(40 * time.Second)
	n.source.Add(deleted(pod("stubborn", container("main", "stubborn"))))
	time.Sleep(time.Minute)
}

// A failure is a testing.TB that records whether it failed.
type failure struct {
	testing.TB
	text string
}

func (*failure) Helper()             {}
func (f *failure) Error(args ...any) { f.text += fmt.Sprint(args...) }
func (f *failure) Errorf(format string, args ...any) {
	f.text += fmt.Sprintf(format, args...)
}

// Shrinking all defects takes a minute, and several under the race detector.
var allDefects = flag.Bool("defects", false, "shrink recordings of all defects, not only of two")

func TestDefectsAreShrunkToTests(t *testing.T) {
	some := []string{"exited containers are not restarted", "no back-off"}
	require.Subset(t, slices.Collect(maps.Keys(defects)), some)
	for name, d := range defects {
		if !*allDefects && !slices.Contains(some, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1, adjust: d.adjust}, troubled))
			defective := replay.Options{Adjust: d.adjust}
			all := defective
			all.Invariants = replay.InvariantNames()
			result, err := replay.Run(t.Context(), r, all)
			require.NoError(t, err)
			require.Contains(t, violated(result), d.invariant)
			correct, err := replay.Run(t.Context(), r, replay.Options{Invariants: replay.InvariantNames()})
			require.NoError(t, err)
			assert.Empty(t, correct.Violations, correct.Explain())

			steps, last := map[string]bool{}, replay.ShrinkProgress{}
			began := time.Now()
			small, err := replay.Shrink(t.Context(), r, replay.ShrinkOptions{Invariant: d.invariant, Replay: defective, Progress: func(p replay.ShrinkProgress) {
				steps[p.Step], last = true, p
			}})
			require.NoError(t, err)
			assert.Subset(t, steps, map[string]bool{"pods": true, "frames": true, "fields": true})
			var text bytes.Buffer
			require.NoError(t, small.AsTest(&text, replay.TestFile{Invariants: []string{d.invariant}}))
			lines := bytes.Count(text.Bytes(), []byte("\n"))
			t.Logf("from %d frames of %v to %d of %v in %d replays, %v; %d lines, %d bytes:\n%s", frameCount(r), r.Length, frameCount(small), small.Length, last.Replays, time.Since(began), lines, text.Len(), text.String())
			assert.Less(t, lines, 60)

			file := filepath.Join(t.TempDir(), "small.kprec")
			var data bytes.Buffer
			require.NoError(t, small.Write(&data))
			require.NoError(t, os.WriteFile(file, data.Bytes(), 0o600))
			again := open(t, file)
			require.NoError(t, again.Damage)
			assert.Equal(t, frameCount(small), frameCount(again))

			frames := framesOf(t, text.String())
			defective.Invariants = []string{d.invariant}
			f := &failure{TB: t}
			replay.CheckWith(f, frames, defective)
			assert.Contains(t, f.text, "violated invariant "+d.invariant)
			replay.Check(t, frames, d.invariant)
			replay.Check(t, frames, replay.InvariantNames()...)
		})
	}
}

func TestADivergenceIsShrunk(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, troubled))
	opts := replay.Options{Adjust: defects["half of the grace period"].adjust}
	first, err := replay.Run(t.Context(), r, opts)
	require.NoError(t, err)
	require.NotNil(t, first.Divergence)
	small, err := replay.Shrink(t.Context(), r, replay.ShrinkOptions{Replay: opts, Replays: 300})
	require.NoError(t, err)
	assert.Less(t, frameCount(small), frameCount(r)/3)
	result, err := replay.Run(t.Context(), small, opts)
	require.NoError(t, err)
	require.NotNil(t, result.Divergence)
	assert.Equal(t, first.Divergence.Pod, result.Divergence.Pod)
	assert.Contains(t, result.Divergence.Reason, "timeout")
	t.Logf("from %d to %d frames: %v", frameCount(r), frameCount(small), result.Divergence)
}

func TestShrinkIsDeterministicAndBounded(t *testing.T) {
	d := defects["the restart policy is ignored"]
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1, adjust: d.adjust}, troubled))
	text := func(opts replay.ShrinkOptions) string {
		small, err := replay.Shrink(t.Context(), r, opts)
		require.NoError(t, err)
		var b bytes.Buffer
		require.NoError(t, small.AsTest(&b, replay.TestFile{}))
		return b.String()
	}
	opts := replay.ShrinkOptions{Invariant: d.invariant, Replay: replay.Options{Adjust: d.adjust}, Replays: 120}
	assert.Equal(t, text(opts), text(opts))

	replays := 0
	opts.Replays, opts.Progress = 7, func(p replay.ShrinkProgress) { replays = max(replays, p.Replays) }
	small, err := replay.Shrink(t.Context(), r, opts)
	require.NoError(t, err)
	require.NotNil(t, small)
	assert.LessOrEqual(t, replays, 7)

	ctx, cancel := context.WithCancel(t.Context())
	opts.Replays, opts.Progress = 0, func(p replay.ShrinkProgress) {
		if p.Replays >= 3 {
			cancel()
		}
	}
	small, err = replay.Shrink(ctx, r, opts)
	assert.ErrorIs(t, err, context.Canceled)
	assert.NotNil(t, small, "the smallest recording so far")

	_, err = replay.Shrink(t.Context(), r, replay.ShrinkOptions{Invariant: "restart-policy"})
	assert.ErrorIs(t, err, replay.ErrNotReproduced, "the agent of this program is correct")
	_, err = replay.Shrink(t.Context(), r, replay.ShrinkOptions{Invariant: "unknown"})
	assert.ErrorContains(t, err, `no invariant "unknown"`)
}

func violated(r replay.Result) (out []string) {
	for _, v := range r.Violations {
		out = append(out, v.Invariant)
	}
	return out
}

func frameCount(r *replay.Recording) (n int) {
	for range r.Frames() {
		n++
	}
	return n
}

// framesOf returns the raw string of a test file, which must be formatted and valid.
func framesOf(t *testing.T, source string) string {
	t.Helper()
	formatted, err := format.Source([]byte(source))
	require.NoError(t, err)
	assert.Equal(t, string(formatted), source)
	_, err = parser.ParseFile(token.NewFileSet(), "x_test.go", source, parser.AllErrors)
	require.NoError(t, err)
	parts := strings.Split(source, "`")
	require.Len(t, parts, 3, "one raw string")
	return parts[1]
}

// Text of a recording cannot end the raw string of a test, or hide in it.
func TestATestFileIsQuoted(t *testing.T) {
	evil := "`; func init() { panic(1) } //`\r\n\u202e\u2028\ufeff\x00<&>\U0001f600"
	p := pod("web", container("main", evil))
	p.Annotations = map[string]string{evil: evil}
	header := &record.Header{Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), File: 1, Node: evil}
	r, err := replay.Read(sequence([]record.Frame{
		{Header: header}, {At: time.Second, Pods: &record.Pods{Source: evil, Changed: []*v1.Pod{p}}},
		{At: time.Second, Event: &record.Event{Message: []byte(`{"containerId":"` + "`\xff" + `"}`)}},
	}))
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, r.AsTest(&text, replay.TestFile{}))
	for _, c := range text.String() {
		require.True(t, c == '\n' || c == '\t' || c >= ' ' && c <= '~', "%q", c)
	}
	again, err := replay.ReadJSON(strings.NewReader(framesOf(t, text.String())))
	require.NoError(t, err)
	assert.Equal(t, evil, again.Header.Node)
	for f := range again.Frames() {
		if f.Pods != nil {
			assert.Equal(t, evil, f.Pods.Changed[0].Spec.Containers[0].Image)
			assert.Equal(t, evil, f.Pods.Changed[0].Annotations[evil])
		}
	}
	for _, file := range []replay.TestFile{{Package: "a\nb"}, {Name: "TestX(){}"}, {Name: "Other"}, {Invariants: []string{"`"}}} {
		assert.Error(t, r.AsTest(&text, file), "%+v", file)
	}
}

// The agent stops the sandbox of a pod soon after the last container has exited: it has not stopped the container.
func TestAnExitBeforeTheEndOfItsPodIsReplayed(t *testing.T) {
	r := open(t, recordNode(t, nodeConfig{latency: 20 * time.Millisecond, seed: 1}, func(n node) {
		job := pod("job", container("main", "once"))
		job.Spec.RestartPolicy = v1.RestartPolicyNever
		n.source.Set(job)
		time.Sleep(20 * time.Second)
	}))
	result, err := replay.Run(t.Context(), r, replay.Options{Invariants: replay.InvariantNames()})
	require.NoError(t, err)
	assert.Empty(t, result.Violations, result.Explain())
	for _, e := range result.Trace {
		if e.Kind == sim.Exited {
			assert.False(t, e.Stopped)
			assert.InDelta(t, 5, e.Container.FinishedAt.Sub(e.Container.StartedAt).Seconds(), 0.1)
			return
		}
	}
	assert.Fail(t, "no exit")
}
