package podworker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// A ward is a runtime of pods that run until they are terminated.
type ward struct {
	silent

	mu   sync.Mutex
	pods map[types.UID]*runtime.Pod
	stop time.Duration
}

func (w *ward) Terminate(ctx context.Context, work podworker.SyncRequest) error {
	select {
	case <-time.After(w.stop):
	case <-ctx.Done():
		return ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pods, work.UID)
	return nil
}

func (w *ward) list() (pods []*runtime.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pod := range w.pods {
		pods = append(pods, pod)
	}
	return pods
}

func newWard(orphans int) *ward {
	w := &ward{pods: map[types.UID]*runtime.Pod{}, stop: time.Second}
	for i := range orphans {
		uid := types.UID(fmt.Sprint("orphan-", i))
		w.pods[uid] = &runtime.Pod{UID: uid, Name: string(uid), Namespace: "default", Sandboxes: []runtime.Sandbox{{State: runtime.SandboxReady}}}
	}
	return w
}

func TestARuntimeFullOfOrphansIsEmptied(t *testing.T) { // inv-18, sl-56
	synctest.Test(t, func(t *testing.T) {
		h := newWard(500)
		ended := 0
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{list: h.list}, Parallel: 50})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Sources: []string{"api"},
			Hooks: podworker.Hooks{Orphan: func(*runtime.Pod) { ended++ }}})
		loop.SourceSynced("api")
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		assert.Empty(t, h.list())
		assert.Empty(t, w.Table().States(), "and nothing is kept of them")
		assert.Equal(t, 500, ended)
	})
}

func TestHousekeepingKeepsNoPodWaiting(t *testing.T) { // lq-11, sl-59
	synctest.Test(t, func(t *testing.T) {
		h := newWard(1000)
		h.stop = time.Minute
		var late atomic.Int64 // the most that anything waited
		waited := func(d time.Duration) {
			if d > 0 {
				late.Store(int64(d))
			}
		}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{list: func() []*runtime.Pod {
			time.Sleep(time.Second) // a list that takes long
			return h.list()
		}}, Hooks: podworker.Hooks{Synced: func(i podworker.SyncInfo) {
			if i.First && i.State == podworker.Syncing {
				waited(i.SinceAdded)
			}
		}}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w})
		for i := range 100 {
			loop.PodChanged("orphan-1")
			began := time.Now()
			loop.AddPods([]*v1.Pod{newPod(fmt.Sprint("pod-", i), 0)})
			waited(time.Since(began))
			time.Sleep(50 * time.Millisecond)
		}
		synctest.Wait()
		assert.Zero(t, late.Load(), "additions wait for no housekeeping")
		stop()
	})
}

func TestAPodWithoutAWorkerMayRunUntilAllSourcesHaveSynced(t *testing.T) { // pw-50 and the table of section 2.2
	synctest.Test(t, func(t *testing.T) {
		w, err := podworker.New(podworker.Config{Handler: newWard(0), StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Sources: []string{"file", "api"}})
		state := func() podworker.State {
			s, _ := w.Table().State("web")
			return s
		}
		loop.SourceSynced("file")
		assert.Equal(t, podworker.Syncing, state(), "CouldHaveRunningContainers")
		loop.SourceSynced("api")
		assert.Equal(t, podworker.Finished, state(), "ShouldPodRuntimeBeRemoved")
		loop.AddPods([]*v1.Pod{newPod("web", 0)})
		assert.Equal(t, podworker.Syncing, state())
		loop.RemovePods([]*v1.Pod{newPod("web", 0)})
		time.Sleep(500 * time.Millisecond)
		assert.Equal(t, podworker.Terminating, state(), "no container is started any more, those there are may run")
		time.Sleep(time.Second)
		assert.Equal(t, podworker.Finished, state())
		stop()
	})
}

func TestPodsThatStartOverAreCounted(t *testing.T) { // sl-54
	synctest.Test(t, func(t *testing.T) {
		var restarted []types.UID
		w, err := podworker.New(podworker.Config{Handler: newWard(0), StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Hooks: podworker.Hooks{Restarted: func(p *v1.Pod) { restarted = append(restarted, p.UID) }}})
		pod := newPod("web", 0)
		loop.AddPods([]*v1.Pod{pod})
		loop.RemovePods([]*v1.Pod{pod})
		loop.AddPods([]*v1.Pod{pod})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		assert.Equal(t, []types.UID{"web"}, restarted)
		stop()
	})
}

func TestATableDeliversUpdatesFromBeforeTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := new(podworker.Table)
		h := newWard(1)
		for range 1000 {
			table.PodChanged("orphan-0") // once is enough, and no one waits
		}
		assert.False(t, table.Synced())
		w, err := podworker.New(podworker.Config{Table: table, Handler: h, StatusCache: observed{list: h.list}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Sources: []string{"api"}})
		synctest.Wait()
		assert.Len(t, h.list(), 1)
		loop.SourceSynced("api")
		assert.True(t, table.Synced())
		time.Sleep(2 * time.Second)
		assert.Empty(t, h.list())
		stop()
	})
	table := new(podworker.Table)
	w, err := podworker.New(podworker.Config{Table: table, Handler: newWard(0), StatusCache: observed{}})
	require.NoError(t, err)
	_, err = podworker.NewLoop(podworker.LoopConfig{Workers: w})
	require.NoError(t, err)
	assert.True(t, table.Synced(), "there is no source to wait for")
	_, err = podworker.NewLoop(podworker.LoopConfig{Workers: w})
	require.EqualError(t, err, "podworker: Config.Table is used by another Loop")
	_, err = podworker.New(podworker.Config{Table: table, Handler: newWard(0), StatusCache: observed{}})
	require.EqualError(t, err, "podworker: Config.Table is used by other Workers")
}

// mirrors stores mirror pods, as an API server does.
type mirrors struct {
	node metav1.OwnerReference

	mu      sync.Mutex
	noNode  bool
	fail    error
	created []*v1.Pod
	deleted []types.UID
}

func (m *mirrors) Node() (metav1.OwnerReference, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.node, !m.noNode
}
func (m *mirrors) CreateMirror(_ context.Context, pod *v1.Pod) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.created = append(m.created, pod)
	return m.fail
}
func (m *mirrors) DeleteMirror(_ context.Context, pod *v1.Pod) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted = append(m.deleted, pod.UID)
	return m.fail
}

// are returns the calls made so far.
func (m *mirrors) are() (created []*v1.Pod, deleted []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.created), slices.Clone(m.deleted)
}

func (m *mirrors) set(noNode bool, fail error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noNode, m.fail = noNode, fail
}

func named(uid, name string, annotations map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: name, Namespace: "default", Annotations: annotations}}
}

func TestMirrorsOfRemovedPodsAreDeleted(t *testing.T) { // sl-53
	synctest.Test(t, func(t *testing.T) {
		m, h := new(mirrors), newWard(0)
		deleted := func() []types.UID {
			_, uids := m.are()
			return uids
		}
		h.stop = 10 * time.Second
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{list: h.list}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Mirrors: m, Sources: []string{"file", "api"}})
		static := named("s1", "web", map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "h1"})
		mirror := named("m1", "web", map[string]string{"kubernetes.io/config.mirror": "h1"})
		lost := named("m2", "lost", map[string]string{"kubernetes.io/config.mirror": "h2"})
		loop.AddPods([]*v1.Pod{mirror, lost})
		loop.SourceSynced("api")
		synctest.Wait()
		assert.Empty(t, deleted(), "its static pod may not have been received yet")
		loop.AddPods([]*v1.Pod{static})
		loop.SourceSynced("file")
		synctest.Wait()
		assert.Equal(t, []types.UID{"m2"}, deleted())
		loop.RemovePods([]*v1.Pod{lost})

		pod, copied := w.Table().Pod("m1")
		assert.Same(t, static, pod, "ps-5")
		assert.Same(t, mirror, copied, "ps-5")
		assert.Same(t, static, w.Table().PodByName("default", "web"))
		assert.Equal(t, types.UID("s1"), w.Table().TranslateUID("m1"))
		assert.Equal(t, map[types.UID]types.UID{"s1": "m1"}, w.Table().MirrorUIDs())
		assert.Equal(t, []*v1.Pod{static}, w.Table().Desired(), "sl-27: a mirror is not run")

		loop.RemovePods([]*v1.Pod{static})
		time.Sleep(5 * time.Second)
		synctest.Wait()
		assert.Equal(t, []types.UID{"m2"}, deleted(), "its pod has not stopped, and its status is shown there")
		pod, copied = w.Table().Pod("m1")
		assert.Nil(t, pod, "ps-5")
		assert.Same(t, mirror, copied, "ps-5")
		m.set(false, errors.New("forbidden"))
		time.Sleep(6 * time.Second)
		synctest.Wait()
		assert.Equal(t, []types.UID{"m2", "m1"}, deleted())
		time.Sleep(61 * time.Second)
		synctest.Wait()
		assert.Equal(t, []types.UID{"m2", "m1", "m1"}, deleted(), "a failed deletion is retried")
		stop()
	})
}

// endless is a runtime that removes containers until ctx is done.
type endless struct{ began chan struct{} }

func (s endless) CollectGarbage(ctx context.Context, _ runtime.GCPolicy) error {
	select {
	case s.began <- struct{}{}:
	default: // another period ended with the test
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestMirrorsAreDeletedWhileContainersAreRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h, s := new(mirrors), newWard(0), endless{make(chan struct{}, 1)}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{list: h.list}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Mirrors: m, Garbage: s, Sources: []string{"api"}})
		loop.SourceSynced("api")
		<-s.began
		loop.AddPods([]*v1.Pod{named("m1", "lost", map[string]string{"kubernetes.io/config.mirror": "h1"})})
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		_, deleted := m.are()
		assert.NotEmpty(t, deleted)
		stop()
	})
}

// A static pod that has completed is not synced any more (k/k 116483).
func TestTheDeletedMirrorOfACompletedStaticPodIsCreatedAgain(t *testing.T) { // mir-6
	synctest.Test(t, func(t *testing.T) {
		m := &mirrors{node: metav1.OwnerReference{Name: "kitchen", UID: "node-uid"}}
		h := &mirroring{mirrors: m, terminal: true}
		w, err := podworker.New(podworker.Config{Handler: h, StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Mirrors: m, Sources: []string{"file", "api"}})
		defer stop()
		static := named("s1", "job", map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "h1"})
		mirror := named("m1", "job", map[string]string{"kubernetes.io/config.mirror": "h1"})
		loop.AddPods([]*v1.Pod{mirror, static})
		loop.SourceSynced("file")
		loop.SourceSynced("api")
		synctest.Wait()
		state, _ := w.Table().State("s1")
		require.Equal(t, podworker.Finished, state)
		created, _ := m.are()
		assert.Empty(t, created)

		m.set(false, errors.New("unavailable"))
		loop.RemovePods([]*v1.Pod{mirror})
		synctest.Wait()
		created, _ = m.are()
		assert.Len(t, created, 1)
		m.set(false, nil)
		time.Sleep(61 * time.Second)
		created, _ = m.are()
		require.Len(t, created, 2, "a failure is retried")
		assert.Equal(t, "h1", created[1].Annotations["kubernetes.io/config.mirror"])

		assert.Empty(t, h.reconciled)
		loop.AddPods([]*v1.Pod{named("m2", "job", map[string]string{"kubernetes.io/config.mirror": "h1"})})
		synctest.Wait()
		assert.Equal(t, []types.UID{"s1"}, h.reconciled, "its status is written to the new one")
		time.Sleep(5 * time.Minute)
		created, _ = m.are()
		assert.Len(t, created, 2)
	})
}

// A mirroring is a Handler that only syncs the mirror pods of static pods, and records the pods
// whose status is compared with that of their object.
type mirroring struct {
	mirrors    podworker.Mirrors
	terminal   bool // Sync returns a terminal result
	reconciled []types.UID
}

func (h *mirroring) Sync(ctx context.Context, req podworker.SyncRequest) (podworker.SyncResult, error) {
	if h.terminal || !runtime.IsStatic(req.Pod) {
		return podworker.SyncResult{Terminal: h.terminal}, nil
	}
	return podworker.SyncResult{}, podworker.SyncMirror(ctx, h.mirrors, req.Pod, req.Mirror)
}

func (*mirroring) Terminate(context.Context, podworker.SyncRequest) error { return nil }
func (*mirroring) Cleanup(context.Context, podworker.SyncRequest) error   { return nil }
func (h *mirroring) Reconcile(pod *v1.Pod)                                { h.reconciled = append(h.reconciled, pod.UID) }

func TestSyncStaticCreatesMirrorsOnceTheNodeExists(t *testing.T) { // sl-65
	synctest.Test(t, func(t *testing.T) {
		m := &mirrors{noNode: true, node: metav1.OwnerReference{Name: "kitchen", UID: "node-uid"}}
		w, err := podworker.New(podworker.Config{Handler: &mirroring{mirrors: m}, StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w})
		loop.AddPods([]*v1.Pod{
			named("s1", "web", map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "h1"}),
			named("p1", "db", nil),
		})
		synctest.Wait()
		created, _ := m.are()
		assert.Empty(t, created, "sl-32: no node, no copy")
		m.set(false, nil)
		w.Table().SyncStatic()
		synctest.Wait()
		created, _ = m.are()
		require.Len(t, created, 1)
		assert.Equal(t, "h1", created[0].Annotations["kubernetes.io/config.mirror"])
		stop()
	})
}
