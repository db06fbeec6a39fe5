package podworker_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
)

// A reader is a Handler that records its calls, with the phase of the pod passed.
type reader struct {
	mu  sync.Mutex
	log []string
}

func (r *reader) note(what string, uid types.UID, pod *v1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, what+" "+string(uid)+" "+string(pod.Status.Phase))
}

func (r *reader) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	log := r.log
	r.log = nil
	return log
}

func (r *reader) Sync(_ context.Context, w podworker.SyncRequest) (podworker.SyncResult, error) {
	r.note("sync", w.UID, w.Pod)
	return podworker.SyncResult{Idle: true}, nil
}
func (r *reader) Terminate(_ context.Context, w podworker.SyncRequest) error {
	r.note("terminate", w.UID, w.Pod)
	return nil
}
func (r *reader) Cleanup(_ context.Context, w podworker.SyncRequest) error { return nil }
func (r *reader) Reconcile(pod *v1.Pod)                                    { r.note("reconcile", pod.UID, pod) }

func TestAChangedStatusIsReportedAndQueuesThePodOnlyIfItMatters(t *testing.T) { // sl-25, src-7
	synctest.Test(t, func(t *testing.T) {
		r := new(reader)
		w, err := podworker.New(podworker.Config{Handler: r, StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Sources: []string{"api"}})
		defer stop()
		pod := named("p1", "web", nil)
		pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "lb"}}
		loop.AddPods([]*v1.Pod{pod})
		require.Equal(t, []string{"sync p1 "}, r.take())

		shows := func(phase v1.PodPhase, gate v1.ConditionStatus) *v1.Pod {
			next := pod.DeepCopy()
			next.Status.Phase = phase
			if gate != "" {
				next.Status.Conditions = []v1.PodCondition{{Type: "other"}, {Type: "lb", Status: gate}}
			}
			loop.ReconcilePods([]*v1.Pod{next})
			return next
		}
		last := shows(v1.PodRunning, "")
		assert.Equal(t, []string{"reconcile p1 Running"}, r.take(), "the watch event of an own write")
		assert.Same(t, last, w.Table().Desired()[0])
		shows(v1.PodRunning, "True")
		assert.ElementsMatch(t, []string{"reconcile p1 Running", "sync p1 Running"}, r.take(), "a readiness gate was opened")
		shows(v1.PodRunning, "True")
		assert.Equal(t, []string{"reconcile p1 Running"}, r.take())
		shows(v1.PodFailed, "True")
		assert.ElementsMatch(t, []string{"reconcile p1 Failed", "terminate p1 Failed"}, r.take(), "another writer has set a terminal phase")
		shows(v1.PodFailed, "False")
		assert.Equal(t, []string{"reconcile p1 Failed"}, r.take())

		loop.ReconcilePods([]*v1.Pod{named("stranger", "x", nil)}) // virtual-kubelet's UpdateFunc panics here
		assert.Empty(t, r.take())
		time.Sleep(time.Second)
	})
}

func TestAChangedStatusOfAMirrorIsItsStaticPods(t *testing.T) { // st-65
	synctest.Test(t, func(t *testing.T) {
		r := new(reader)
		w, err := podworker.New(podworker.Config{Handler: r, StatusCache: observed{}})
		require.NoError(t, err)
		loop, stop := runLoop(t, podworker.LoopConfig{Workers: w, Sources: []string{"api", "file"}})
		defer stop()
		static := named("s1", "web", map[string]string{"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "h1"})
		mirror := named("m1", "web", map[string]string{"kubernetes.io/config.mirror": "h1"})
		old := named("m0", "web", map[string]string{"kubernetes.io/config.mirror": "h0"})
		loop.AddPods([]*v1.Pod{static, mirror})
		r.take()
		mirror = mirror.DeepCopy()
		mirror.Status.Phase = v1.PodRunning
		loop.ReconcilePods([]*v1.Pod{mirror})
		assert.Equal(t, []string{"reconcile s1 Running"}, r.take())
		assert.Empty(t, static.Status.Phase, "left alone")
		loop.ReconcilePods([]*v1.Pod{old})
		assert.Empty(t, r.take(), "that of another manifest is not")
	})
}
