package eviction_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/runtime"
)

// pressed is a world of one pod that uses all of the memory.
func pressed(t *testing.T) *world {
	w := newWorld()
	w.capacity["memory.available"] = 2 << 30
	thresholds, err := eviction.Settings{Hard: values{"memory.available": "1Gi"}, EnforcePods: true}.Parse()
	require.NoError(t, err)
	w.config.Policy.Thresholds = thresholds
	w.pods = []*worldPod{{Pod: podOf("hog"), stats: true, uses: map[eviction.Signal]int64{"memory.available": 3 << 29}}}
	return w
}

// notifier records the levels it is given, and notifies when the test triggers it.
type notifier struct {
	mu     sync.Mutex
	levels [][]int64
	low    func()
	fail   error
}

func (n *notifier) Run(ctx context.Context, low func()) error {
	n.mu.Lock()
	n.low = low
	fail := n.fail
	n.mu.Unlock()
	if fail != nil {
		return fail
	}
	<-ctx.Done()
	return nil
}

func (n *notifier) Update(levels []int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.levels = append(n.levels, levels)
	return errors.New("it is not ready")
}

// A notifier that fails for one signal does not prevent the evaluation of the others.
func TestAFailedComponentDoesNotAffectOthers(t *testing.T) {
	broken := errors.New("it is broken")
	for name, tc := range map[string]struct {
		breaks  func(*world)
		evicted int
		wantErr string
	}{
		"the layout: memory": {func(w *world) { w.noDevices = broken }, 1, "eviction: file system layout: it is broken"},
		"the measure of memory: not by another": {func(w *world) {
			w.config.Memory = func(context.Context) (eviction.Observation, error) { return eviction.Observation{}, broken }
		}, 0, "eviction: available memory: it is broken"},
		"a part of the summary, without a layout": {func(w *world) { w.broken, w.noDisks = true, true }, 1, "eviction: summary: a part of it is missing\neviction: file system layout: summary is incomplete"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := pressed(t)
				w.capacity["nodefs.available"] = 100
				more, err := eviction.Settings{Hard: values{"nodefs.available": "10%"}}.Parse()
				require.NoError(t, err)
				w.config.Policy.Thresholds = append(w.config.Policy.Thresholds, more...)
				tc.breaks(w)
				m, err := w.manager()
				require.NoError(t, err)
				result, err := m.Pass(t.Context())
				require.EqualError(t, err, tc.wantErr)
				require.NotNil(t, result.Plan)
				assert.Len(t, result.Evicted, tc.evicted)
			})
		})
	}
}

func TestANotifierMakesAPassAtOnce(t *testing.T) { // ev-16, ev-17, ev-59
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := pressed(t)
		w.pods[0].uses["memory.available"] = 0
		n, broken := new(notifier), &notifier{fail: errors.New("no such cgroup")}
		w.config.Notifiers = map[eviction.Signal]eviction.Notifier{"memory.available": n, "allocatableMemory.available": broken}
		m, err := w.manager()
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		time.Sleep(3 * time.Second)
		w.mu.Lock()
		w.pods[0].uses["memory.available"] = 3 << 29
		w.mu.Unlock()
		synctest.Wait()
		assert.Empty(t, w.take(), "the next pass is far")
		for range 3 { // repeated notifications cause one pass
			n.low()
		}
		synctest.Wait()
		assert.Contains(t, w.take()[2], "evicted hog")
		n.mu.Lock()
		assert.Equal(t, [][]int64{{1 << 30}}, n.levels)
		n.mu.Unlock()
		time.Sleep(12 * time.Second)
		synctest.Wait()
		n.mu.Lock()
		assert.Len(t, n.levels, 2, "each ten seconds")
		n.mu.Unlock()
		assert.Empty(t, broken.levels, "the pods' cgroup is not measured")
		stop()
		assert.NoError(t, <-ended)
	})
}

func TestEndlessNotificationsAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		w := pressed(t)
		w.pods = nil
		passes := 0
		w.config.Hooks.Passed = func(eviction.Result, error) { passes++ }
		n := new(notifier)
		w.config.Notifiers = map[eviction.Signal]eviction.Notifier{"memory.available": n}
		m, err := w.manager()
		require.NoError(t, err)
		go func() { _ = m.Run(ctx) }()
		synctest.Wait()
		for range 10_000 {
			n.low()
			time.Sleep(time.Millisecond)
		}
		stop()
		synctest.Wait()
		assert.InDelta(t, 100, passes, 5)
	})
}

func TestHooksReportValuesOfMetrics(t *testing.T) { // ev-29
	synctest.Test(t, func(t *testing.T) {
		w := pressed(t)
		w.measured, w.stale = time.Now().Add(-3*time.Second), true
		stuck := &worldPod{Pod: podOf("stuck"), stats: true, unkilled: true, uses: map[eviction.Signal]int64{"memory.available": 1 << 28}}
		stuck.Spec.Priority = new(int32(-1))
		w.pods = append(w.pods, stuck)
		var planned []*eviction.Plan
		var passed []eviction.Result
		w.config.Hooks = eviction.Hooks{
			Planned: func(p *eviction.Plan) { planned = append(planned, p) },
			Passed: func(r eviction.Result, err error) {
				assert.NoError(t, err)
				passed = append(passed, r)
			},
		}
		m, err := w.manager()
		require.NoError(t, err)
		result, err := m.Pass(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []*eviction.Plan{result.Plan}, planned)
		assert.Equal(t, []eviction.Result{result}, passed)
		assert.Equal(t, 3*time.Second, result.RankedAt.Sub(result.Plan.Met[0].At))
		require.Len(t, result.Failed, 1)
		assert.Equal(t, "stuck", result.Failed[0].Pod.Name)
		require.Len(t, result.Evicted, 1)
		assert.Equal(t, "memory.available", result.Evicted[0].Signal)
		assert.True(t, m.Under(v1.NodeMemoryPressure))
		assert.False(t, m.Under(v1.NodeDiskPressure))
		assert.Equal(t, []v1.NodeConditionType{v1.NodeMemoryPressure}, m.Conditions())
		assert.Equal(t, "Evicted", m.Admit(t.Context(), podOf("new")).Reason)
	})
}

func TestAPassThatCannotMeasureReturnsTheCause(t *testing.T) {
	boom := errors.New("boom")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		change func(c *eviction.Config)
		want   string
	}{
		"summary": {func(c *eviction.Config) {
			c.Summary = func(context.Context, bool) (*statsapi.Summary, error) { return nil, boom }
		}, "eviction: summary: boom"},
		"nothing": {func(c *eviction.Config) {
			c.Summary = func(context.Context, bool) (*statsapi.Summary, error) { return nil, nil }
		}, "eviction: summary: function returned nil"},
		"memory": {func(c *eviction.Config) {
			c.Memory = func(context.Context) (eviction.Observation, error) { return eviction.Observation{}, boom }
		}, "eviction: available memory: boom"},
		"layout": {func(c *eviction.Config) {
			c.Disks = worldDisks{&world{noDevices: boom}}
		}, "eviction: file system layout: boom"},
		"by stats": {func(*eviction.Config) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := eviction.Config{
				Summary: func(context.Context, bool) (*statsapi.Summary, error) { return &statsapi.Summary{}, nil },
				Pods:    podList(nil),
			}
			tc.change(&cfg)
			m, err := eviction.New(cfg)
			require.NoError(t, err)
			_, err = m.Pass(t.Context())
			if tc.want == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, tc.want)
		})
	}
	m, err := eviction.New(eviction.Config{
		Summary: func(context.Context, bool) (*statsapi.Summary, error) { return nil, boom },
		Pods:    podList(nil),
		Policy:  eviction.Policy{NoLocalLimits: true},
	})
	require.NoError(t, err)
	_, err = m.Pass(t.Context())
	assert.NoError(t, err, "ev-15: there are no thresholds")
	assert.NoError(t, m.Run(ended))
}

func TestNoPodIsEvictedIfTheReclaimCannotBeMeasured(t *testing.T) {
	w := newWorld()
	w.capacity["nodefs.available"], w.other["nodefs.available"] = 100, 99
	w.config.Policy.Thresholds = []eviction.Threshold{{Signal: "nodefs.available", Value: eviction.Value{Percentage: 0.1}}}
	w.pods = []*worldPod{{Pod: podOf("web"), stats: true}}
	w.pods[0].Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceEphemeralStorage: resource.MustParse("1Gi")} // one measurement suffices
	m, err := w.manager()
	require.NoError(t, err)
	w.summary, w.silentAfter = true, true
	result, err := m.Pass(t.Context())
	assert.EqualError(t, err, "eviction: summary: no response")
	assert.Empty(t, result.Evicted)
	assert.NotEmpty(t, result.Steps)
}

func TestPassesDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pressed(t)
		m, err := w.manager()
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() { _, _ = m.Pass(t.Context()) })
		}
		wg.Wait()
		var evicted int
		for _, line := range w.take() {
			if line[:7] == "evicted" {
				evicted++
			}
		}
		assert.Equal(t, 1, evicted)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		blocked := make(chan struct{})
		w2 := pressed(t)
		w2.block = blocked
		m, err = w2.manager()
		require.NoError(t, err)
		go func() { _, _ = m.Pass(t.Context()) }()
		synctest.Wait()
		_, err = m.Pass(ctx)
		assert.ErrorIs(t, err, context.Canceled)
		close(blocked)
	})
}

// podList are pods that can be evicted.
type podList []*v1.Pod

func (l podList) Running() []*v1.Pod                         { return l }
func (podList) Evict(context.Context, eviction.Victim) error { return nil }
func (podList) Cleaned(types.UID) bool                       { return true }

// stopping are pods whose eviction stops the agent.
type stopping struct {
	podList
	stop func()
}

func (s stopping) Evict(ctx context.Context, _ eviction.Victim) error {
	s.stop()
	return ctx.Err()
}

// When the agent stops during a pass, no evictions are reported that are no longer
// made.
func TestEvictionsCanceledByAStopAreNotReported(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	limit := resource.MustParse("1Ki")
	var pods []*v1.Pod
	summary := &statsapi.Summary{}
	for _, name := range []string{"a", "b", "c"} {
		pod := podOf(name)
		pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: &limit}}}}
		pods = append(pods, pod)
		summary.Pods = append(summary.Pods, statsapi.PodStats{
			PodRef:      statsapi.PodReference{UID: string(pod.UID)},
			VolumeStats: []statsapi.VolumeStats{{Name: "data", FsStats: statsapi.FsStats{UsedBytes: bytesOf("1Mi")}}},
		})
	}
	var recorded []string
	m, err := eviction.New(eviction.Config{
		Summary: func(context.Context, bool) (*statsapi.Summary, error) { return summary, nil },
		Pods:    stopping{pods, end},
		Record:  func(e runtime.Event) { recorded = append(recorded, e.Reason+" "+e.Object.Name) },
	})
	require.NoError(t, err)
	_, err = m.Pass(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"Evicted a"}, recorded)
}
