package fakenode_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// annotated selects the nodes of kwok's users.
func annotated(n *v1.Node) bool { return n.Annotations["kwok.x-k8s.io/node"] == "fake" }

// theirs returns a Node object that another client creates.
func theirs(name string, edits ...func(*v1.Node)) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}}}
	for _, edit := range edits {
		edit(n)
	}
	return n
}

// adopting runs nodes of other clients until the returned function is called.
func adopting(t *testing.T, api *apitest.Server, adopt func(*v1.Node) bool) (nodes *fakenode.Nodes, stop func()) {
	t.Helper()
	nodes, err := fakenode.New(api.RESTConfig(), fakenode.Config{Adopt: adopt, NoScheduler: true})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- nodes.Run(ctx) }()
	return nodes, func() {
		cancel()
		assert.NoError(t, <-stopped)
	}
}

// on returns a pod that is bound to a node.
func on(node, name, behavior string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{fakenode.Annotation: behavior}},
		Spec:       v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
	}
}

func restarts(api *apitest.Server, name string) int32 {
	return api.Pod("default", name).Status.ContainerStatuses[0].RestartCount
}

func TestAdoptedNodesKeepWhatTheirCreatorsHaveSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		taint := v1.Taint{Key: "only", Effect: v1.TaintEffectPreferNoSchedule}
		api.Put(theirs("plain"))
		api.Put(theirs("full", func(n *v1.Node) {
			n.Labels = map[string]string{"type": "kwok", v1.LabelOSStable: "windows"}
			n.Spec.Taints = []v1.Taint{taint}
			n.Status = v1.NodeStatus{
				Capacity:    v1.ResourceList{v1.ResourceCPU: resource.MustParse("96"), "nvidia.com/gpu": resource.MustParse("8")},
				Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("95"), v1.ResourceMemory: resource.MustParse("1Ti")},
				Addresses:   []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.9.9.9"}},
				NodeInfo:    v1.NodeSystemInfo{KubeletVersion: "fake", Architecture: "arm64"},
				Conditions:  []v1.NodeCondition{{Type: "Degraded", Status: v1.ConditionTrue}},
				Images:      []v1.ContainerImage{{Names: []string{"x"}}},
			}
		}))
		api.Put(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real"}})
		nodes, stop := adopting(t, api, annotated)
		defer stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, []string{"full", "plain"}, nodes.Names())
		assert.Empty(t, api.Get("nodes", "", "real").(*v1.Node).Status.Conditions)
		assert.Nil(t, api.Get("leases", "kube-node-lease", "real"))

		full := api.Get("nodes", "", "full").(*v1.Node)
		assert.Equal(t, map[string]string{"type": "kwok", v1.LabelOSStable: "windows"}, full.Labels)
		assert.Equal(t, []v1.Taint{taint}, full.Spec.Taints)
		s := full.Status
		quantities := func(list v1.ResourceList) map[string]string {
			out := map[string]string{}
			for name, q := range list {
				out[string(name)] = q.String()
			}
			return out
		}
		assert.Equal(t, map[string]string{"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8", "ephemeral-storage": "100Gi", "pods": "110"}, quantities(s.Capacity))
		assert.Equal(t, map[string]string{"cpu": "95", "memory": "1Ti", "nvidia.com/gpu": "8", "ephemeral-storage": "100Gi", "pods": "110"}, quantities(s.Allocatable))
		assert.Equal(t, []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "10.9.9.9"}}, s.Addresses)
		assert.Equal(t, "fake arm64 linux", s.NodeInfo.KubeletVersion+" "+s.NodeInfo.Architecture+" "+s.NodeInfo.OperatingSystem)
		assert.Len(t, s.Images, 1)
		conditions := map[v1.NodeConditionType]v1.ConditionStatus{}
		for _, c := range s.Conditions {
			conditions[c.Type] = c.Status
		}
		assert.Equal(t, map[v1.NodeConditionType]v1.ConditionStatus{"Degraded": "True", "Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}, conditions)
		assert.NotNil(t, api.Get("leases", "kube-node-lease", "full"))

		plain := api.Get("nodes", "", "plain").(*v1.Node)
		assert.Equal(t, map[string]string{"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}, quantities(plain.Status.Allocatable))
		assert.Len(t, plain.Status.Addresses, 1)
	})
}

func TestNodesComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		nodes, stop := adopting(t, api, annotated)
		defer stop()
		time.Sleep(time.Minute)
		assert.Empty(t, nodes.Names())
		api.Put(theirs("n"))
		api.Put(on("n", "web", "exit=1@20s"))
		time.Sleep(70 * time.Second)
		assert.Equal(t, v1.PodRunning, api.Pod("default", "web").Status.Phase)
		assert.EqualValues(t, 2, restarts(api, "web"))

		api.Remove("nodes", "", "n")
		time.Sleep(time.Second)
		assert.Empty(t, nodes.Names())
		before := api.Pod("default", "web").ResourceVersion
		time.Sleep(5 * time.Minute)
		assert.Equal(t, before, api.Pod("default", "web").ResourceVersion, "its pods are forgotten")

		// Another node of this name runs the pod that the first one had.
		api.Put(theirs("n"))
		time.Sleep(time.Second)
		assert.Equal(t, []string{"n"}, nodes.Names())
		assert.GreaterOrEqual(t, restarts(api, "web"), int32(2))
		time.Sleep(time.Minute)
		assert.Greater(t, restarts(api, "web"), int32(2))
	})
}

// A pod has the same containers, with their restart counts, after another process has taken
// over its node.
func TestPodsKeepTheirStateInAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		api.Put(theirs("n", func(n *v1.Node) { n.Labels = map[string]string{"disk": "ssd"} }))
		_, stop := adopting(t, api, annotated)
		long := on("n", "long", "")
		long.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		api.Put(long)
		api.Put(on("n", "crashes", "exit=1@1s,crashes=3"))
		api.Put(on("n", "loops", "exit=1@1s"))
		job := on("n", "job", "exit=0@5m")
		job.Spec.RestartPolicy = v1.RestartPolicyNever
		api.Put(job)
		done := on("n", "done", "exit=3")
		done.Spec.RestartPolicy = v1.RestartPolicyNever
		api.Put(done)
		api.Put(on("n", "late", "ready=4m"))
		staged := on("n", "staged", "")
		staged.Spec.InitContainers = []v1.Container{{Name: "first", Image: "init:1"}}
		staged.Annotations = map[string]string{fakenode.AnnotationPrefix + "first": "exit=0@1s"}
		api.Put(staged)
		time.Sleep(3*time.Minute + 300*time.Millisecond)
		synctest.Wait()
		stop()

		was := map[string]v1.PodStatus{}
		for _, name := range []string{"long", "crashes", "loops", "job", "done", "late", "staged"} {
			was[name] = api.Pod("default", name).Status
		}
		api.Forget()
		_, stop = adopting(t, api, annotated)
		defer stop()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for name, s := range was {
			assert.Equal(t, s, api.Pod("default", name).Status, name)
		}
		for _, c := range api.Calls("patch", "pods/status") {
			// A status may be written before the first sync has found that a container waits for its back-off.
			assert.Equal(t, "loops", c.Name, "%s", c.Body)
		}
		assert.EqualValues(t, 3, restarts(api, "crashes"))
		loops := restarts(api, "loops")
		assert.Greater(t, loops, int32(2))

		time.Sleep(time.Minute) // until 4 min 10 s
		assert.True(t, api.Pod("default", "late").Status.ContainerStatuses[0].Ready)
		assert.Equal(t, v1.PodRunning, api.Pod("default", "job").Status.Phase)
		time.Sleep(time.Minute)
		assert.Equal(t, v1.PodSucceeded, api.Pod("default", "job").Status.Phase)
		assert.EqualValues(t, 3, restarts(api, "crashes"))
		time.Sleep(5 * time.Minute)
		assert.Greater(t, restarts(api, "loops"), loops)
		ids := map[string]bool{}
		for _, s := range []v1.ContainerStatus{api.Pod("default", "loops").Status.ContainerStatuses[0], was["loops"].ContainerStatuses[0], was["crashes"].ContainerStatuses[0]} {
			assert.False(t, ids[s.ContainerID], s.ContainerID)
			ids[s.ContainerID] = true
		}
	})
}

// A part of the nodes can be handed over to another process.
func TestReassessStopsNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		for i := range 4 {
			api.Put(theirs(fmt.Sprint("n", i)))
			api.Put(on(fmt.Sprint("n", i), fmt.Sprint("web-", i), "exit=1@30s"))
		}
		var most atomic.Int32
		most.Store(9)
		nodes, stop := adopting(t, api, func(n *v1.Node) bool { return annotated(n) && n.Name < fmt.Sprint("n", most.Load()) })
		defer stop()
		time.Sleep(time.Minute)
		assert.Len(t, nodes.Names(), 4)
		most.Store(2)
		nodes.Reassess(t.Context())
		assert.Equal(t, []string{"n0", "n1"}, nodes.Names())
		err := nodes.Fail("n3")
		assert.ErrorContains(t, err, `unknown node "n3"`)
		api.Forget()
		time.Sleep(2 * time.Minute)
		for _, c := range api.Calls() {
			assert.NotContains(t, []string{"n2", "n3", "web-2", "web-3"}, c.Name, "%+v", c)
		}
		most.Store(9)
		nodes.Reassess(t.Context())
		time.Sleep(time.Minute)
		assert.Len(t, nodes.Names(), 4)
		assert.Greater(t, restarts(api, "web-3"), int32(1))
	})
}

func TestAdoptRequiresAnotherScheduler(t *testing.T) {
	_, err := fakenode.New(new(apitest.Server).RESTConfig(), fakenode.Config{Adopt: annotated})
	assert.EqualError(t, err, "fakenode: Config.Adopt requires Config.NoScheduler: the scheduler places pods on Config.Nodes only")
}
