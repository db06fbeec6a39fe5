package fakenode_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

func TestNodesAreReadyWhenStartReturns(t *testing.T) {
	inWorld(t, fakenode.Config{Nodes: fakenode.Many(3, fakenode.Node{Name: "n", Labels: map[string]string{"zone": "a"}})}, func(w *world) {
		assert.Equal(t, []string{"n-0", "n-1", "n-2"}, w.nodes.Names())
		list, err := w.as.CoreV1().Nodes().List(w.t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.Len(t, list.Items, 3)
		addresses := map[string]bool{}
		for _, n := range list.Items {
			assert.Equal(t, "a", n.Labels["zone"])
			assert.Equal(t, "8", n.Status.Allocatable.Cpu().String())
			assert.EqualValues(t, 110, n.Status.Allocatable.Pods().Value())
			addresses[n.Status.Addresses[0].Address] = true
			for _, c := range n.Status.Conditions {
				assert.Equal(t, c.Type == v1.NodeReady, c.Status == v1.ConditionTrue, c.Type)
			}
		}
		assert.Len(t, addresses, 3)
		time.Sleep(time.Minute)
		for _, n := range list.Items {
			lease, err := w.as.CoordinationV1().Leases("kube-node-lease").Get(w.t.Context(), n.Name, metav1.GetOptions{})
			require.NoError(t, err)
			assert.Less(t, time.Since(lease.Spec.RenewTime.Time), 11*time.Second)
		}
	})
}

func TestASecondRunIsAnError(t *testing.T) {
	inWorld(t, fakenode.Config{}, func(w *world) {
		assert.EqualError(t, w.nodes.Run(t.Context()), "fakenode: Nodes.Run was called before")
	})
}

func TestOneWatchBringsThePodsOfAllNodes(t *testing.T) {
	for own, watches := range map[bool]int{false: 1, true: 6} { // the binder watches all pods
		inWorld(t, fakenode.Config{Nodes: fakenode.Many(5, fakenode.Node{}), API: fakenode.API{OwnWatches: own}}, func(w *world) {
			w.after(time.Second)
			assert.Equal(t, watches, w.api.Watches("pods"))
			w.run("web", "")
			w.run("far", "", func(p *v1.Pod) { p.Spec.NodeName = "fake-4" })
			w.after(time.Second)
			assert.Equal(t, "Running, ready", w.summary("web"))
			assert.Equal(t, "Running, ready", w.summary("far"))
		})
	}
}

// A status that has not changed is no request, and the Node object comes from the shared
// watch; with API.OwnWatches it is read every 10 s, as by kubelets.
func TestIdleNodesOnlyRenewTheirLeases(t *testing.T) {
	for own, gets := range map[bool]int{false: 0, true: 3 * 12} {
		inWorld(t, fakenode.Config{Nodes: fakenode.Many(3, fakenode.Node{}), API: fakenode.API{OwnWatches: own}}, func(w *world) {
			w.after(time.Second)
			w.api.Forget()
			w.after(2 * time.Minute)
			assert.InDelta(t, gets, len(w.api.Calls("get")), 3)
			assert.InDelta(t, 3*12, len(w.api.Calls("update", "leases")), 6)
			assert.Len(t, w.api.Calls(), len(w.api.Calls("get"))+len(w.api.Calls("update", "leases")))
		})
	}
}

func TestNothingIsLeftWhenATestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		over := new(ending)
		n := fakenode.Start(t.Context(), over, api.RESTConfig(), fakenode.Config{})
		api.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "ours", Namespace: "default"}, Spec: v1.PodSpec{NodeName: n.Names()[0], Containers: []v1.Container{{Name: "c"}}}})
		api.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Namespace: "default"}, Spec: v1.PodSpec{NodeName: "other", Containers: []v1.Container{{Name: "c"}}}})
		time.Sleep(time.Minute)
		over.end()
		assert.Empty(t, api.List("nodes"))
		assert.Empty(t, api.List("leases"))
		assert.Nil(t, api.Pod("default", "ours"))
		assert.NotNil(t, api.Pod("default", "theirs"))
		assert.Empty(t, over.failures)
	})
}

func TestAnUnavailableServerIsReportedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apitest.Server{Fault: func(apitest.Call) apitest.Fault { return apitest.Fault{Code: 403, Message: "no, you may not"} }}
		over := new(ending)
		fakenode.Start(t.Context(), over, api.RESTConfig(), fakenode.Config{})
		require.Len(t, over.failures, 1)
		assert.Contains(t, over.failures[0], "node fake-0 is not ready: timeout after 1m0s; last error: ")
		assert.Contains(t, over.failures[0], "no, you may not")
		over.end()
	})
}

func TestErrorsNameTheInvalidField(t *testing.T) {
	_, err := fakenode.New(nil, fakenode.Config{})
	assert.ErrorContains(t, err, "REST configuration is nil")
	rest := new(apitest.Server).RESTConfig()
	_, err = fakenode.New(rest, fakenode.Config{Nodes: make([]fakenode.Node, 2)})
	assert.ErrorContains(t, err, `Config.Nodes: duplicate name "fake-0"`)
	_, err = fakenode.New(rest, fakenode.Config{Heartbeat: fakenode.Heartbeat{StatusPeriod: -time.Second}})
	assert.ErrorContains(t, err, "Period")
}

func TestNodesContinueAfterAnOutageOfTheAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan bool, 1)
		gone <- false
		api := &apitest.Server{Fault: func(apitest.Call) apitest.Fault {
			is := <-gone
			gone <- is
			return apitest.Fault{Refuse: is}
		}}
		fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{})
		api.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}})
		time.Sleep(5 * time.Second)
		<-gone
		gone <- true
		api.DropWatches()
		time.Sleep(time.Minute)
		api.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: "default"}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}})
		<-gone
		gone <- false
		time.Sleep(2 * time.Minute)
		for _, name := range []string{"web", "late"} {
			assert.Equal(t, v1.PodRunning, api.Pod("default", name).Status.Phase, name)
			assert.Zero(t, api.Pod("default", name).Status.ContainerStatuses[0].RestartCount)
		}
	})
}

// An ending is a TB whose test ends when end is called.
type ending struct {
	cleanups []func()
	failures []string
}

func (e *ending) Helper()          {}
func (e *ending) Cleanup(f func()) { e.cleanups = append(e.cleanups, f) }
func (e *ending) Logf(format string, args ...any) {
	e.failures = append(e.failures, fmt.Sprintf(format, args...))
}
func (e *ending) Fatalf(format string, args ...any) {
	e.failures = append(e.failures, fmt.Sprintf(format, args...))
}
func (e *ending) end() {
	for _, f := range e.cleanups {
		f()
	}
}

var _ fakenode.TB = (*testing.T)(nil)

// An API server that receives the statuses of thousands of pods at once responds to none of
// them in time.
func TestTheNumberOfStatusesThatAreWrittenAtOnceIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &apitest.Server{Fault: func(c apitest.Call) apitest.Fault {
			if c.Subresource == "status" && c.Resource == "pods" {
				return apitest.Fault{Latency: 10 * time.Second}
			}
			return apitest.Fault{}
		}}
		fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{Nodes: fakenode.Many(40, fakenode.Node{}), NoScheduler: true})
		for i := range 300 {
			api.Put(plainPodOn(fmt.Sprint("fake-", i%40), fmt.Sprint("web-", i)))
		}
		time.Sleep(5 * time.Second)
		assert.Len(t, api.Calls("patch", "pods/status"), 100)
		time.Sleep(time.Minute)
		for i := range 300 {
			assert.Equal(t, v1.PodRunning, api.Pod("default", fmt.Sprint("web-", i)).Status.Phase)
		}
	})
}

func plainPodOn(node, name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{Name: "c"}}}}
}
