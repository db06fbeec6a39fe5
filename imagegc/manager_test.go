package imagegc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
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

func TestAPolicyThatRemovesNothingStillRecordsImages(t *testing.T) { // ig-2, ig-9
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.pull("a:1", layer("a", 99))
		cfg := w.config()
		cfg.Space, cfg.Policy = nil, imagegc.Policy{HighPercent: new(int32(100))}
		var detected atomic.Int32
		cfg.Hooks.Detected = func(present []string, _ time.Time) { detected.Add(1); assert.Equal(t, []string{"sha256:a:1"}, present) }
		cfg.Hooks.Passed = func(imagegc.PassInfo) { t.Error("a pass") }
		running(t, cfg)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		assert.EqualValues(t, 3, detected.Load())
	})
}

func TestNothingIsRemovedBeforeAllPodsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.pull("a:1", layer("a", 99))
		var ready atomic.Bool
		cfg := w.config()
		cfg.Policy, cfg.Pods = imagegc.Policy{MinAge: -1}, func() ([]*v1.Pod, bool) { return nil, ready.Load() }
		m := running(t, cfg)
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.True(t, w.has("a:1"), "after a restart of the machine nothing runs yet")
		assert.Empty(t, w.emitted(), "which is no failure")
		_, err := m.DeleteUnused(t.Context())
		require.ErrorIs(t, err, imagegc.ErrNotReady)
		ready.Store(true)
		freed, err := m.DeleteUnused(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 99, freed)
		w.pull("b:1", layer("b", 99))
		ready.Store(false)
		time.Sleep(6 * time.Minute)
		ready.Store(true)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		assert.False(t, w.has("b:1"), "it does not take another period")
	})
}

// Pods start and stop while images are collected as fast as possible. An image that a
// pod has pinned, and whose existence it has checked, exists until its container is
// created; from then on it is in use.
func TestAnImageThatAPodIsAboutToUseIsNotRemoved(t *testing.T) {
	w := newWorld(100)
	cfg := w.config()
	cfg.Policy = imagegc.Policy{MinAge: -1, HighPercent: new(int32(0)), LowPercent: new(int32(0))}
	cfg.Pods = nil
	m := newManager(t, cfg)
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			_, _ = m.DeleteUnused(ctx)
		}
	})
	pulls := 0
	for i := range 1000 {
		pod := podWith(fmt.Sprint("web", i), "web:1")
		release, err := m.AcquireImages(ctx, pod)
		require.NoError(t, err)
		if !w.has("web:1") {
			w.pull("web:1", layer("a", 10))
			pulls++
		}
		if i%3 == 0 {
			time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond) // the pull, the mounts
		}
		require.True(t, w.has("web:1"), "container %d cannot be made", i)
		w.use(pod.Name, "web:1")
		release()
		require.True(t, w.has("web:1"), "container %d runs without its image", i)
		if i%2 == 0 {
			time.Sleep(time.Duration(rand.IntN(50)) * time.Microsecond)
			require.True(t, w.has("web:1"))
		}
		w.unuse(pod.Name)
	}
	stop()
	wg.Wait()
	t.Logf("pulled %d times", pulls)
}

// The pod waits for the removal of its first image. Its second is not removed meanwhile.
func TestNoOtherImageOfAWaitingPodIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.pull("first:1", layer("a", 10))
		time.Sleep(time.Second)
		w.pull("second:1", layer("b", 10))
		w.onRemove = func(string) { time.Sleep(10 * time.Second) }
		cfg := w.config()
		cfg.Policy, cfg.Pods = imagegc.Policy{MinAge: -1, HighPercent: new(int32(0)), LowPercent: new(int32(0))}, nil
		m := newManager(t, cfg)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = m.DeleteUnused(t.Context()) })
		time.Sleep(time.Second)
		pod := podWith("web", "first:1")
		pod.Spec.Containers = append(pod.Spec.Containers, podWith("web", "second:1").Spec.Containers...)
		release, err := m.AcquireImages(t.Context(), pod)
		require.NoError(t, err)
		wg.Wait()
		assert.Equal(t, []bool{false, true}, []bool{w.has("first:1"), w.has("second:1")})
		release()
	})
}

func TestEnsureWaitsForRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(100)
		w.pull("web:1", layer("a", 90))
		w.onRemove = func(string) { time.Sleep(10 * time.Second) }
		cfg := w.config()
		cfg.Policy.MinAge = -1
		m := newManager(t, cfg)
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = m.Collect(t.Context()) })
		time.Sleep(time.Second)

		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := m.Acquire(impatient, "docker.io/library/web:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		other, err := m.Acquire(t.Context(), "other")
		require.NoError(t, err, "others don't wait")
		other()

		began := time.Now()
		release, err := m.Acquire(t.Context(), "other", "web:1", "")
		require.NoError(t, err)
		assert.Equal(t, 8*time.Second, time.Since(began))
		assert.False(t, w.has("web:1"), "it must be pulled again")
		release()
		release()
		wg.Wait()
	})
}

func TestAPodAddedDuringAPassKeepsItsImage(t *testing.T) {
	w := newWorld(100)
	w.pull("a:1", layer("a", 50))
	w.pull("b:1", layer("b", 45))
	w.onRemove = func(id string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pods = append(w.pods, podWith("web", "b:1"))
	}
	cfg := w.config()
	cfg.Policy.MinAge = -1
	report, err := newManager(t, cfg).Collect(t.Context())
	require.NoError(t, err)
	assert.Len(t, report.Removed, 1)
	w.mu.Lock()
	w.others = 50
	w.mu.Unlock()
	assert.True(t, w.has("b:1"))
	_, err = newManager(t, cfg).Collect(t.Context())
	var short *imagegc.ShortageError
	require.ErrorAs(t, err, &short)
	assert.True(t, w.has("b:1"))
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

// An agent that is killed at any moment, also during a write, decides like one that
// was not.
func TestAKilledAgentDecidesLikeAnyOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		path := filepath.Join(t.TempDir(), "images.json")
		w := newWorld(1000)
		steady, shaky := w.config(), w.config()
		shaky.Path = path
		shaky.Hooks.Failed = func(err error) { t.Errorf("%v", err) }
		one, other := newManager(t, steady), newManager(t, shaky)
		for i := range 100 {
			switch r.IntN(4) {
			case 0:
				w.pull(fmt.Sprintf("a%d:1", i), layer(fmt.Sprint(i), 10))
			case 1:
				w.use(fmt.Sprint("pod", i), fmt.Sprintf("a%d:1", r.IntN(i+1)))
			case 2:
				w.unuse(fmt.Sprint("pod", r.IntN(i+1)))
			}
			a, err := one.DryRun(t.Context())
			require.NoError(t, err)
			b, err := other.DryRun(t.Context())
			require.NoError(t, err)
			require.Equal(t, decisions(a), decisions(b))

			// It is killed in the middle of the next write.
			whole, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path+".tmp", whole[:r.IntN(len(whole))], 0o600))
			other = newManager(t, shaky)
			time.Sleep(time.Duration(r.IntN(90)) * time.Second)
		}
	})
}

func decisions(p imagegc.Plan) (lines []string) {
	for _, d := range p.Decisions {
		lines = append(lines, d.String())
	}
	return lines
}

func TestAnUnreadableCheckpointIsReportedAndImagesAreNew(t *testing.T) { // ig-6
	path := filepath.Join(t.TempDir(), "images.json")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	w := newWorld(100)
	w.pull("a:1", layer("a", 90))
	cfg := w.config()
	cfg.Path = path
	var told []error
	cfg.Hooks.Failed = func(err error) { told = append(told, err) }
	plan, err := newManager(t, cfg).DryRun(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "too young", plan.Decisions[0].Verdict)
	require.Len(t, told, 1)
	assert.ErrorContains(t, told[0], path)

	cfg.Path = filepath.Join(t.TempDir(), "none", "images.json")
	_, err = newManager(t, cfg).DryRun(t.Context())
	require.NoError(t, err, "images are still collected")
	assert.Len(t, told, 2)
}

func TestTheUsersOfAnImageAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1000)
		cfg := w.config()
		cfg.Path = filepath.Join(t.TempDir(), "images.json")
		m := newManager(t, cfg)
		release, err := m.AcquireImages(t.Context(), podWith("web", "a:1"))
		require.NoError(t, err)
		w.pull("a:1", layer("a", 1))
		release()
		_, err = m.DryRun(t.Context())
		require.NoError(t, err)
		time.Sleep(time.Hour)
		plan, err := newManager(t, cfg).DryRun(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "default/web", plan.Decisions[0].Record.PulledBy)
	})
}

// An eviction may be the first pass since an image was pulled: an image whose last pod
// terminated long ago is removed, and a new one is not.
func TestAnImageIsAsOldAsItsLastPin(t *testing.T) { // ig-5, ig-13, ig-16
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1000)
		m := newManager(t, w.config())
		for _, image := range []string{"first:1", "second:1"} {
			release, err := m.AcquireImages(t.Context(), podWith("job", image))
			require.NoError(t, err)
			w.pull(image, layer(image, 100))
			release()
			time.Sleep(imagegc.DefaultMinAge - time.Second)
		}
		w.pull("nobodys:1", layer("c", 1))
		time.Sleep(2 * time.Second)
		freed, err := m.DeleteUnused(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 200, freed)
		assert.True(t, w.has("nobodys:1"), "it is seen for the first time")
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

func TestUsageOfDirectories(t *testing.T) {
	file := func(n int) *fstest.MapFile { return &fstest.MapFile{Data: make([]byte, n)} }
	disk := fstest.MapFS{
		"log/pods/a/0.log":                              file(100),
		"log/pods/b/c/1.log":                            file(50),
		"pods/u1/volumes/kubernetes.io~empty-dir/tmp/x": file(1000),
		"pods/u2/volumes/kubernetes.io~empty-dir/y/z/1": file(200),
		"pods/u2/volumes/kubernetes.io~secret/token/t":  file(7),
	}
	holders, err := imagegc.DirUsage(t.Context(), disk, map[string][]string{
		"logs of pods":     {"log/pods", "log/pods/a"},
		"emptyDir volumes": {"pods/*/volumes/kubernetes.io~empty-dir"},
		"nothing":          {"none/*"},
	})
	require.NoError(t, err)
	assert.Equal(t, []imagegc.Consumer{{"emptyDir volumes", 1200}, {"logs of pods", 150}, {"nothing", 0}}, holders)

	_, err = imagegc.DirUsage(t.Context(), disk, map[string][]string{"bad": {"["}})
	assert.ErrorContains(t, err, `class "bad": pattern "["`)

	// The error for a disk filled by other files reports that.
	w := newWorld(2000)
	w.others = 1800
	cfg := w.config()
	cfg.Consumers = func(ctx context.Context) ([]imagegc.Consumer, error) {
		return holders, errors.New("one was unreadable")
	}
	_, err = newManager(t, cfg).Collect(t.Context())
	assert.ErrorContains(t, err, "Space is used by emptyDir volumes: 1.2 KiB, other: 450 B, logs of pods: 150 B.")
}

func TestSpaceOfAFileSystem(t *testing.T) {
	space, err := imagegc.StatFS(t.TempDir())
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("not on this operating system")
	}
	require.NoError(t, err)
	assert.NotZero(t, space.Capacity)
	assert.LessOrEqual(t, space.Available, space.Capacity)
	_, err = imagegc.StatFS("/no/such/path")
	assert.ErrorContains(t, err, "/no/such/path")

	fs := imageFS{runtime.FSUsage{Mountpoint: t.TempDir()}}
	space, err = imagegc.SpaceOf(fs)(t.Context())
	require.NoError(t, err)
	assert.NotZero(t, space.Capacity)
	_, err = imagegc.SpaceOf(imageFS{})(t.Context())
	assert.EqualError(t, err, "imagegc: runtime reports no image file system")
}

type imageFS []runtime.FSUsage

func (f imageFS) ImageFS(context.Context) (images, containers []runtime.FSUsage, err error) {
	return f, nil, nil
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
