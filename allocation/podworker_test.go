package allocation_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

var (
	_ pipeline.Allocation = (*allocation.Manager)(nil)
	_ pipeline.Admitter   = (*allocation.Manager)(nil)
)

// node is a runtime that applies the desired resources of containers, all at once.
type node struct {
	runtime.Runtime
	has string
}

func (n *node) SyncPod(_ context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	want := "a: cpu=" + cpus(req.Pod)
	res := runtime.SyncResult{}
	if n.has != "" && n.has != want {
		res.Actions = []runtime.Action{{Kind: runtime.ResizePodInPlace, Target: req.Pod.Name}}
	}
	n.has = want
	return res, nil
}

type sink struct{}

func (sink) UpdatePodStatus(context.Context, *v1.Pod, v1.PodStatus) error { return nil }
func (sink) DeletePod(context.Context, *v1.Pod) error                     { return nil }

// A resize through a whole agent: the source's update, a rejection, room, the
// runtime's calls, the status at each step.
func TestAResizeThroughThePipeline(t *testing.T) {
	d := newDesk(t, allocation.Config{})
	d.room = 1
	statuses, err := status.New(status.Config{Sink: sink{}, Facts: []func(*status.Facts){func(f *status.Facts) {
		f.Resize = status.Resize{Conditions: d.ResizeState(f.Pod.UID).Conditions(), PodLevel: d.ActuatedPodResources(f.Pod.UID)}
	}}})
	require.NoError(t, err)
	n := &node{}
	p, err := pipeline.New(pipeline.Config{Runtime: n, Status: statuses, Admission: pipeline.Admission{Admitter: d}, Resources: pipeline.Resources{Allocation: d.Manager}})
	require.NoError(t, err)
	first := true
	sync := func(pod *v1.Pod) (out string) {
		seen := &runtime.PodStatus{}
		if n.has != "" {
			seen = runs(n.has)
		}
		_, err := p.Sync(t.Context(), podworker.SyncRequest{UID: pod.UID, Pod: pod, Status: seen, First: first})
		require.NoError(t, err)
		first = false
		s, _ := statuses.Status(pod.UID)
		if cs := s.ContainerStatuses[0]; cs.Resources != nil {
			out = cs.AllocatedResources.Cpu().String() + " " + cs.Resources.Requests.Cpu().String()
		}
		for _, c := range s.Conditions {
			if c.Type == v1.PodResizePending || c.Type == v1.PodResizeInProgress {
				out += " " + string(c.Type) + c.Reason
				assert.Equal(t, int64(2), c.ObservedGeneration)
				assert.False(t, c.LastTransitionTime.IsZero())
			}
		}
		return out
	}
	pod := podOf("u", "a: cpu=1")
	assert.Equal(t, "", sync(pod))
	assert.Equal(t, "1 1", sync(pod))
	more := wants(pod, "cpu=2")
	assert.Equal(t, "1 1 PodResizePendingDeferred", sync(more))
	assert.Equal(t, "a: cpu=1", n.has)
	d.room = 2
	d.Retry(t.Context(), "pod_terminated")
	assert.Equal(t, []types.UID{"u"}, d.changed)
	assert.Equal(t, "2 1 PodResizeInProgress", sync(more))
	assert.Equal(t, "2 2", sync(more))
	require.NoError(t, p.Cleanup(t.Context(), podworker.SyncRequest{UID: "u", Pod: more, Status: &runtime.PodStatus{}}))
	assert.Equal(t, "9", cpus(d.Allocated(podOf("u", "a: cpu=9"))), "released")
}
