package pipeline_test

import (
	"context"
	"fmt"
	"sync"
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

func TestAdmittersAreCalledInOrderUntilTheFirstRejection(t *testing.T) { // adm-1, adm-9
	var asked []string
	admitter := func(name string, refused *runtime.Rejection) pipeline.Admitter {
		return pipeline.AdmitFunc(func(context.Context, *v1.Pod) *runtime.Rejection {
			asked = append(asked, name)
			return refused
		})
	}
	chain := pipeline.Admitters{
		admitter("sysctls", nil), admitter("resources", &runtime.Rejection{Reason: "OutOfcpu"}), admitter("shutdown", &runtime.Rejection{Reason: "NodeShutdown"}),
	}
	assert.Equal(t, "OutOfcpu", chain.Admit(t.Context(), new(v1.Pod)).Reason)
	assert.Equal(t, []string{"sysctls", "resources"}, asked)
	assert.Nil(t, pipeline.Admitters{}.Admit(t.Context(), new(v1.Pod)))
}

func TestMissingPrerequisitesAreRetried(t *testing.T) {
	for name, tc := range map[string]struct {
		comes   time.Duration
		refused string
	}{
		"it comes":      {3 * time.Minute, ""},
		"it never does": {time.Hour, "NoDevice"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				n := &node{fail: map[string]error{}, phase: v1.PodPending, left: new(runtime.PodStatus)}
				var mu sync.Mutex
				var refused []string
				p, err := pipeline.New(pipeline.Config{
					Runtime: n, Status: n,
					Admission: pipeline.Admission{Admitter: pipeline.AdmitFunc(func(context.Context, *v1.Pod) *runtime.Rejection {
						if time.Since(began) >= tc.comes {
							return nil
						}
						return &runtime.Rejection{Reason: "NoDevice", Message: "its plugin has not registered", Deferred: true}
					})},
					Hooks: pipeline.Hooks{Rejected: func(_ *v1.Pod, r runtime.Rejection) {
						mu.Lock()
						defer mu.Unlock()
						refused = append(refused, r.Reason)
					}},
				})
				require.NoError(t, err)
				w, err := podworker.New(podworker.Config{Handler: p, StatusCache: observed{}})
				require.NoError(t, err)
				stop := run(t, w)
				w.Update(newPod("web", 0), true)
				synctest.Wait()
				e, _ := w.Snapshot("web")
				assert.False(t, e.Next.IsZero())
				assert.Equal(t, "pipeline: not admitted yet: its plugin has not registered", e.Err)
				mu.Lock()
				assert.Empty(t, refused)
				mu.Unlock()
				time.Sleep(6 * time.Minute)
				stop()
				if tc.refused != "" {
					assert.Equal(t, []string{tc.refused}, refused, "adm-15")
					assert.True(t, n.ends[len(n.ends)-1].Terminal)
					assert.NotContains(t, n.asked, "sync", "adm-13")
				} else {
					assert.Empty(t, refused)
					assert.Contains(t, n.asked, "sync")
				}
			})
		})
	}
}

func TestPodsThatAreAdmittedAgain(t *testing.T) { // adm-14, lq-28, sl-17
	for readmit, want := range map[bool]bool{false: false, true: true} {
		t.Run(fmt.Sprint("readmit ", readmit), func(t *testing.T) {
			n := &node{fail: map[string]error{}, phase: v1.PodRunning, refuse: &runtime.Rejection{Reason: "OutOfcpu"}}
			p, err := pipeline.New(pipeline.Config{Runtime: n, Status: n, Admission: pipeline.Admission{Admitter: n, Readmit: readmit}})
			require.NoError(t, err)
			w := firstWork(newPod("web", 0))
			w.Status.Sandboxes = []runtime.SandboxStatus{{State: runtime.SandboxReady}}
			next, err := p.Sync(t.Context(), w)
			require.NoError(t, err)
			assert.Equal(t, want, next.Terminal)
		})
	}
	n, p := newNode(t)
	w := firstWork(newPod("web", 0))
	w.First = false
	_, err := p.Sync(t.Context(), w)
	require.NoError(t, err)
	assert.NotContains(t, n.asked, "admit", "once per life")
}

func TestVolumesMayRejectAPod(t *testing.T) { // sl-34
	n, p := newNode(t)
	n.fail["mount"] = fmt.Errorf("attach: %w", &runtime.Rejection{Reason: "VolumeAttachmentLimitExceeded", Message: "the node has 39 volumes"})
	next, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.NoError(t, err)
	assert.True(t, next.Terminal)
	assert.Equal(t, runtime.Termination{Terminal: true, Failed: true, Reason: "VolumeAttachmentLimitExceeded", Message: "Pod was rejected: the node has 39 volumes"}, n.ends[len(n.ends)-1])
	assert.Equal(t, []string{"Warning VolumeAttachmentLimitExceeded the node has 39 volumes"}, n.events)
}

func TestStepsTakeAllOfTheTimeOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &lagging{node: &node{fail: map[string]error{}, phase: v1.PodPending, left: new(runtime.PodStatus)}}
		var steps []string
		var end time.Time
		var p *pipeline.Pipeline
		p, err := pipeline.New(pipeline.Config{
			Runtime: n, Status: n.node, Admission: pipeline.Admission{Admitter: n.node}, Resources: pipeline.Resources{Volumes: n, Cgroups: nodeCgroups{n.node}},
			Hooks: pipeline.Hooks{Stepped: func(i pipeline.StepInfo) {
				if !end.IsZero() {
					assert.Equal(t, end, i.Begin, "they leave no gap")
				}
				end = i.End
				steps = append(steps, fmt.Sprintf("%s %v", i.Step, i.End.Sub(i.Begin)))
			}},
		})
		require.NoError(t, err)
		go func() {
			time.Sleep(time.Second)
			progress := p.Progress("web")
			assert.Equal(t, "mount volumes", progress.Step)
			assert.Equal(t, time.Second, time.Since(progress.Since))
		}()
		_, err = p.Sync(t.Context(), firstWork(newPod("web", 0)))
		require.NoError(t, err)
		assert.Equal(t, []string{"admit pod 0s", "report status 0s", "stop containers outside of cgroup 0s", "create cgroup 0s", "mount volumes 2s", "sync containers 0s"}, steps)
		progress := p.Progress("web")
		assert.Empty(t, progress.Step)
		synctest.Wait()
	})
}

// lagging is a node whose volumes take two seconds.
type lagging struct{ *node }

func (l *lagging) Mount(context.Context, *v1.Pod) (map[string]runtime.Volume, error) {
	time.Sleep(2 * time.Second)
	return nil, nil
}

func TestARejectionWithPodsToPreemptIsDeferred(t *testing.T) { // adm-10, adm-13
	n, p := newNode(t)
	n.refuse = &runtime.Rejection{Reason: "OutOfcpu", Message: "no room", Preempt: []types.UID{"web"}}
	next, err := p.Sync(t.Context(), firstWork(newPod("critical", 0)))
	assert.EqualError(t, err, "pipeline: not admitted yet: no room")
	require.ErrorIs(t, err, n.refuse)
	assert.Zero(t, next)
	assert.Equal(t, []string{"Warning OutOfcpu no room"}, n.events)
	n.refuse = nil
	work := firstWork(newPod("critical", 0))
	work.First = false
	_, err = p.Sync(t.Context(), work)
	require.NoError(t, err, "it is admitted again")
	assert.Contains(t, n.asked, "sync")
}
