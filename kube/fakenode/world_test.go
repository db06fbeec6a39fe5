package fakenode_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// A world is fake nodes and an API server in memory, in virtual time.
type world struct {
	t     *testing.T
	api   *apitest.Server
	as    kubernetes.Interface // another client, without limits
	nodes *fakenode.Nodes
}

// inWorld runs a test in a new world.
func inWorld(t *testing.T, cfg fakenode.Config, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, api: new(apitest.Server)}
		rest := w.api.RESTConfig()
		rest.QPS = -1
		var err error
		w.as, err = kubernetes.NewForConfig(rest)
		require.NoError(t, err)
		w.nodes = fakenode.Start(t.Context(), t, w.api.RESTConfig(), cfg)
		test(w)
	})
}

// run creates a pod of one container with the behavior in text.
func (w *world) run(name, behavior string, edits ...func(*v1.Pod)) *v1.Pod {
	w.t.Helper()
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
	}
	if behavior != "" {
		pod.Annotations = map[string]string{fakenode.Annotation: behavior}
	}
	for _, edit := range edits {
		edit(pod)
	}
	pod, err := w.as.CoreV1().Pods(pod.Namespace).Create(w.t.Context(), pod, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return pod
}

// never restarts.
func never(pod *v1.Pod) { pod.Spec.RestartPolicy = v1.RestartPolicyNever }

// after lets time go by. Nothing of the tests happens at half a tenth of a second.
func (w *world) after(d time.Duration) {
	time.Sleep(d + 50*time.Millisecond)
	synctest.Wait()
	time.Sleep(-50*time.Millisecond + 100*time.Millisecond)
	synctest.Wait()
}

// pod returns the API server's pod, or nil.
func (w *world) pod(name string) *v1.Pod {
	synctest.Wait()
	return w.api.Pod("default", name)
}

// summary is one line for a pod: its phase, whether it is ready, and its first
// container.
func (w *world) summary(name string) string {
	w.t.Helper()
	pod := w.pod(name)
	if pod == nil {
		return "gone"
	}
	out := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		out += " " + pod.Status.Reason
	}
	if condition(pod, v1.PodReady) == v1.ConditionTrue {
		out += ", ready"
	}
	for _, c := range pod.Status.ContainerStatuses[:min(1, len(pod.Status.ContainerStatuses))] {
		switch s := c.State; {
		case s.Waiting != nil:
			out += ", waits: " + s.Waiting.Reason
		case s.Terminated != nil:
			out += fmt.Sprintf(", ended: %d %s", s.Terminated.ExitCode, s.Terminated.Reason)
		}
		if c.RestartCount > 0 {
			out += fmt.Sprintf(", %d restarts", c.RestartCount)
		}
	}
	return out
}

func condition(pod *v1.Pod, kind v1.PodConditionType) v1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return ""
}

// delete requests the deletion of a pod, with its own grace period.
func (w *world) delete(name string) {
	w.t.Helper()
	require.NoError(w.t, w.as.CoreV1().Pods("default").Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}
