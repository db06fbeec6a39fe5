package pipeline_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime"
)

// foundCgroups also reports whether a pod has its cgroup.
type foundCgroups struct {
	nodeCgroups
	has bool
}

func (f *foundCgroups) Has(*v1.Pod) bool { return f.has }

func TestContainersOutsideTheirCgroupAreStoppedFirst(t *testing.T) { // cm-20
	n, _ := newNode(t)
	groups := &foundCgroups{nodeCgroups: nodeCgroups{n}}
	p, err := pipeline.New(pipeline.Config{Runtime: n, Status: n, Resources: pipeline.Resources{Cgroups: groups}, Relister: nodeRelister{n}})
	require.NoError(t, err)
	w := firstWork(newPod("web", 0))
	w.Status.Containers = []runtime.ContainerStatus{{Name: "main", State: runtime.ContainerRunning}}

	_, err = p.Sync(t.Context(), w)
	require.NoError(t, err)
	assert.Equal(t, []string{"report", "kill", "relist"}, n.asked, "the pod's status is outdated now")
	assert.Nil(t, n.kill.GracePeriodSeconds, "with the pod's own grace period")

	n.fail["kill"] = errors.New("boom")
	_, err = p.Sync(t.Context(), w)
	assert.ErrorContains(t, err, "outside of the pod's cgroup: boom")

	for _, calm := range []func(){
		func() { groups.has = true },
		func() { groups.has, w.Status.Containers[0].State = false, runtime.ContainerExited },
	} {
		calm()
		n.asked = nil
		_, err = p.Sync(t.Context(), w)
		require.NoError(t, err)
		assert.Equal(t, []string{"report", "ensure cgroup", "sync"}, n.asked)
	}
}
