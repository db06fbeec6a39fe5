package allocation_test

import (
	"context"
	"fmt"
	"os"
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

// A desk is a Manager with its inputs and outputs: it admits pods that fit into room
// CPUs, and records the calls and events.
type desk struct {
	*allocation.Manager
	cfg allocation.Config

	mu      sync.Mutex // for tests with a Run
	room    int64      // in CPUs; negative: no limit
	never   bool       // a resize that does not fit is infeasible
	asking  func()     // is called by each call of admit
	notYet  bool       // sources are not ready
	asked   []string
	others  []*v1.Pod // at the last question
	events  []string
	changed []types.UID
	decided []allocation.DecisionInfo
	settled []string // resolution and duration of deferrals
	resized []allocation.ResizedInfo
}

func (d *desk) admit(_ context.Context, req allocation.Request) *runtime.Rejection {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.asking != nil {
		d.asking()
	}
	d.asked = append(d.asked, operation(req)+" "+string(req.Pod.UID)+" "+cpus(req.Pod))
	d.others = req.Others
	used := int64(0)
	for _, p := range append(req.Others, req.Pod) {
		for i := range p.Spec.Containers {
			used += p.Spec.Containers[i].Resources.Requests.Cpu().Value()
		}
	}
	if d.room >= 0 && used > d.room {
		reason := "OutOfcpu"
		if d.never {
			reason = v1.PodReasonInfeasible
		}
		return &runtime.Rejection{Reason: reason, Message: "no room"}
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

// open opens the Manager again, as a restarted agent does.
func (d *desk) open(t *testing.T) *desk {
	t.Helper()
	var err error
	d.Manager, err = allocation.Open(d.cfg)
	require.NoError(t, err)
	return d
}

// Synced implements allocation.Pods.
func (d *desk) Synced() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.notYet
}

// PodChanged implements allocation.Pods.
func (d *desk) PodChanged(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changed = append(d.changed, uid)
}

func newDesk(t *testing.T, cfg allocation.Config) *desk {
	d := &desk{room: -1}
	cfg.Admit = d.admit
	cfg.Pods = d
	cfg.Record = func(e runtime.Event) {
		d.events = append(d.events, e.Object.Name+" "+e.Type+" "+e.Reason+" "+e.Message)
	}
	cfg.Hooks.Decided = func(i allocation.DecisionInfo) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.decided = append(d.decided, i)
	}
	cfg.Hooks.Undeferred = func(i allocation.UndeferredInfo) {
		d.settled = append(d.settled, fmt.Sprintf("%s %s %v", i.Pod.UID, i.Resolution, i.Duration.Round(time.Second)))
	}
	cfg.Hooks.Resized = func(i allocation.ResizedInfo) { d.resized = append(d.resized, i) }
	d.cfg = cfg
	return d.open(t)
}

// runningAt admits a pod with these resources, and allocates them while it runs.
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
	for _, c := range d.ResizeState(uid).Conditions() {
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
		assert.Same(t, pod, got, "its allocation matches its spec: nothing to copy")
		assert.Equal(t, []string{"add u 1", "resize u 2"}, d.asked, "al-9")
		assert.Equal(t, []string{"PodResizeInProgress=True @2"}, conditions(d, "u"))
		assert.Equal(t, []string{`u Normal ResizeStarted Pod resize started: {"containers":[{"name":"a","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}}],"generation":2}`}, d.events)

		d.events = nil
		d.Resized(pod, assert.AnError)
		d.Resized(pod, assert.AnError)
		assert.Equal(t, []string{"PodResizeInProgress=True Error " + assert.AnError.Error() + " @2"}, conditions(d, "u"), "al-12")
		require.Len(t, d.events, 1, "one event")
		assert.Contains(t, d.events[0], `u Warning ResizeError Pod resize error: {"containers":`)
		assert.Contains(t, d.events[0], `"generation":2,"error":"`+assert.AnError.Error()+`"}`)

		d.events = nil
		d.Resized(pod, nil)
		assert.Equal(t, []string{"PodResizeInProgress=True @2"}, conditions(d, "u"), "until it is seen")
		time.Sleep(time.Second)
		d.Allocate(t.Context(), pod, nil)
		assert.NotEmpty(t, conditions(d, "u"), "not observed")
		d.Allocate(t.Context(), pod, runs("a: cpu=2/2"))
		assert.Empty(t, conditions(d, "u"))
		assert.Equal(t, []string{`u Normal ResizeCompleted Pod resize completed: {"containers":[{"name":"a","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}}],"generation":2}`}, d.events)
		assert.Equal(t, []allocation.ResizedInfo{{UID: "u", Duration: time.Second}}, d.resized)
		assert.Empty(t, d.changed, "all of it in its own syncs")
	})
}

func TestARejectedResizeKeepsTheAllocation(t *testing.T) { // #126033
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, allocation.Config{})
		d.room = 3
		d.runningAt(t, "other", "cpu=2/2")
		pod := wants(d.runningAt(t, "u", "cpu=1/1"), "cpu=2/2")

		got := d.Allocate(t.Context(), pod, runs("a: cpu=1/1"))
		assert.Equal(t, "1", cpus(got))
		assert.Equal(t, "1", cpus(d.Allocated(pod)), "containers restarted after a crash get this too")
		assert.Equal(t, []string{"PodResizePending=True Deferred no room @2"}, conditions(d, "u"), "al-11, al-12")
		assert.Equal(t, []string{`u Warning ResizeDeferred Pod resize Deferred: {"containers":[{"name":"a","resources":{"limits":{"cpu":"2"},"requests":{"cpu":"2"}}}],"generation":2,"error":"no room"}`}, d.events, "al-13")

		asked := len(d.asked)
		d.Allocate(t.Context(), pod, runs("a: cpu=1/1"))
		assert.Len(t, d.asked, asked, "al-7: not at every sync")

		time.Sleep(time.Minute)
		d.room = 4
		assert.Equal(t, 1, d.Retry(t.Context(), "pod_terminated"))
		assert.Equal(t, []types.UID{"u"}, d.changed)
		assert.Equal(t, "2", cpus(d.Allocated(pod)))
		assert.Equal(t, allocation.DecisionInfo{UID: "u", Trigger: "pod_terminated", Before: v1.PodReasonDeferred, Waited: time.Minute}, d.decided[1])
		assert.Equal(t, []string{"u accepted 1m0s"}, d.settled)
		assert.Equal(t, []string{"PodResizeInProgress=True @2"}, conditions(d, "u"))
	})
}

func TestAWithdrawnResizeIsNoLongerPending(t *testing.T) { // sl-21
	d := newDesk(t, allocation.Config{})
	first := d.runningAt(t, "u", "cpu=1/1")
	d.room = 1
	more := wants(first, "cpu=2/2")
	d.Allocate(t.Context(), more, nil)
	require.NotEmpty(t, conditions(d, "u"))
	back := wants(more, "cpu=1000m/1")
	assert.Same(t, back, d.Allocate(t.Context(), back, nil))
	assert.Empty(t, conditions(d, "u"))
	assert.Equal(t, []string{"u reverted 0s"}, d.settled)
	assert.Zero(t, d.Retry(t.Context(), "periodic_retry"))
	d.room = 2
	again := wants(back, "cpu=2/2")
	assert.Same(t, again, d.Allocate(t.Context(), again, nil), "a new request is decided again")
}

func TestADeferralEndsWithThePod(t *testing.T) {
	d := newDesk(t, allocation.Config{})
	pod := wants(d.runningAt(t, "u", "cpu=1/1"), "cpu=2/2")
	d.room = 1
	d.Allocate(t.Context(), pod, nil)
	d.Release("u")
	d.Release("u")
	assert.Equal(t, []string{"u terminated 0s"}, d.settled)
}

func TestAnInfeasibleResizeIsNotRetried(t *testing.T) { // al-10
	d := newDesk(t, allocation.Config{})
	d.room, d.never = 1, true
	pod := wants(d.runningAt(t, "u", "cpu=1/1"), "cpu=2/2")
	d.Allocate(t.Context(), pod, nil)
	assert.Equal(t, []string{"PodResizePending=True Infeasible no room @2"}, conditions(d, "u"))
	assert.Contains(t, d.events[0], "u Warning ResizeInfeasible Pod resize Infeasible: {")
	asked := len(d.asked)
	for range 3 {
		d.Retry(t.Context(), "periodic_retry")
		d.Allocate(t.Context(), pod, nil)
	}
	assert.Len(t, d.asked, asked)
	relabelled := pod.DeepCopy()
	relabelled.Generation++
	d.Allocate(t.Context(), relabelled, nil)
	assert.Len(t, d.asked, asked, "its requests are the same")

	d.room = 3
	other := wants(pod, "cpu=3/3")
	assert.Same(t, other, d.Allocate(t.Context(), other, nil), "another resize is another matter")
}

func TestARunningPodWithoutACheckpointIsAllocatedItsRequests(t *testing.T) {
	d := newDesk(t, allocation.Config{})
	pod := podOf("adopted", "a: cpu=1")
	assert.Same(t, pod, d.Allocate(t.Context(), pod, runs("a: cpu=1")))
	assert.Equal(t, "1", cpus(d.Allocated(wants(pod, "cpu=2"))))
	assert.Empty(t, d.asked, "lq-28: a running pod is not admitted again")
}

func TestARestartRepeatsNoEvents(t *testing.T) { // sl-20
	d := newDesk(t, allocation.Config{Dir: t.TempDir()})
	pod := d.runningAt(t, "u", "cpu=1/1")
	half := wants(pod, "cpu=2/2")
	d.Allocate(t.Context(), half, runs("a: cpu=1/1"))
	d.room = 2
	more := wants(half, "cpu=3/3")
	d.Allocate(t.Context(), more, runs("a: cpu=1/1"))
	d.Resized(more, assert.AnError)
	reported := conditions(d, "u")
	require.Len(t, reported, 2)
	require.Len(t, d.events, 3)

	more = more.DeepCopy()
	more.Status.Conditions = d.ResizeState("u").Conditions()
	since := metav1.NewTime(time.Unix(1000, 0))
	for i := range more.Status.Conditions {
		more.Status.Conditions[i].LastTransitionTime = since
	}
	d.open(t)
	d.Allocate(t.Context(), more, runs("a: cpu=1/1"))
	assert.Equal(t, reported, conditions(d, "u"))
	assert.Len(t, d.events, 3, "reported before")
	assert.True(t, since.Time.Equal(d.ResizeState("u").PendingSince), "it has waited since then")
	d.Allocate(t.Context(), more, runs("a: cpu=2/2"))
	assert.Contains(t, d.events[3], "ResizeCompleted")
}

func TestPodLevelResourcesAreResizedToo(t *testing.T) { // al-2, al-14
	d := newDesk(t, allocation.Config{Dir: t.TempDir()})
	pod := podOf("u", "pod: cpu=2/2", "a:")
	require.Nil(t, d.Admit(t.Context(), pod))
	assert.True(t, same(res("cpu=2/2"), *d.ActuatedPodResources("u")))
	more := pod.DeepCopy()
	more.Spec.Resources = new(res("cpu=3/3"))
	more.Generation = 2
	assert.Same(t, more, d.Allocate(t.Context(), more, runs("a")))
	assert.Equal(t, []string{"PodResizeInProgress=True @2"}, conditions(d, "u"))
	assert.Contains(t, d.events[0], `{"resources":{"limits":{"cpu":"3"},"requests":{"cpu":"3"}},"containers":[{"name":"a","resources":{}}],"generation":2}`)
	d.open(t)
	assert.True(t, same(res("cpu=2/2"), *d.ActuatedPodResources("u")), "what it was last given is written down")
	d.Allocate(t.Context(), more, runs("a"))
	d.Resized(more, nil)
	d.Allocate(t.Context(), more, runs("a"))
	assert.Empty(t, conditions(d, "u"))
	d.open(t)
	assert.True(t, same(res("cpu=3/3"), *d.ActuatedPodResources("u")))
}

func TestACanceledDecisionHasNoEffect(t *testing.T) {
	d := newDesk(t, allocation.Config{})
	pod := wants(d.runningAt(t, "u", "cpu=1"), "cpu=2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, "1", cpus(d.Allocate(ctx, pod, nil)))
	assert.Empty(t, conditions(d, "u"))
	assert.Same(t, pod, d.Allocate(t.Context(), pod, nil), "the next sync decides")
}

func TestTheZeroConfigAllocatesEverything(t *testing.T) {
	m, err := allocation.Open(allocation.Config{})
	require.NoError(t, err)
	pod := podOf("u", "a: cpu=1")
	require.Nil(t, m.Admit(t.Context(), pod))
	more := wants(pod, "cpu=2")
	assert.Same(t, more, m.Allocate(t.Context(), more, runs("a: cpu=2")))
	m.Resized(podOf("unknown"), nil)
	m.Release("unknown")
	assert.Nil(t, m.ActuatedPodResources("unknown"))
}

// operation returns the kind of the request: "add" or "resize".
func operation(req allocation.Request) string {
	if req.Resize {
		return "resize"
	}
	return "add"
}
