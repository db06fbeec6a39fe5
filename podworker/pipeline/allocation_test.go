package pipeline_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
)

// granted is an Allocation that records the allocation of pods in an annotation.
type granted struct {
	*node
	what    string
	errs    []error
	wanted  *v1.Pod
	admit   *v1.Pod // as the Admitter saw it
	reports []*v1.Pod
}

func (g *granted) Allocated(pod *v1.Pod) *v1.Pod {
	p := pod.DeepCopy()
	p.Annotations = map[string]string{"granted": g.what}
	return p
}
func (g *granted) Allocate(_ context.Context, pod *v1.Pod, observed *runtime.PodStatus) *v1.Pod {
	_ = g.ask("allocate")
	g.wanted, g.what = pod, "new"
	return g.Allocated(pod)
}
func (g *granted) Resized(_ *v1.Pod, err error) {
	_ = g.ask("resized")
	g.errs = append(g.errs, err)
}
func (g *granted) Release(types.UID) { _ = g.ask("release") }

func (g *granted) Retain(context.Context, func(types.UID) bool) error { return g.ask("retain") }

func (g *granted) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	_ = g.ask("admit")
	g.admit = pod
	return g.refuse
}

func (g *granted) Report(pod *v1.Pod, observed *runtime.PodStatus, starts map[string]v1.ContainerStateWaiting, end runtime.Termination) v1.PodStatus {
	g.reports = append(g.reports, pod)
	return g.node.Report(pod, observed, starts, end)
}

func newGranted(t *testing.T) (*granted, *pipeline.Pipeline) {
	n, _ := newNode(t)
	g := &granted{node: n, what: "old"}
	p, err := pipeline.New(pipeline.Config{Runtime: n, Status: g, Admission: pipeline.Admission{Admitter: g}, Resources: pipeline.Resources{Allocation: g}})
	require.NoError(t, err)
	return g, p
}

func TestSubsystemsGetTheAllocatedPod(t *testing.T) { // pw-8, al-3
	g, p := newGranted(t)
	w := firstWork(newPod("web", 0))
	_, err := p.Sync(t.Context(), w)
	require.NoError(t, err)
	assert.Equal(t, []string{"admit", "allocate", "report", "sync"}, g.asked)
	assert.Equal(t, "old", g.admit.Annotations["granted"], "al-3: a known pod is admitted with its allocated resources")
	assert.Same(t, w.Pod, g.wanted, "al-1: decided by its spec")
	assert.Equal(t, "new", g.sync.Pod.Annotations["granted"])
	assert.Equal(t, "new", g.reports[0].Annotations["granted"])

	g.reports, g.asked = nil, nil
	require.NoError(t, p.Terminate(t.Context(), w))
	require.NoError(t, p.Cleanup(t.Context(), w))
	for _, pod := range g.reports {
		assert.Equal(t, "new", pod.Annotations["granted"])
	}
	assert.Equal(t, "release", g.asked[len(g.asked)-1], "when all else is cleaned up")
	require.NoError(t, p.Retain(t.Context(), func(types.UID) bool { return false }))
	assert.Equal(t, "retain", g.asked[len(g.asked)-1], "of one that was never started")
}

func TestARejectedPodIsNotAllocated(t *testing.T) { // al-4
	g, p := newGranted(t)
	g.refuse = &runtime.Rejection{Reason: "OutOfcpu"}
	_, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.NoError(t, err)
	assert.NotContains(t, g.asked, "allocate")
}

func TestTheOutcomeOfAResizeIsReported(t *testing.T) { // al-12, al-20
	boom := errors.New("boom")
	resize := func(err error) runtime.Action {
		return runtime.Action{Kind: runtime.ResizePodInPlace, Target: "web", Err: err}
	}
	t.Run("nothing was resized", func(t *testing.T) {
		g, p := newGranted(t)
		_, _ = p.Sync(t.Context(), firstWork(newPod("web", 0)))
		assert.Empty(t, g.errs)
	})
	t.Run("done", func(t *testing.T) {
		g, p := newGranted(t)
		g.result.Actions = []runtime.Action{resize(nil)}
		_, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
		require.NoError(t, err)
		assert.Equal(t, []error{nil}, g.errs)
		assert.Len(t, g.reports, 1)
	})
	t.Run("failed, and the status reports it at once", func(t *testing.T) {
		g, p := newGranted(t)
		g.result.Actions = []runtime.Action{resize(nil), resize(boom)}
		_, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
		require.Error(t, err)
		require.Len(t, g.errs, 1)
		require.ErrorIs(t, g.errs[0], boom)
		assert.Len(t, g.reports, 2)
	})
	t.Run("al-20 a resize is inspected again, at once and then once a second", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			n, _ := newNode(t)
			p, err := pipeline.New(pipeline.Config{
				Runtime: n, Relister: nodeRelister{n},
			})
			require.NoError(t, err)
			n.result.Actions = []runtime.Action{resize(nil)}
			sync := func() podworker.SyncResult {
				next, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
				require.NoError(t, err)
				return next
			}
			assert.Zero(t, sync().NextSync)
			assert.Equal(t, time.Now().Add(time.Second), sync().NextSync)
			time.Sleep(time.Second)
			assert.Zero(t, sync().NextSync)
			n.result.Actions = []runtime.Action{resize(boom)}
			_, err = p.Sync(t.Context(), firstWork(newPod("web", 0)))
			require.Error(t, err)
			assert.Equal(t, []string{"sync", "reinspect", "sync", "relist", "sync", "reinspect", "sync", "relist"}, n.asked, "a failure is retried after the ordinary delay")
		})
	})
	t.Run("canceled", func(t *testing.T) {
		g, p := newGranted(t)
		g.result.Actions = []runtime.Action{resize(context.Canceled)}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := p.Sync(ctx, firstWork(newPod("web", 0)))
		require.Error(t, err)
		assert.Empty(t, g.errs)
	})
}
