package allocation_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

// A desk is a Manager with all that it is told and tells: it admits what fits
// into room CPUs, and writes down who asked and what happened.
type desk struct {
	*allocation.Manager
	cfg allocation.Config

	mu      sync.Mutex // for tests with a Run
	room    int64      // in CPUs; negative: no limit
	never   bool       // what does not fit is infeasible
	notYet  bool       // sources are not ready
	asked   []string
	others  []*v1.Pod // at the last question
	events  []string
	changed []types.UID
	decided []allocation.DecisionInfo
	resized []allocation.ResizedInfo
}

func (d *desk) admit(_ context.Context, req allocation.Request) *allocation.Refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, string(req.Operation)+" "+string(req.Pod.UID)+" "+cpus(req.Pod))
	d.others = req.Others
	used := int64(0)
	for _, p := range append(req.Others, req.Pod) {
		for i := range p.Spec.Containers {
			used += p.Spec.Containers[i].Resources.Requests.Cpu().Value()
		}
	}
	if d.room >= 0 && used > d.room {
		return &allocation.Refusal{Reason: "OutOfcpu", Message: "no room", Infeasible: d.never}
	}
	return nil
}

// cpus returns the cpu requests of the regular containers.
func cpus(p *v1.Pod) string {
	var all []string
	for i := range p.Spec.Containers {
		all = append(all, p.Spec.Containers[i].Resources.Requests.Cpu().String())
	}
	return strings.Join(all, ",")
}

// open makes the Manager anew, as a restarted agent does.
func (d *desk) open(t *testing.T) *desk {
	t.Helper()
	var err error
	d.Manager, err = allocation.Open(d.cfg)
	require.NoError(t, err)
	return d
}

func newDesk(t *testing.T, cfg allocation.Config) *desk {
	d := &desk{room: -1}
	cfg.Admit = d.admit
	cfg.Ready = func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return !d.notYet
	}
	cfg.Changed = func(uid types.UID) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.changed = append(d.changed, uid)
	}
	cfg.Record = func(e runtime.Event) {
		d.events = append(d.events, e.Object.Name+" "+e.Type+" "+e.Reason+" "+e.Message)
	}
	cfg.Hooks.Decided = func(i allocation.DecisionInfo) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.decided = append(d.decided, i)
	}
	cfg.Hooks.Resized = func(i allocation.ResizedInfo) { d.resized = append(d.resized, i) }
	d.cfg = cfg
	return d.open(t)
}

// runningAt lets a pod in and runs it, and asks for figures then.
func (d *desk) runningAt(t *testing.T, uid types.UID, now string) *v1.Pod {
	t.Helper()
	pod := podOf(uid, "a: "+now)
	require.Nil(t, d.Admit(t.Context(), pod))
	require.Same(t, pod, d.Allocate(t.Context(), pod, runs("a: "+now)))
	return pod
}

func wants(pod *v1.Pod, figures string) *v1.Pod {
	p := pod.DeepCopy()
	p.Spec.Containers[0].Resources = res(figures)
	p.Generation++
	return p
}

func conditions(d *desk, uid types.UID) []string {
	var list []string
	for _, c := range d.State(uid).Conditions() {
		s := string(c.Type) + "=" + string(c.Status) + " " + c.Reason + " " + c.Message
		list = append(list, strings.TrimSpace(s)+" @"+string('0'+rune(c.ObservedGeneration)))
	}
	return list
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	names := []string{}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}

func TestAResizeFromTheUpdateToItsEnd(t *testing.T) { // al-9, al-12, al-13, al-14
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, allocation.Config{})
		pod := wants(d.runningAt(t, "u", "cpu=1/1"), "cpu=2/2")
		got := d.Allocate(t.Context(), pod, runs("a: cpu=1/1"))
		assert.Same(t, pod, got, "it has what it asks for: nothing to copy")
		assert.Equal(t, []string{"add u 1", "resize u 2"}, d.asked, "al-9")
		assert.Equal(t, []string{"PodResizeInProgress=True @2"}, conditions(d, "u"))
		assert.Equal(t, []string{`u Normal ResizeStarted Pod resize started: {"containers":[{"name":"a","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}}],"generation":2}`}, d.events)

		d.events = nil
		d.Resized(pod, assert.AnError)
		d.Resized(pod, assert.AnError)
		assert.Equal(t, []string{"PodResizeInProgress=True Error " + assert.AnError.Error() + " @2"}, conditions(d, "u"), "al-12")
		require.Len(t, d.events, 1, "told once")
		assert.Contains(t, d.events[0], `u Warning ResizeError Pod resize error: {"containers":`)
		assert.Contains(t, d.events[0], `"generation":2,"error":"`+assert.AnError.Error()+`"}`)

		d.events = nil
		d.Resized(pod, nil)
		assert.Equal(t, []string{"PodResizeInProgress=True @2"}, conditions(d, "u"), "until it is seen")
		time.Sleep(time.Second)
		d.Allocate(t.Context(), pod, nil)
		assert.NotEmpty(t, conditions(d, "u"), "nobody looked")
		d.Allocate(t.Context(), pod, runs("a: cpu=2/2"))
		assert.Empty(t, conditions(d, "u"))
		assert.Equal(t, []string{`u Normal ResizeCompleted Pod resize completed: {"containers":[{"name":"a","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}}],"generation":2}`}, d.events)
		assert.Equal(t, []allocation.ResizedInfo{{UID: "u", Duration: time.Second}}, d.resized)
		assert.Empty(t, d.changed, "all of it in its own syncs")
	})
}

func TestARefusedResizeLeavesThePodWhatItHad(t *testing.T) { // L-55, #126033
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, allocation.Config{})
		d.room = 3
		d.runningAt(t, "other", "cpu=2/2")
		pod := wants(d.runningAt(t, "u", "cpu=1/1"), "cpu=2/2")

		got := d.Allocate(t.Context(), pod, runs("a: cpu=1/1"))
		assert.Equal(t, "1", cpus(got))
		assert.Equal(t, "1", cpus(d.Allocated(pod)), "what restarts after a crash gets this too")
		assert.Equal(t, []string{"PodResizePending=True Deferred no room @2"}, conditions(d, "u"), "al-11, al-12")
		assert.Equal(t, []string{`u Warning ResizeDeferred Pod resize Deferred: {"containers":[{"name":"a","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}}],"generation":2,"error":"no room"}`}, d.events, "al-13")

		asked := len(d.asked)
		d.Allocate(t.Context(), pod, runs("a: cpu=1/1"))
		assert.Len(t, d.asked, asked, "al-7: not at every sync")

		time.Sleep(time.Minute)
		d.room = 4
		assert.Equal(t, 1, d.Retry(t.Context(), allocation.PodTerminated))
		assert.Equal(t, []types.UID{"u"}, d.changed)
		assert.Equal(t, "2", cpus(d.Allocated(pod)))
		assert.Equal(t, allocation.DecisionInfo{UID: "u", Trigger: "pod_terminated", Before: allocation.Deferred, Waited: time.Minute}, d.decided[1])
		assert.Equal(t, []string{"PodResizeInProgress=True @2"}, conditions(d, "u"))
	})
}

func TestWhatIsAskedNoMoreIsPendingNoMore(t *testing.T) { // sl-21
	d := newDesk(t, allocation.Config{})
	first := d.runningAt(t, "u", "cpu=1/1")
	d.room = 1
	more := wants(first, "cpu=2/2")
	d.Allocate(t.Context(), more, nil)
	require.NotEmpty(t, conditions(d, "u"))
	back := wants(more, "cpu=1000m/1")
	assert.Same(t, back, d.Allocate(t.Context(), back, nil))
	assert.Empty(t, conditions(d, "u"))
	assert.Zero(t, d.Retry(t.Context(), allocation.PeriodicRetry))
	d.room = 2
	again := wants(back, "cpu=2/2")
	assert.Same(t, again, d.Allocate(t.Context(), again, nil), "asked anew, it is decided anew")
}

func TestAnInfeasibleResizeIsNotTriedAgain(t *testing.T) { // al-10
	d := newDesk(t, allocation.Config{})
	d.room, d.never = 1, true
	pod := wants(d.runningAt(t, "u", "cpu=1/1"), "cpu=2/2")
	d.Allocate(t.Context(), pod, nil)
	assert.Equal(t, []string{"PodResizePending=True Infeasible no room @2"}, conditions(d, "u"))
	assert.Contains(t, d.events[0], "u Warning ResizeInfeasible Pod resize Infeasible: {")
	asked := len(d.asked)
	for range 3 {
		d.Retry(t.Context(), allocation.PeriodicRetry)
		d.Allocate(t.Context(), pod, nil)
	}
	assert.Len(t, d.asked, asked)
	relabelled := pod.DeepCopy()
	relabelled.Generation++
	d.Allocate(t.Context(), relabelled, nil)
	assert.Len(t, d.asked, asked, "it asks for the same")

	d.room = 3
	other := wants(pod, "cpu=3/3")
	assert.Same(t, other, d.Allocate(t.Context(), other, nil), "another resize is another matter")
}

func TestWhatANodeCannotDoIsInfeasible(t *testing.T) {
	swaps := func(_ *v1.Pod, c *v1.Container) bool { return c.Name == "a" }
	restart := func(pod *v1.Pod) *v1.Pod {
		pod.Spec.Containers[0].ResizePolicy = []v1.ContainerResizePolicy{{ResourceName: "cpu"}, {ResourceName: "memory", RestartPolicy: v1.RestartContainer}}
		return pod
	}
	const guaranteed = "cpu=1/1 memory=1Gi/1Gi"
	static := allocation.NodeFacts{StaticCPU: true, StaticMemory: true}
	for name, tc := range map[string]struct {
		node             allocation.NodeFacts
		desired, granted *v1.Pod
		want             string
	}{
		"al-10 nothing against it":                        {allocation.NodeFacts{}, podOf("u", "a: cpu=2/2"), podOf("u", "a: cpu=1/1"), ""},
		"al-10 off":                                       {allocation.NodeFacts{NoResize: "the runtime cannot"}, podOf("u", "a: cpu=2/2"), podOf("u", "a: cpu=1/1"), "the runtime cannot"},
		"al-10 memory that may swap":                      {allocation.NodeFacts{Swaps: swaps}, podOf("u", "a: memory=2"), podOf("u", "a: memory=1"), "the memory of container a, which may swap, cannot be resized without a restart"},
		"al-10 memory that may swap, with a restart":      {allocation.NodeFacts{Swaps: swaps}, restart(podOf("u", "a: memory=2")), podOf("u", "a: memory=1"), ""},
		"al-10 only cpu of what may swap":                 {allocation.NodeFacts{Swaps: swaps}, podOf("u", "a: cpu=2 memory=1"), podOf("u", "a: cpu=1 memory=1"), ""},
		"al-10 memory of what may not swap":               {allocation.NodeFacts{Swaps: swaps}, podOf("u", "b: memory=2"), podOf("u", "b: memory=1"), ""},
		"al-10 cpu under a static manager":                {static, podOf("u", "a: cpu=2/2 memory=1Gi/1Gi"), podOf("u", "a: "+guaranteed), "the cpu of a Guaranteed pod cannot be resized under a static CPU manager"},
		"al-10 memory under a static manager":             {static, podOf("u", "a: cpu=1/1 memory=2Gi/2Gi"), podOf("u", "a: "+guaranteed), "the memory of a Guaranteed pod cannot be resized under a static memory manager"},
		"al-10 a static manager has no part in Burstable": {static, podOf("u", "a: cpu=2/3"), podOf("u", "a: cpu=1/3"), ""},
		"al-10 a static manager of the other resource":    {allocation.NodeFacts{StaticMemory: true}, podOf("u", "a: cpu=2/2 memory=1Gi/1Gi"), podOf("u", "a: "+guaranteed), ""},
		"more cpu than there is":                          {allocation.NodeFacts{Allocatable: res("cpu=4").Requests}, podOf("u", "a: cpu=3", "b: cpu=2"), podOf("u", "a: cpu=1", "b: cpu=2"), "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"},
		"more memory than there is":                       {allocation.NodeFacts{Allocatable: res("memory=1Ki").Requests}, podOf("u", "a: memory=2Ki"), podOf("u", "a:"), "Node didn't have enough capacity: memory, requested: 2048, capacity: 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, tc.node.Feasible(tc.desired, tc.granted))
		})
	}
	t.Run("al-10 nobody else is asked then", func(t *testing.T) {
		d := newDesk(t, allocation.Config{Node: static})
		pod := wants(d.runningAt(t, "u", guaranteed), "cpu=2/2 memory=1Gi/1Gi")
		d.Allocate(t.Context(), pod, nil)
		assert.Equal(t, []string{"add u 1"}, d.asked)
		assert.Equal(t, []string{"PodResizePending=True Infeasible the cpu of a Guaranteed pod cannot be resized under a static CPU manager @2"}, conditions(d, "u"))
	})
}

func TestPendingResizesGoInOrder(t *testing.T) { // al-6
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, allocation.Config{})
		d.notYet = true
		ask := func(uid types.UID, now, then string, priority int32) {
			pod := wants(d.runningAt(t, uid, now), then)
			pod.Spec.Priority = new(priority)
			d.Allocate(t.Context(), pod, nil)
		}
		ask("e-equal", "cpu=1", "cpu=2", 5)
		ask("f-equal", "cpu=1", "cpu=2", 5)
		ask("d-guaranteed", "cpu=1/1 memory=1/1", "cpu=2/2 memory=1/1", 5)
		ask("c-important", "cpu=1", "cpu=2", 9)
		ask("b-less", "cpu=2", "cpu=1", 1)
		ask("a-later", "cpu=1", "cpu=2", 5) // by its name it would be first
		d.asked, d.notYet, d.room = nil, false, 0
		d.Retry(t.Context(), allocation.PeriodicRetry)
		assert.Equal(t, []string{"resize b-less 1", "resize c-important 2", "resize d-guaranteed 2", "resize a-later 2", "resize e-equal 2", "resize f-equal 2"}, d.asked)

		// All of these were refused at one time. The next one is refused later,
		// and goes behind its equals though its name is the first.
		time.Sleep(time.Second)
		ready := d.room
		d.room = -1
		young := wants(d.runningAt(t, "0-young", "cpu=1"), "cpu=2")
		young.Spec.Priority = new(int32(5))
		d.room = ready
		d.asked = nil
		d.Allocate(t.Context(), young, nil)
		assert.Equal(t, "resize 0-young 2", d.asked[len(d.asked)-1], "never refused: it has waited least")
		d.asked = nil
		d.Retry(t.Context(), allocation.PeriodicRetry)
		assert.Equal(t, "resize 0-young 2", d.asked[len(d.asked)-1], "longest deferred first")
	})
}

func TestWhatIsGivenUpIsThereForTheNext(t *testing.T) { // al-6, al-9
	d := newDesk(t, allocation.Config{})
	d.room = 6
	d.notYet = true
	big := wants(d.runningAt(t, "a", "cpu=2"), "cpu=5")
	small := wants(d.runningAt(t, "b", "cpu=4"), "cpu=1")
	d.Allocate(t.Context(), big, nil)
	d.Allocate(t.Context(), small, nil)
	assert.Equal(t, "2", cpus(d.Allocated(big)))
	d.notYet = false
	assert.Equal(t, 2, d.Retry(t.Context(), allocation.PodsAdded))
	require.Len(t, d.others, 1)
	assert.Equal(t, "1", cpus(d.others[0]), "others with what they were granted")
	assert.Equal(t, "5", cpus(d.Allocated(big)))
}

func TestNothingIsDecidedWhileSourcesAreNotReady(t *testing.T) { // al-8
	d := newDesk(t, allocation.Config{})
	d.notYet = true
	pod := wants(d.runningAt(t, "u", "cpu=1"), "cpu=2")
	assert.Equal(t, "1", cpus(d.Allocate(t.Context(), pod, nil)))
	for _, trigger := range []allocation.Trigger{allocation.PodsAdded, allocation.PodUpdated, allocation.PodsRemoved, allocation.PodTerminated, allocation.PodResized, allocation.PeriodicRetry} {
		assert.Zero(t, d.Retry(t.Context(), trigger))
	}
	assert.Equal(t, []string{"add u 1"}, d.asked)
	assert.Empty(t, conditions(d, "u"))
}

func TestTriggersAreNamed(t *testing.T) { // al-7
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, allocation.Config{})
		d.room = 2
		other := d.runningAt(t, "other", "cpu=1/1")
		pod := wants(d.runningAt(t, "u", "cpu=1/1"), "cpu=2/2")
		d.Allocate(t.Context(), pod, runs("a: cpu=1/1"))
		late := podOf("late", "a: cpu=0")
		require.Nil(t, d.Admit(t.Context(), late))
		d.Allocate(t.Context(), wants(late, "cpu=1"), nil)
		d.Retry(t.Context(), "pods_removed")
		var got []string
		for _, i := range d.decided {
			got = append(got, string(i.UID)+" "+string(i.Trigger))
		}
		assert.ElementsMatch(t, []string{"u pod_updated", "u pods_added", "late pods_added", "u pods_removed", "late pods_removed"}, got)

		// One that is done with its resize may have made room.
		d.decided = nil
		less := wants(other, "cpu=0/1")
		d.Allocate(t.Context(), less, runs("a: cpu=1/1"))
		d.decided = nil
		d.room = 0
		d.Allocate(t.Context(), less, runs("a: cpu=0/1"))
		require.NotEmpty(t, d.decided)
		assert.Equal(t, allocation.PodResized, d.decided[0].Trigger)
	})
}

func TestRunTriesAgainFromTimeToTime(t *testing.T) { // al-7
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, allocation.Config{})
		d.notYet = true
		pod := wants(d.runningAt(t, "u", "cpu=1"), "cpu=2")
		d.room = 0
		d.Allocate(t.Context(), pod, nil)
		d.asked = nil
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx) }()

		asked := func() int {
			synctest.Wait()
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.asked)
		}
		trigger := func(i int) allocation.Trigger {
			d.mu.Lock()
			defer d.mu.Unlock()
			require.Greater(t, len(d.decided), i)
			return d.decided[i].Trigger
		}
		time.Sleep(45 * time.Second)
		assert.Zero(t, asked(), "al-8")
		d.mu.Lock()
		d.notYet = false // seen at 1:00, 30 s after the first look
		d.mu.Unlock()
		time.Sleep(30 * time.Second)
		assert.Equal(t, 1, asked(), "30 s until ready")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, 1, asked())
		time.Sleep(time.Minute)
		assert.Equal(t, 2, asked(), "3 m later")
		assert.Equal(t, allocation.PeriodicRetry, trigger(1))

		d.Release("nobody")
		assert.Equal(t, 2, asked(), "nothing became free")
		d.mu.Lock()
		d.room = -1
		d.mu.Unlock()
		require.Nil(t, d.Admit(ctx, podOf("gone", "a: cpu=1")))
		d.Release("gone")
		assert.Equal(t, 4, asked())
		assert.Equal(t, allocation.PodsRemoved, trigger(2), "at once")
		d.mu.Lock()
		assert.Equal(t, []types.UID{"u", "u"}, d.changed, "once refused, once granted")
		d.mu.Unlock()
		cancel()
		require.NoError(t, <-done)
	})
}

func TestRecordsOutliveTheAgent(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for it")
	d := newDesk(t, allocation.Config{Dir: dir})
	d.room = 3
	first := podOf("u-1", "sidecar s: cpu=1", "a: cpu=2/2", "pod: cpu=3/3")
	first.Spec.Overhead = res("cpu=250m").Requests
	require.Nil(t, d.Admit(t.Context(), first))
	assert.Equal(t, []string{"u-1.json"}, files(t, dir), "al-4")
	refused := d.Admit(t.Context(), podOf("u-2", "a: cpu=2"))
	require.Equal(t, &allocation.Refusal{Reason: "OutOfcpu", Message: "no room"}, refused)
	assert.Equal(t, []string{"u-1.json"}, files(t, dir), "what was refused was granted nothing")

	d.open(t)
	require.NotNil(t, d.Admit(t.Context(), podOf("u-2", "a: cpu=2")), "its room is taken though nobody has brought it yet")
	require.Len(t, d.others, 1)
	told := d.others[0]
	assert.Equal(t, "ns/u-1", told.Namespace+"/"+told.Name)
	assert.True(t, same(res("cpu=1"), told.Spec.InitContainers[0].Resources))
	assert.Equal(t, first.Spec.Overhead, told.Spec.Overhead)
	assert.NotNil(t, told.Spec.Resources)

	d.asked = nil
	resized := first.DeepCopy()
	resized.Spec.Containers[0].Resources = res("cpu=9/9")
	require.Nil(t, d.Admit(t.Context(), resized))
	assert.Equal(t, []string{"add u-1 2"}, d.asked, "al-3: with what it was granted")
	assert.Equal(t, "2", cpus(d.Allocate(t.Context(), resized, nil)), "al-3: and not with what it asks for")
	assert.Equal(t, []string{"PodResizePending=True Deferred no room @1"}, conditions(d, "u-1"))

	d.Release("u-1")
	assert.Empty(t, files(t, dir))
	assert.Zero(t, d.State("u-1"))
	require.Nil(t, d.Admit(t.Context(), podOf("u-2", "a: cpu=2")))
}

func TestARecordIsWrittenOnlyWhenItChanges(t *testing.T) { // al-5
	dir := t.TempDir()
	d := newDesk(t, allocation.Config{Dir: dir})
	pod := d.runningAt(t, "u", "cpu=1")
	path := filepath.Join(dir, "u.json")
	old := time.Now().Add(-time.Hour)
	untouched := func() bool {
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.ModTime().Before(time.Now().Add(-time.Minute))
	}
	require.NoError(t, os.Chtimes(path, old, old))
	require.Nil(t, d.Admit(t.Context(), pod))
	d.Allocate(t.Context(), pod.DeepCopy(), runs("a: cpu=1"))
	d.open(t)
	d.Allocate(t.Context(), pod, runs("a: cpu=1"))
	d.room = 0
	d.Allocate(t.Context(), wants(pod, "cpu=2"), runs("a: cpu=1"))
	assert.True(t, untouched())
	d.room = -1
	d.Retry(t.Context(), allocation.PeriodicRetry)
	assert.False(t, untouched())
}

func TestABrokenRecordHurtsOnePod(t *testing.T) { // al-5
	dir := t.TempDir()
	d := newDesk(t, allocation.Config{Dir: dir})
	d.runningAt(t, "good", "cpu=1")
	bad := d.runningAt(t, "bad", "cpu=1")
	whole, err := os.ReadFile(filepath.Join(dir, "good.json"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bad.json"), whole[:len(whole)/2], 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stolen.json"), whole, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "half.json.tmp"), whole[:9], 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "README"), nil, 0o600))

	var said strings.Builder
	d.cfg.Logger = logTo(&said)
	d.open(t)
	assert.Contains(t, said.String(), "bad.json")
	assert.Contains(t, said.String(), "stolen.json: it is the record of another pod")
	assert.Contains(t, said.String(), "delete the file, or drain the node")
	assert.Equal(t, 2, strings.Count(said.String(), "level=ERROR"))
	assert.Equal(t, "1", cpus(d.Allocated(wants(podOf("good", "a: cpu=1"), "cpu=5"))))
	assert.Equal(t, "5", cpus(d.Allocated(wants(bad, "cpu=5"))), "not known any more")

	d.Allocate(t.Context(), bad, nil)
	said.Reset()
	require.NoError(t, os.Remove(filepath.Join(dir, "stolen.json")))
	d.open(t)
	assert.Empty(t, said.String(), "the broken one was replaced")

	_, err = allocation.Open(allocation.Config{Dir: filepath.Join(dir, "README")})
	require.ErrorContains(t, err, "README")
	_, err = allocation.Open(allocation.Config{Period: -1})
	require.ErrorContains(t, err, "Period")
}

func TestAFailedWriteIsOnlyLogged(t *testing.T) { // al-4
	dir := filepath.Join(t.TempDir(), "records")
	var said strings.Builder
	d := newDesk(t, allocation.Config{Dir: dir, Logger: logTo(&said)})
	require.NoError(t, os.RemoveAll(dir))
	pod := d.runningAt(t, "u", "cpu=1")
	assert.Contains(t, said.String(), "allocation not recorded")
	assert.Contains(t, said.String(), "u.json")
	more := wants(pod, "cpu=2")
	assert.Same(t, more, d.Allocate(t.Context(), more, nil))
}

func TestAnyUIDHasARecord(t *testing.T) {
	dir := t.TempDir()
	d := newDesk(t, allocation.Config{Dir: dir})
	for _, uid := range []types.UID{"../../etc/passwd", "", ".", "a/b", types.UID(strings.Repeat("x", 300)), `c:\d`} {
		require.Nil(t, d.Admit(t.Context(), podOf(uid, "a: cpu=1")))
		d.open(t)
		assert.Equal(t, "1", cpus(d.Allocated(podOf(uid, "a: cpu=7"))), "%q", uid)
	}
	assert.Len(t, files(t, dir), 6)
	d.Prune(func(types.UID) bool { return false })
	assert.Empty(t, files(t, dir))
}

func TestPruneKeepsWhatIsWanted(t *testing.T) {
	d := newDesk(t, allocation.Config{Dir: t.TempDir()})
	d.runningAt(t, "kept", "cpu=1")
	d.runningAt(t, "gone", "cpu=1")
	d.open(t)
	d.Prune(func(uid types.UID) bool { return uid == "kept" })
	assert.Equal(t, []string{"kept.json"}, files(t, d.cfg.Dir))
}

func TestAPodThatRunsWithoutARecordHasWhatItAsksFor(t *testing.T) {
	d := newDesk(t, allocation.Config{})
	pod := podOf("adopted", "a: cpu=1")
	assert.Same(t, pod, d.Allocate(t.Context(), pod, runs("a: cpu=1")))
	assert.Equal(t, "1", cpus(d.Allocated(wants(pod, "cpu=2"))))
	assert.Empty(t, d.asked, "lq-28: what runs is not asked about")
}

func TestARestartSaysNothingTwice(t *testing.T) { // sl-20
	d := newDesk(t, allocation.Config{Dir: t.TempDir()})
	pod := d.runningAt(t, "u", "cpu=1/1")
	half := wants(pod, "cpu=2/2")
	d.Allocate(t.Context(), half, runs("a: cpu=1/1"))
	d.room = 2
	more := wants(half, "cpu=3/3")
	d.Allocate(t.Context(), more, runs("a: cpu=1/1"))
	d.Resized(more, assert.AnError)
	said := conditions(d, "u")
	require.Len(t, said, 2)
	require.Len(t, d.events, 3)

	more = more.DeepCopy()
	more.Status.Conditions = d.State("u").Conditions()
	since := metav1.NewTime(time.Unix(1000, 0))
	for i := range more.Status.Conditions {
		more.Status.Conditions[i].LastTransitionTime = since
	}
	d.open(t)
	d.Allocate(t.Context(), more, runs("a: cpu=1/1"))
	assert.Equal(t, said, conditions(d, "u"))
	assert.Len(t, d.events, 3, "told already")
	assert.True(t, since.Time.Equal(d.State("u").PendingSince), "it has waited since then")
	d.Allocate(t.Context(), more, runs("a: cpu=2/2"))
	assert.Contains(t, d.events[3], "ResizeCompleted")
}

func TestPodLevelResourcesAreResizedToo(t *testing.T) { // al-2, al-14
	d := newDesk(t, allocation.Config{Dir: t.TempDir()})
	pod := podOf("u", "pod: cpu=2/2", "a:")
	require.Nil(t, d.Admit(t.Context(), pod))
	assert.True(t, same(res("cpu=2/2"), *d.PodLevel("u")))
	more := pod.DeepCopy()
	more.Spec.Resources = new(res("cpu=3/3"))
	more.Generation = 2
	assert.Same(t, more, d.Allocate(t.Context(), more, runs("a")))
	assert.Equal(t, []string{"PodResizeInProgress=True @2"}, conditions(d, "u"))
	assert.Contains(t, d.events[0], `{"resources":{"limits":{"cpu":"3"},"requests":{"cpu":"3"}},"containers":[{"name":"a","resources":{}}],"generation":2}`)
	d.open(t)
	assert.True(t, same(res("cpu=2/2"), *d.PodLevel("u")), "what it was last given is written down")
	d.Allocate(t.Context(), more, runs("a"))
	d.Resized(more, nil)
	d.Allocate(t.Context(), more, runs("a"))
	assert.Empty(t, conditions(d, "u"))
	d.open(t)
	assert.True(t, same(res("cpu=3/3"), *d.PodLevel("u")))
}

func TestADecisionThatIsCalledOffIsNone(t *testing.T) {
	d := newDesk(t, allocation.Config{})
	pod := wants(d.runningAt(t, "u", "cpu=1"), "cpu=2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, "1", cpus(d.Allocate(ctx, pod, nil)))
	assert.Empty(t, conditions(d, "u"))
	assert.Same(t, pod, d.Allocate(t.Context(), pod, nil), "the next sync decides")
}

func TestAManagerOfNothingGrantsEverything(t *testing.T) {
	m, err := allocation.Open(allocation.Config{})
	require.NoError(t, err)
	pod := podOf("u", "a: cpu=1")
	require.Nil(t, m.Admit(t.Context(), pod))
	more := wants(pod, "cpu=2")
	assert.Same(t, more, m.Allocate(t.Context(), more, runs("a: cpu=2")))
	m.Resized(podOf("unknown"), nil)
	m.Release("unknown")
	assert.Nil(t, m.PodLevel("unknown"))
}
