package imagegc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/runtime"
)

func layer(name string, size uint64) map[string]uint64 { return map[string]uint64{name: size} }

func newManager(t *testing.T, cfg imagegc.Config) *imagegc.Manager {
	t.Helper()
	m, err := imagegc.New(cfg)
	require.NoError(t, err)
	return m
}

// running runs a manager until the test ends.
func running(t *testing.T, cfg imagegc.Config) *imagegc.Manager {
	m := newManager(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, m.Run(ctx)) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return m
}

func TestRunCollectsEveryFiveMinutes(t *testing.T) { // ig-3, ig-9, ig-17
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.pull("a:1", layer("a", 10))
		var removed []string
		var passes atomic.Int32
		cfg := w.config()
		cfg.Hooks = imagegc.Hooks{
			Removed: func(i imagegc.RemovedInfo) {
				removed = append(removed, fmt.Sprint(i.Record.Image.ID, " ", i.Reason, " ", i.Freed, " ", i.Measured))
			},
			Passed: func(i imagegc.PassInfo) { passes.Add(1) },
		}
		running(t, cfg)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.EqualValues(t, 1, passes.Load(), "at once")
		w.mu.Lock()
		w.others = 80
		w.mu.Unlock()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 2, passes.Load())
		assert.Equal(t, []string{"sha256:a:1 space 10 true"}, removed)
	})
}

func TestFailuresAreEventsFromTheSecondOn(t *testing.T) { // ig-3
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.fail["images"] = errors.New("the runtime is away")
		running(t, w.config())
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Empty(t, w.emitted())
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		const event = "Node Warning ImageGCFailed: imagegc: list images: the runtime is away"
		assert.Equal(t, []string{event, event}, w.events)
		w.mu.Lock()
		w.fail = map[string]error{}
		w.mu.Unlock()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		w.mu.Lock()
		w.fail["images"] = errors.New("again")
		w.mu.Unlock()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		assert.Len(t, w.emitted(), 2, "one in a row")
	})
}

// A forgetter fails, which is logged.
type forgetter struct {
	runtime.ImageStore
	called func(present []string)
}

func (f forgetter) ForgetImages(present []string, _ time.Time) error {
	f.called(present)
	return errors.New("read-only file system")
}

func TestAPolicyThatRemovesNothingStillRecordsImages(t *testing.T) { // ig-2, ig-9
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.pull("a:1", layer("a", 99))
		cfg := w.config()
		cfg.Space, cfg.Policy = nil, imagegc.Policy{HighPercent: new(int32(100))}
		var detected atomic.Int32
		cfg.Store = forgetter{cfg.Store, func(present []string) {
			detected.Add(1)
			assert.Equal(t, []string{"sha256:a:1"}, present)
		}}
		cfg.Hooks.Passed = func(imagegc.PassInfo) { t.Error("a pass") }
		running(t, cfg)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 3, detected.Load())
	})
}

func TestImagesThatChangeDuringAPass(t *testing.T) { // bad input: a list that changes during GC
	w := newWorld(100)
	for i := range 9 {
		w.pull(fmt.Sprint("a:", i), layer(fmt.Sprint(i), 11))
	}
	w.onRemove = func(id string) { // another client removes and pulls
		w.mu.Lock()
		if len(w.images) > 3 {
			w.images = w.images[:len(w.images)-1]
		}
		w.mu.Unlock()
		w.pull("new"+id, layer("new"+id, 1))
	}
	cfg := w.config()
	cfg.Policy = imagegc.Policy{MinAge: -1, HighPercent: new(int32(10)), LowPercent: new(int32(5))}
	_, err := newManager(t, cfg).Collect(t.Context())
	if short, ok := errors.AsType[*imagegc.ShortageError](err); err != nil {
		require.True(t, ok, "%v", err)
		assert.NotEmpty(t, short.Consumers)
	}
}

func TestAPassEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		for i := range 10 {
			w.pull(fmt.Sprint("a:", i), layer(fmt.Sprint(i), 10))
		}
		ctx, cancel := context.WithCancel(t.Context())
		w.onRemove = func(string) { cancel() }
		cfg := w.config()
		cfg.Policy.MinAge = -1
		m := newManager(t, cfg)
		report, err := m.Collect(ctx)
		require.ErrorIs(t, err, context.Canceled)
		assert.Len(t, report.Removed, 1)
		_, err = m.DryRun(ctx)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestTheNodesImages(t *testing.T) { // ig-18, ns-15
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1000)
		w.pull("small:1", layer("a", 1))
		w.pull("big:1", layer("b", 100))
		w.of("big:1", func(i *runtime.Image) {
			i.Tags, i.Digests = []string{"t1", "t2", "t3", "t4"}, []string{"d1", "d2"}
		})
		m := newManager(t, w.config())
		assert.Equal(t, []v1.ContainerImage{
			{Names: []string{"d1", "d2", "t1", "t2", "t3"}, SizeBytes: 100},
			{Names: []string{"docker.io/library/small:1"}, SizeBytes: 1},
		}, m.NodeImages(t.Context(), -1))
		assert.Len(t, m.NodeImages(t.Context(), 1), 1)

		w.pull("new:1", layer("c", 10))
		time.Sleep(29 * time.Second)
		synctest.Wait()
		assert.Len(t, m.NodeImages(t.Context(), 50), 2)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Len(t, m.NodeImages(t.Context(), 50), 3)
		w.fail["images"] = errors.New("away")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Empty(t, m.NodeImages(t.Context(), 50), "an error is an empty list")
	})
}

func TestNewNamesTheInvalidField(t *testing.T) {
	w := newWorld(1)
	for want, change := range map[string]func(*imagegc.Config){
		"Store is nil": func(c *imagegc.Config) { c.Store = nil },
		"Space is nil and Policy.HighPercent is ": func(c *imagegc.Config) { c.Space = nil },
		"Period is negative: -1s":                 func(c *imagegc.Config) { c.Period = -time.Second },
	} {
		cfg := w.config()
		change(&cfg)
		_, err := imagegc.New(cfg)
		assert.ErrorContains(t, err, want)
	}
}

func TestPodImages(t *testing.T) {
	pod := podWith("web", "a", "b", "a")
	pod.Spec.InitContainers = []v1.Container{{Image: "init"}}
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Image: "debug"}}}
	pod.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{Image: &v1.ImageVolumeSource{Reference: "data"}}}, {Name: "x"}}
	assert.Equal(t, []string{"init", "a", "b", "debug", "data"}, imagegc.PodImages(pod))
}
