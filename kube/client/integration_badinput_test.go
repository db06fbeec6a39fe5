package client_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A status that exceeds the limit of the server (3 MiB) or of its store (1.5 MiB) is
// shortened.
func clusterTooLarge(t *testing.T, c *cluster) {
	m, _ := c.connect(t, "large")
	pods, err := client.NewPods(client.PodsConfig{Client: m.conn.API, NodeName: m.node})
	require.NoError(t, err)
	took := new(taker)
	stopsWithin(t, patience, func(ctx context.Context) error { return pods.Run(ctx, took.set) })
	events := make(chan string, 100)
	calls := make(chan client.StatusCall, 100)
	statuses, err := client.NewStatuses(client.StatusesConfig{
		Client: m.conn.API, Pods: pods, Record: func(e runtime.Event) { events <- e.Reason + " " + e.Message },
		Hooks: client.StatusesHooks{Called: func(call client.StatusCall) { calls <- call }},
	})
	require.NoError(t, err)
	stopsWithin(t, patience, statuses.Run)
	for name, messages := range map[string]int{"for the store": 600, "for the server": 1200} {
		pod := m.make(strings.ReplaceAll(name, " ", "-"))
		soon(t, "the pod is desired", func() bool { return pods.Pod(pod.UID) != nil })
		reported := runningStatus()
		for i := range messages {
			reported.ContainerStatuses = append(reported.ContainerStatuses, v1.ContainerStatus{
				Name: fmt.Sprintf("c%04d", i), State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{
					Reason: "CreateContainerError", Message: strings.Repeat("no! ", 1000),
				}},
			})
		}
		require.NoError(t, statuses.UpdatePodStatus(t.Context(), pod, reported), name)
		got := m.get(pod.Name)
		require.Len(t, got.Status.ContainerStatuses, messages+1)
		assert.Equal(t, "CreateContainerError", got.Status.ContainerStatuses[messages].State.Waiting.Reason)
		assert.Len(t, got.Status.ContainerStatuses[messages].State.Waiting.Message, 1024)
		assert.Contains(t, <-events, "FailedToUpdateStatus Pod status exceeds the size limit of the API server and is shortened")
		assert.Error(t, (<-calls).Err, name)
		assert.NoError(t, (<-calls).Err)

		// And it is known from now on.
		require.NoError(t, statuses.UpdatePodStatus(t.Context(), pod, reported))
		reported.ContainerStatuses[1].RestartCount = 7
		require.NoError(t, statuses.UpdatePodStatus(t.Context(), pod, reported))
		assert.EqualValues(t, 7, m.get(pod.Name).Status.ContainerStatuses[1].RestartCount)
		assert.NoError(t, (<-calls).Err)
		for len(calls) > 0 {
			c := <-calls
			t.Errorf("one more call: %s %v", c.Verb, c.Err)
		}
		assert.Empty(t, events, "and only one event")
	}
}

// A server whose clock is two days ahead or behind does not shorten a pod's grace
// period.
func clusterClocks(t *testing.T, c *cluster) {
	m := c.newMember(t, "clocks")
	m.runtime.Behave("polite:1", fake.Behavior{StopDelay: 2 * time.Second})
	begun := time.Now()
	for name, skew := range map[string]time.Duration{"ahead": 48 * time.Hour, "behind": -48 * time.Hour} {
		when := begun.Add(skew).UTC().Format(time.RFC3339)
		key := "pods/" + m.node + "/" + name
		m.cable.unplug()
		pod := m.make(name, v1.Container{Name: "main", Image: "polite:1"})
		c.edit(t, key, func(object map[string]any) { object["metadata"].(map[string]any)["creationTimestamp"] = when })
		m.cable.plug()
		m.ready(name)

		w, err := c.admin.CoreV1().Pods(m.node).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		require.NoError(t, err)
		m.cable.unplug()
		require.NoError(t, c.admin.CoreV1().Pods(m.node).Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(30))}))
		c.edit(t, key, func(object map[string]any) {
			object["metadata"].(map[string]any)["deletionTimestamp"] = when
			for _, condition := range object["status"].(map[string]any)["conditions"].([]any) {
				condition.(map[string]any)["lastTransitionTime"] = when
			}
		})
		m.cable.plug()
		last := lastOf(t, w)
		require.Equal(t, pod.UID, last.UID)
		require.NotNil(t, last.Status.ContainerStatuses[0].State.Terminated, "the exit is reported before the deletion")
		assert.EqualValues(t, 143, last.Status.ContainerStatuses[0].State.Terminated.ExitCode, "it had its time")
		assert.WithinRange(t, last.Status.ContainerStatuses[0].State.Terminated.FinishedAt.Time, begun.Add(-time.Second), time.Now())
	}
	m.bounded("clocks", begun, 4, 40)
}

// lastOf returns the final state of a deleted pod.
func lastOf(t *testing.T, w watch.Interface) *v1.Pod {
	t.Helper()
	defer w.Stop()
	late := time.After(patience)
	for {
		select {
		case e := <-w.ResultChan():
			pod, ok := e.Object.(*v1.Pod)
			require.True(t, ok, "%v", e)
			if e.Type == watch.Deleted {
				return pod
			}
		case <-late:
			require.Fail(t, "the pod is still there")
		}
	}
}

// A lease with a renewal time in another century, and another holder, is the
// node's again, and as of now.
func clusterLease(t *testing.T, c *cluster) {
	m, _ := c.connect(t, "leased")
	leases := c.admin.CoordinationV1().Leases(v1.NamespaceNodeLease)
	at := func(lease *coordinationv1.Lease, year int) {
		lease.Spec.HolderIdentity = new("another")
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: m.node}}
	at(lease, 1970)
	_, err := leases.Create(t.Context(), lease, metav1.CreateOptions{})
	require.NoError(t, err)
	begun := time.Now()
	n, err := node.New(node.Config{
		Spec: node.Spec{Name: m.node}, Nodes: m.conn.Heartbeats.CoreV1().Nodes(), Leases: m.conn.Heartbeats.CoordinationV1().Leases(v1.NamespaceNodeLease),
		Timing: node.Timing{LeaseDuration: 4 * time.Second},
	})
	require.NoError(t, err)
	stopsWithin(t, patience, n.Run)
	for _, year := range []int{2100, 1970, 2100} {
		soon(t, "the lease is the node's, and of now", func() bool {
			lease, err = leases.Get(t.Context(), m.node, metav1.GetOptions{})
			require.NoError(t, err)
			return *lease.Spec.HolderIdentity == m.node && !lease.Spec.RenewTime.Before(&metav1.MicroTime{Time: begun}) && lease.Spec.RenewTime.Year() < 2100
		})
		at(lease, year)
		if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			require.NoError(t, err) // the node may have been faster
		}
	}
	m.bounded("lease", begun, 4, 20)
}

// A namespace is deleted while statuses of its pods are on their way.
func clusterNamespaceGoes(t *testing.T, c *cluster) {
	m := c.newMember(t, "doomed")
	const pods = 10
	for i := range pods {
		m.make(fmt.Sprintf("web-%d", i), v1.Container{Name: "main", Image: "web:1"}, v1.Container{Name: "restless", Image: "web:1"})
	}
	m.ready("web-0", "web-9")
	static := newStatic("h1")
	static.Namespace, static.Spec.NodeName = m.node, m.node
	static.Spec.EnableServiceLinks = nil
	m.static.Set(static)
	m.ready(static.Name)
	all, err := c.admin.CoreV1().Pods(m.node).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	begun := time.Now()
	m.tally.forget()
	require.NoError(t, c.admin.CoreV1().Namespaces().Delete(t.Context(), m.node, metav1.DeleteOptions{}))
	soon(t, "the namespace and its content are gone", func() bool {
		for _, pod := range all.Items { // make the status of each remaining pod change
			_ = m.runtime.Exit(pod.UID, "restless", 1) // it may be gone
		}
		_, err := c.admin.CoreV1().Namespaces().Get(t.Context(), m.node, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	soon(t, "deleted pods have stopped, and the static pod continues", func() bool {
		left, err := m.runtime.Pods(t.Context())
		require.NoError(t, err)
		var names []string
		for _, pod := range left {
			if slices.ContainsFunc(pod.Containers, func(c runtime.Container) bool { return c.State == runtime.ContainerRunning }) {
				names = append(names, pod.Name)
			}
		}
		return slices.Equal(names, []string{static.Name})
	})
	// A change of a pod may need a patch, and so may the end of each pod; the mirror
	// of the static pod is rejected, and not retried.
	m.bounded("while the namespace is deleted", begun, 10*pods, 20*pods)
	m.tally.forget()
	gone := time.Now()
	time.Sleep(5 * time.Second)
	m.bounded("in a namespace that is gone", gone, 2, 5)

	// It is created again, and with another manifest, which was not rejected yet,
	// so does the copy.
	c.namespace(t, m.node)
	static = static.DeepCopy()
	static.UID, static.Annotations[runtime.ConfigHashAnnotation] = "static-uid-2", "h2"
	m.static.Set(static)
	m.ready(static.Name)
}
