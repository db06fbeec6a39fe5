package kubelet

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
)

// cgroupRoot is a place in the machine's cgroups that no other agent has.
func (a *agent) cgroupRoot() string {
	return "/kubeparts-test-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(filepath.Base(filepath.Dir(a.dir))))
}

// cgroupsGo removes the cgroups of an agent that has ended.
func (a *agent) cgroupsGo() {
	tree, err := host.New(host.Config{})
	if err != nil || os.Geteuid() != 0 {
		return // it created none
	}
	root, err := cgroups.ParseRoot(a.cgroupRoot())
	require.NoError(a.t, err)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(a.t.Context()), patience)
	defer cancel()
	assert.NoError(a.t, tree.Remove(ctx, root))
}

const limited = `apiVersion: v1
kind: Pod
metadata: {name: limited, uid: 11111111-2222-3333-4444-555555555555}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: kubeparts.test/busybox:1
    command: [sleep, inf]
    resources: {requests: {cpu: 100m, memory: 32Mi}, limits: {cpu: 200m, memory: 64Mi}}
`

// Containers of a real runtime are in the cgroup of their pod, whose settings match
// the spec; changes to it are reverted, the next agent keeps it, and it is removed
// with the pod.
func TestIntegrationContainersAreInTheCgroupOfTheirPodOnContainerd(t *testing.T) {
	w := onContainerd(t)
	a := w.agent
	a.start("--pod-max-pids=77", "--system-reserved=cpu=100m,memory=64Mi")
	a.write("limited.yaml", limited)
	a.eventually("the pod runs", func() bool { return a.pods()["limited"].Status.Phase == v1.PodRunning })

	tree, err := host.New(host.Config{})
	require.NoError(t, err)
	root, err := cgroups.ParseRoot(a.cgroupRoot())
	require.NoError(t, err)
	burstable := root.Child("kubepods", "burstable")
	pod := burstable.Child("pod11111111-2222-3333-4444-555555555555")
	has, err := tree.Read(pod)
	require.NoError(t, err)
	facts := tree.Facts()
	want := facts.AsRead(cgroups.Resources{
		CPUShares: new(int64(102)), CPUQuota: new(int64(20_000)), CPUPeriod: new(int64(100_000)), Memory: new(int64(64 << 20)), Pids: new(int64(77)),
	})
	assert.Empty(t, cgroups.Drift(has, want), "cm-13, cm-16")
	class, err := tree.Read(burstable)
	require.NoError(t, err)
	assert.Empty(t, cgroups.Drift(class, facts.AsRead(cgroups.Resources{CPUShares: new(int64(102))})), "cm-18")
	inside, err := tree.Children(pod)
	require.NoError(t, err)
	assert.Len(t, inside, 2, "the sandbox and the container: %v", inside)
	_, id, _ := strings.Cut(a.pods()["limited"].Status.ContainerStatuses[0].ContainerID, "://")
	given, err := tree.Read(pod.Child(id))
	require.NoError(t, err)
	own := cgroups.Resources{CPUShares: new(int64(102)), CPUQuota: new(int64(20_000)), CPUPeriod: new(int64(100_000)), Memory: new(int64(64 << 20)), HugePages: map[int64]int64{}}
	for size := range given.HugePages {
		own.HugePages[size] = 0 // cm-37
	}
	assert.Empty(t, cgroups.Drift(given, facts.AsRead(own)), "cm-32: the settings that the kubelet passes to the runtime")
	t.Logf("the container has %v", given)
	used, err := tree.ContainerStats(pod, id)
	require.NoError(t, err)
	assert.NotZero(t, used.Memory.Usage, "found by its ID")
	used, err = tree.Stats(pod)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, used.Pids.Current, uint64(2))

	// Its stats are reported.
	_, body, err := a.get("/stats/summary")
	require.NoError(t, err)
	var summary statsapi.Summary
	a.eventually("the summary has the pod", func() bool {
		_, body, err = a.get("/stats/summary")
		return err == nil && json.Unmarshal(body, &summary) == nil && len(summary.Pods) == 1 && summary.Pods[0].Memory != nil
	})
	assert.NotZero(t, *summary.Pods[0].Memory.WorkingSetBytes)
	assert.Equal(t, "main", summary.Pods[0].Containers[0].Name)
	assert.NotNil(t, summary.Node.Runtime.ImageFs)
	assert.Equal(t, "pods", summary.Node.SystemContainers[0].Name)

	// The next agent adopts the cgroup, and reverts a change made meanwhile.
	a.kill()
	require.NoError(t, tree.Apply(t.Context(), pod, cgroups.Resources{Pids: new(int64(5000))}))
	a.start("--pod-max-pids=77")
	a.eventually("the limit is corrected", func() bool {
		has, err := tree.Read(pod)
		return err == nil && *has.Pids == 77
	})

	// A resize changes the pod's cgroup.
	a.write("limited.yaml", strings.Replace(limited, "limits: {cpu: 200m", "limits: {cpu: 400m", 1))
	a.eventually("the pod is resized", func() bool {
		has, err := tree.Read(pod)
		return err == nil && *has.CPUQuota == 40_000
	})

	a.remove("limited.yaml")
	a.eventually("the cgroup is gone", func() bool {
		_, err := tree.Children(pod)
		return os.IsNotExist(err) || err != nil
	})
}
