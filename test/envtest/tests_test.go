package envtest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/status"
)

// A world is an API server with fake nodes and a running controller.
type world struct {
	*testing.T
	api   kubernetes.Interface
	nodes *fakenode.Nodes
	space string // the namespace
}

// tests are the tests of the controller, for any API server.
var tests = map[string]func(w *world){
	"AllMembersBecomeReady": func(w *world) {
		w.team("web", "3", "v1", "")
		w.until("all are ready", func() error { return w.readyIs("web", "3/3") })
		require.NoError(w, w.nodes.SetReady(w.space, "web-1", false))
		w.until("one is not ready", func() error { return w.readyIs("web", "2/3") })
		require.NoError(w, w.nodes.SetReady(w.space, "web-1", true))
		w.until("all are ready again", func() error { return w.readyIs("web", "3/3") })
	},

	"AMemberThatFailsIsReplaced": func(w *world) {
		w.team("web", "2", "v1", "")
		w.until("all are ready", func() error { return w.readyIs("web", "2/2") })
		was := w.pod("web-1")
		require.NoError(w, w.nodes.Exit(w.space, "web-1", "", 1))
		w.until("there is another one", func() error { return w.another(was) })
		w.until("all are ready", func() error { return w.readyIs("web", "2/2") })
	},

	"AMemberThatIsEvictedIsReplaced": func(w *world) {
		w.team("web", "1", "v1", "")
		w.until("it is ready", func() error { return w.readyIs("web", "1/1") })
		was := w.pod("web-0")
		require.NoError(w, w.nodes.Evict(w.Context(), w.space, "web-0", "The node was low on resource: memory."))
		w.until("there is another one", func() error { return w.another(was) })
		w.until("it is ready", func() error { return w.readyIs("web", "1/1") })
	},

	"ARolloutWaitsForReadiness": func(w *world) {
		w.team("web", "2", "v1", "")
		w.until("all are ready", func() error { return w.readyIs("web", "2/2") })
		first := w.pod("web-0")
		w.team("web", "2", "never-ready", "") // which is what its image does; see newNodes
		w.until("the first is new", func() error {
			if pod := w.pod("web-1"); pod == nil || pod.Spec.Containers[0].Image != "never-ready" || pod.Status.Phase != v1.PodRunning {
				return fmt.Errorf("the pod is %v", pod)
			}
			return w.readyIs("web", "1/2")
		})
		w.pass(2 * time.Second)
		assert.Equal(w, first.UID, w.pod("web-0").UID, "the other one must wait")

		require.NoError(w, w.nodes.SetReady(w.space, "web-1", true))
		w.until("the rollout goes on", func() error { return w.another(first) })
		assert.Equal(w, "never-ready", w.pod("web-0").Spec.Containers[0].Image)
	},

	"AMemberIsReplacedAfterItsGracePeriod": func(w *world) {
		w.team("web", "1", "v1", "ignoreTERM")
		w.until("it is ready", func() error { return w.readyIs("web", "1/1") })
		was, begun := w.pod("web-0"), time.Now()
		require.NoError(w, w.api.CoreV1().Pods(w.space).Delete(w.Context(), "web-0", metav1.DeleteOptions{}))
		w.until("none is ready", func() error { return w.readyIs("web", "0/1") })
		assert.Equal(w, was.UID, w.pod("web-0").UID, "it is still running and not replaced")
		w.until("there is another one", func() error { return w.another(was) })
		assert.GreaterOrEqual(w, time.Since(begun), 2900*time.Millisecond, "it ignores SIGTERM and is killed after 3 s")
	},

	"ATeamIsScaledDown": func(w *world) {
		w.team("web", "3", "v1", "")
		w.until("all are ready", func() error { return w.readyIs("web", "3/3") })
		w.team("web", "1", "v1", "")
		w.until("one is left", func() error {
			if w.pod("web-1") != nil || w.pod("web-2") != nil {
				return errors.New("members remain")
			}
			return w.readyIs("web", "1/1")
		})
	},
}

// newNodes are the nodes of these tests and the behavior of their pods.
var newNodes = fakenode.Config{
	Nodes:     fakenode.Many(2, fakenode.Node{}),
	Behaviors: map[string]fake.Behavior{"never-ready": {NeverReady: true}}, // by image
}

// team creates or updates a team.
func (w *world) team(name, replicas, image, behavior string) {
	w.Helper()
	maps := w.api.CoreV1().ConfigMaps(w.space)
	data := map[string]string{"replicas": replicas, "image": image}
	made := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.space}, Data: data}
	if behavior != "" {
		made.Annotations = map[string]string{fakenode.Annotation: behavior}
	}
	_, err := maps.Create(w.Context(), made, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(w.Context(), made, metav1.UpdateOptions{})
	}
	require.NoError(w, err)
}

// says returns an error unless the team reports that so many members are ready.
func (w *world) readyIs(team, want string) error {
	m, err := w.api.CoreV1().ConfigMaps(w.space).Get(w.Context(), team, metav1.GetOptions{})
	if err == nil && m.Data["ready"] != want {
		err = fmt.Errorf("ready is %q", m.Data["ready"])
	}
	return err
}

// pod returns the current pod, nil if there is none.
func (w *world) pod(name string) *v1.Pod {
	w.Helper()
	pod, err := w.api.CoreV1().Pods(w.space).Get(w.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w, err)
	return pod
}

// another returns an error unless a running pod has replaced was.
func (w *world) another(was *v1.Pod) error {
	pod := w.pod(was.Name)
	if pod == nil || pod.UID == was.UID || pod.Status.Phase != v1.PodRunning {
		return fmt.Errorf("the pod is %v", pod)
	}
	return nil
}

// pass waits.
func (w *world) pass(d time.Duration) { time.Sleep(d) }

// until waits until check returns nil.
func (w *world) until(what string, check func() error) {
	w.Helper()
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begun) > 90*time.Second {
			list, _ := w.api.CoreV1().Pods(w.space).List(w.Context(), metav1.ListOptions{})
			for _, pod := range list.Items {
				w.Logf("pod %s on %q, deleted %v: %s", pod.Name, pod.Spec.NodeName, pod.DeletionTimestamp, status.Summary(&pod.Status))
			}
			w.Fatalf("not within 90s: %s: %v", what, err)
		}
	}
}
