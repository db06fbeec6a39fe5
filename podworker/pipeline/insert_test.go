package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestStepsAreInsertedByName(t *testing.T) {
	n := &node{fail: map[string]error{}, phase: v1.PodPending, left: &runtime.PodStatus{}}
	insert := func(name, before, after string) pipeline.Step {
		return pipeline.Step{Name: name, Before: before, After: after, Run: func(context.Context, podworker.SyncRequest) error {
			return n.ask(name)
		}}
	}
	var steps []string
	p, err := pipeline.New(pipeline.Config{
		Runtime: n, Status: n, Resources: pipeline.Resources{Cgroups: nodeCgroups{n}},
		Steps: []pipeline.Step{
			insert("a", pipeline.AdmitPod, ""),
			insert("b", pipeline.MountVolumes, ""), // there are no volumes
			insert("c", pipeline.MountVolumes, ""),
			insert("d", "", "c"),
			insert("e", "", pipeline.SyncContainers),
			insert("f", pipeline.StopContainers, ""),
			insert("g", "", pipeline.StopContainers),
			insert("h", pipeline.FinishPod, ""),
			insert("i", "", pipeline.FinishPod),
		},
		Hooks: pipeline.Hooks{Stepped: func(i pipeline.StepInfo) { steps = append(steps, i.Step) }},
	})
	require.NoError(t, err)
	w := firstWork(newPod("web", 0))
	_, err = p.Sync(t.Context(), w)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "report", "ensure cgroup", "b", "c", "d", "sync", "e"}, n.asked)
	assert.Equal(t, []string{"a", "admit pod", "report status", "stop containers outside of cgroup", "create cgroup", "b", "c", "d", "sync containers", "e"}, steps)

	n.asked, steps = nil, nil
	require.NoError(t, p.Terminate(t.Context(), w))
	assert.Equal(t, []string{"report", "f", "kill", "g", "look", "report"}, n.asked)
	assert.Equal(t, []string{"report termination", "f", "stop containers", "g", "inspect terminated containers", "report terminated containers"}, steps)

	n.asked, steps = nil, nil
	require.NoError(t, p.Cleanup(t.Context(), w))
	assert.Equal(t, []string{"report", "remove cgroup", "h", "finish", "i"}, n.asked)
	assert.Equal(t, []string{"report final status", "remove cgroup", "h", "finish pod", "i"}, steps)

	n.fail["h"] = errors.New("busy")
	n.asked = nil
	require.EqualError(t, p.Cleanup(t.Context(), w), "pipeline: h: busy")
	assert.NotContains(t, n.asked, "finish")
}

func TestNewNamesTheStepThatCannotBeInserted(t *testing.T) {
	run := func(context.Context, podworker.SyncRequest) error { return nil }
	for _, tt := range []struct {
		step pipeline.Step
		err  string
	}{
		{pipeline.Step{Before: pipeline.MountVolumes, Run: run}, `"": no Name`},
		{pipeline.Step{Name: "wait", Before: pipeline.MountVolumes}, `"wait": no Run`},
		{pipeline.Step{Name: "wait", Run: run}, `"wait": exactly one of Before and After must be set`},
		{pipeline.Step{Name: "wait", Before: pipeline.MountVolumes, After: pipeline.AdmitPod, Run: run}, `"wait": exactly one of Before and After must be set`},
		{pipeline.Step{Name: "wait", Before: "mount", Run: run}, `"wait": no step "mount" to precede`},
		{pipeline.Step{Name: "wait", After: "mount", Run: run}, `"wait": no step "mount" to follow`},
		{pipeline.Step{Name: "wait", After: "wait", Run: run}, `"wait": no step "wait" to follow`},
		{pipeline.Step{Name: "first", After: pipeline.AdmitPod, Run: run}, `"first": another step has this Name`},
		{pipeline.Step{Name: pipeline.UnmountVolumes, After: pipeline.AdmitPod, Run: run}, `"unmount volumes": another step has this Name`},
	} {
		_, err := pipeline.New(pipeline.Config{Runtime: new(node), Steps: []pipeline.Step{{Name: "first", Before: pipeline.AdmitPod, Run: run}, tt.step}})
		assert.EqualError(t, err, "pipeline: Config.Steps[1] "+tt.err)
	}
}

// newWaiting returns a node with a step that waits for ctx before the volumes are mounted, with the
// workers that run it.
func newWaiting(t *testing.T) (*node, *podworker.Workers) {
	n := &node{fail: map[string]error{}, phase: v1.PodPending, left: &runtime.PodStatus{}, start: new(metav1.Now())}
	p, err := pipeline.New(pipeline.Config{
		Runtime: n, Status: n, Resources: pipeline.Resources{Volumes: n},
		Record: func(e runtime.Event) { n.events = append(n.events, e.Type+" "+e.Reason+" "+e.Message) },
		Steps: []pipeline.Step{{Name: "acquire license", Before: pipeline.MountVolumes, Run: func(ctx context.Context, req podworker.SyncRequest) error {
			assert.Equal(t, "web", req.Pod.Name)
			assert.NotNil(t, req.Status)
			_ = n.ask("license")
			<-ctx.Done()
			return n.ask(fmt.Sprint("license: ", context.Cause(ctx)))
		}}},
	})
	require.NoError(t, err)
	w, err := podworker.New(podworker.Config{Handler: p, StatusCache: observed{}})
	require.NoError(t, err)
	return n, w
}

func TestAnInsertedStepIsPartOfTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, w := newWaiting(t)
		defer run(t, w)()
		begin := time.Now()
		w.Update(newPod("web", 0), true)
		time.Sleep(time.Minute)
		s, _ := w.Snapshot("web")
		assert.Equal(t, "acquire license", s.Step)
		assert.Equal(t, begin, s.StepSince)
	})
}

func TestAnInsertedStepIsCanceledByADeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, w := newWaiting(t)
		defer run(t, w)()
		w.Update(newPod("web", 0), true)
		synctest.Wait()
		begin := time.Now()
		w.Remove("web")
		synctest.Wait()
		assert.Equal(t, begin, time.Now())
		assert.Equal(t, []string{"report", "license", "license: context canceled", "report", "kill", "look", "report", "report", "unmount", "finish"}, n.asked)
		assert.Empty(t, n.events)
		s, _ := w.Table().State("web")
		assert.Equal(t, podworker.Finished, s)
	})
}

func TestAnInsertedStepIsCanceledByTheDeadline(t *testing.T) { // sl-62
	synctest.Test(t, func(t *testing.T) {
		n, w := newWaiting(t)
		defer run(t, w)()
		pod := newPod("web", 0)
		pod.Spec.ActiveDeadlineSeconds = new(int64(60))
		w.Update(pod, true)
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		s, _ := w.Snapshot("web")
		assert.Equal(t, "acquire license", s.Step)
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		assert.Equal(t, []string{"report", "license", "license: pipeline: the pod exceeded its active deadline", "report", "report", "kill", "look", "report", "report", "unmount", "finish"}, n.asked)
		assert.Equal(t, "DeadlineExceeded", n.ends[len(n.ends)-1].Reason)
		assert.Len(t, n.events, 1)
	})
}

func TestTheRuntimeMayRejectAPod(t *testing.T) {
	n, p := newNode(t)
	n.fail["sync"] = fmt.Errorf("create: %w", &runtime.Rejection{Reason: "NoEnclave", Message: "the node has no enclave"})
	res, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
	require.NoError(t, err)
	assert.True(t, res.Terminal)
	assert.Equal(t, "NoEnclave", n.ends[len(n.ends)-1].Reason)
	assert.Equal(t, []string{"Warning NoEnclave the node has no enclave"}, n.events)
}

func TestAnInsertedStepMayRejectAPod(t *testing.T) {
	for name, tt := range map[string]struct {
		rejection   runtime.Rejection
		err         string
		asked       []string
		termination runtime.Termination
	}{
		"rejected": {
			runtime.Rejection{Reason: "NoLicense", Message: "the license has expired"}, "",
			[]string{"admit", "report", "network", "ensure cgroup", "report"},
			runtime.Termination{Failed: true, Reason: "NoLicense", Message: "Pod was rejected: the license has expired"},
		},
		"deferred": {
			runtime.Rejection{Reason: "NoLicense", Message: "all licenses are used", Deferred: true}, "pipeline: not admitted yet: all licenses are used",
			[]string{"admit", "report", "network", "ensure cgroup", "report"}, runtime.Termination{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{fail: map[string]error{}, phase: v1.PodPending}
			var mu sync.Mutex
			var rejected []string
			p, err := pipeline.New(pipeline.Config{
				Runtime: n, Status: n, Probes: nodeProbes{n}, Network: n.network, Admission: pipeline.Admission{Admitter: n},
				Resources: pipeline.Resources{Volumes: n, Cgroups: nodeCgroups{n}},
				Record:    func(e runtime.Event) { n.events = append(n.events, e.Type+" "+e.Reason+" "+e.Message) },
				Hooks: pipeline.Hooks{Rejected: func(_ *v1.Pod, r runtime.Rejection) {
					mu.Lock()
					defer mu.Unlock()
					rejected = append(rejected, r.Reason)
				}},
				Steps: []pipeline.Step{{Name: "acquire license", Before: pipeline.MountVolumes, Run: func(context.Context, podworker.SyncRequest) error {
					return fmt.Errorf("license server: %w", &tt.rejection)
				}}},
			})
			require.NoError(t, err)
			res, err := p.Sync(t.Context(), firstWork(newPod("web", 0)))
			assert.Equal(t, tt.asked, n.asked)
			assert.Equal(t, []string{"Warning NoLicense " + tt.rejection.Message}, n.events)
			assert.Equal(t, tt.termination, res.Termination)
			assert.Equal(t, tt.err == "", res.Terminal)
			if tt.err == "" {
				require.NoError(t, err)
				assert.Equal(t, []string{"NoLicense"}, rejected)
			} else {
				require.EqualError(t, err, tt.err)
				assert.Empty(t, rejected)
			}
		})
	}
}
