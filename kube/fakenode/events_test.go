package fakenode_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// recorded returns the events of an object as "Reason: message", in the order of their names,
// which are those of their first times.
func recorded(api *apitest.Server, name string) (list []string) {
	for _, o := range api.List("events") {
		if e := o.(*v1.Event); e.InvolvedObject.Name == name {
			list = append(list, e.Reason+": "+e.Message)
		}
	}
	return list
}

// inEvents runs a test with a fake node and a pod with one container.
func inEvents(t *testing.T, behavior string, test func(t *testing.T, api *apitest.Server, c kubernetes.Interface, nodes *fakenode.Nodes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		nodes := fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{})
		c := kubernetes.NewForConfigOrDie(api.RESTConfig())
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{fakenode.Annotation: behavior}},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1", ReadinessProbe: &v1.Probe{
				ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"test"}}},
			}}}},
		}
		_, err := c.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		require.NoError(t, err)
		time.Sleep(2500 * time.Millisecond)
		test(t, api, c, nodes)
	})
}

func TestThePodLifecycleHasEvents(t *testing.T) {
	inEvents(t, "run", func(t *testing.T, api *apitest.Server, c kubernetes.Interface, nodes *fakenode.Nodes) {
		require.NoError(t, nodes.SetReady("default", "web", false))
		time.Sleep(time.Second)
		require.NoError(t, nodes.SetReady("default", "web", true))
		time.Sleep(time.Second)
		for range 2 {
			require.NoError(t, nodes.Exit("default", "web", "", 1))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		require.NoError(t, c.CoreV1().Pods("default").Delete(t.Context(), "web", metav1.DeleteOptions{}))
		time.Sleep(time.Minute)
		events := recorded(api, "web")
		for i, e := range events {
			if strings.HasPrefix(e, "BackOff: ") {
				e, _, _ = strings.Cut(e, "(")
			}
			events[i] = e
		}
		assert.ElementsMatch(t, []string{
			"Scheduled: Successfully assigned default/web to fake-0",
			`Pulled: Container image "web:1" already present on machine`,
			"Created: Container created",
			"Started: Container started",
			"Unhealthy: Readiness probe failed: container is not ready",
			"BackOff: Back-off restarting failed container main in pod web_default",
			"Killing: Stopping container main",
		}, events)
		for _, o := range api.List("events") {
			switch e := o.(*v1.Event); e.Reason {
			case "Pulled", "Created", "Started":
				assert.EqualValues(t, 3, e.Count, e.Reason)
				assert.Equal(t, "spec.containers{main}", e.InvolvedObject.FieldPath)
			}
		}
	})
}

func TestAnEvictionHasEvents(t *testing.T) {
	inEvents(t, "evict@2s", func(t *testing.T, api *apitest.Server, _ kubernetes.Interface, _ *fakenode.Nodes) {
		events := recorded(api, "web")
		evicted := slices.Index(events, "Evicted: The node was low on resource: memory.")
		killed := slices.Index(events, "Killing: Stopping container main")
		require.GreaterOrEqual(t, evicted, 0, "%v", events)
		require.Greater(t, killed, evicted, "%v", events)
	})
}

func TestAnImageThatCannotBePulledHasEvents(t *testing.T) {
	inEvents(t, "fail=ErrImagePull", func(t *testing.T, api *apitest.Server, _ kubernetes.Interface, _ *fakenode.Nodes) {
		events := recorded(api, "web")
		for _, e := range []string{
			`Pulling: Pulling image "web:1"`,
			`Failed: Failed to pull image "web:1": failed to pull image "web:1": not found`,
			"Failed: Error: ErrImagePull",
			`BackOff: Back-off pulling image "web:1"`,
			"Failed: Error: ImagePullBackOff",
		} {
			assert.Contains(t, events, e)
		}
	})
}

func TestAContainerThatCannotBeCreatedHasAnEvent(t *testing.T) {
	inEvents(t, "fail=CreateContainerError", func(t *testing.T, api *apitest.Server, _ kubernetes.Interface, _ *fakenode.Nodes) {
		assert.Contains(t, recorded(api, "web"), "Failed: Error: failure specified by its behavior")
	})
}

func TestAnUnreadyNodeHasEvents(t *testing.T) {
	inEvents(t, "run", func(t *testing.T, api *apitest.Server, _ kubernetes.Interface, nodes *fakenode.Nodes) {
		require.NoError(t, nodes.Unready(t.Context(), "fake-0", ""))
		require.NoError(t, nodes.Recover(t.Context(), "fake-0"))
		time.Sleep(time.Second)
		assert.Equal(t, []string{
			"NodeHasSufficientMemory: Node fake-0 status is now: NodeHasSufficientMemory",
			"NodeHasNoDiskPressure: Node fake-0 status is now: NodeHasNoDiskPressure",
			"NodeHasSufficientPID: Node fake-0 status is now: NodeHasSufficientPID",
			"NodeNotReady: Node fake-0 status is now: NodeNotReady",
			"NodeReady: Node fake-0 status is now: NodeReady",
		}, recorded(api, "fake-0"))
	})
}

func TestNoEventsDisablesEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := new(apitest.Server)
		fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{API: fakenode.API{NoEvents: true}})
		api.Put(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u"}, Spec: v1.PodSpec{
			NodeName: "fake-0", Containers: []v1.Container{{Name: "main", Image: "web:1"}},
		}})
		time.Sleep(time.Minute)
		assert.Equal(t, v1.PodRunning, api.Pod("default", "web").Status.Phase)
		assert.Empty(t, api.List("events"))
	})
}
