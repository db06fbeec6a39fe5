package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A clusterWorld is a real control plane with this agent as its only node.
type clusterWorld struct {
	*world
	control *lab.ControlPlane
	api     kubernetes.Interface // with all rights
}

// onCluster starts a control plane, a containerd, and the agent as a node that
// has a bootstrap token and nothing else, with these flags besides.
func onCluster(t *testing.T, flags ...string) *clusterWorld {
	t.Helper()
	lab.Need(t, "kubernetes", "containerd")
	control := lab.NewControlPlane(t, lab.ControlPlaneConfig{NodeMonitorGrace: 20 * time.Second})
	w := &clusterWorld{world: onContainerd(t), control: control}
	w.flags = []string{
		"--kubeconfig=" + filepath.Join(w.dir, "kubeconfig"), "--bootstrap-kubeconfig=" + control.BootstrapKubeconfig(), "--node-labels=rack=7", "--remember-pods",
		"--port=-1", "--healthz-port=-1", "--client-ca-file=" + w.caFile(control),
	}
	w.flags = append(w.flags, flags...)
	var err error
	w.api, _, err = labenv.NewClient(control.Kubeconfig)
	require.NoError(t, err)
	w.start()
	w.untilReady(v1.ConditionTrue)
	return w
}

// caFile writes the CA of this control plane's client certificates to a file.
func (w *clusterWorld) caFile(control *lab.ControlPlane) string {
	path := filepath.Join(w.dir, "ca.crt")
	require.NoError(w.t, os.WriteFile(path, control.CA(), 0o600))
	return path
}

// untilReady waits until the node's condition Ready is so.
func (w *clusterWorld) untilReady(is v1.ConditionStatus) {
	w.t.Helper()
	w.until("the node's Ready is "+string(is), func() error {
		node, err := w.api.CoreV1().Nodes().Get(w.t.Context(), "node", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range node.Status.Conditions {
			if c.Type == v1.NodeReady && c.Status == is {
				return nil
			} else if c.Type == v1.NodeReady {
				return fmt.Errorf("%s: %s: %s", c.Status, c.Reason, c.Message)
			}
		}
		return fmt.Errorf("there is no such condition: %v", node.Status.Conditions)
	})
}

// A room is a namespace of one test, which may run in parallel with others.
type room struct {
	*clusterWorld
	t    *testing.T
	name string
}

// room creates a namespace. It exists as long as the control plane.
func (w *clusterWorld) room(t *testing.T, name string) *room {
	t.Helper()
	_, err := w.api.CoreV1().Namespaces().Create(t.Context(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	r := &room{w, t, name}
	r.until("the namespace's service account", func() error {
		_, err := w.api.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
	t.Cleanup(func() {
		if t.Failed() {
			r.describe()
		}
	})
	return r
}

// until waits until check finds nothing wrong.
func (r *room) until(what string, check func() error) {
	r.t.Helper()
	for begun := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begun) > 2*patience {
			r.t.Fatalf("not within %v: %s: %v", 2*patience, what, err)
		}
	}
}

// describe logs the pods and events of the namespace, and the agent's output about it.
func (r *room) describe() {
	ctx := context.WithoutCancel(r.t.Context())
	pods, err := r.api.CoreV1().Pods(r.name).List(ctx, metav1.ListOptions{})
	if err != nil {
		r.t.Log(err)
		return
	}
	for _, p := range pods.Items {
		r.t.Logf("pod %s %s deleted %v: %s %s %v %v", p.Name, p.UID, p.DeletionTimestamp, p.Status.Phase, p.Status.Reason, p.Status.Conditions, p.Status.ContainerStatuses)
	}
	requests, err := r.control.PodRequests(r.name)
	r.t.Log(err, "\n", strings.Join(requests, "\n"))
	names := map[string]bool{}
	for _, e := range r.events("") {
		r.t.Logf("event %s %s %s: %s (%d)", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message, e.Count)
		names[e.InvolvedObject.Name] = true
	}
	for line := range strings.Lines(r.out.String()) {
		if words := strings.Fields(line); len(words) > 1 && names[words[1]] || strings.Contains(line, r.name+"/") {
			r.t.Log(strings.TrimSpace(line))
		}
	}
}

// events returns those about the named object, "" for all.
func (r *room) events(about string) []v1.Event {
	list, err := r.api.CoreV1().Events(r.name).List(context.WithoutCancel(r.t.Context()), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var out []v1.Event
	for _, e := range list.Items {
		if about == "" || e.InvolvedObject.Name == about {
			out = append(out, e)
		}
	}
	return out
}

// untilEvent waits for an event about an object.
func (r *room) untilEvent(about, reason string) (event v1.Event) {
	r.t.Helper()
	r.until("event "+reason+" about "+about, func() error {
		for _, e := range r.events(about) {
			if e.Reason == reason {
				event = e
				return nil
			}
		}
		return fmt.Errorf("there are %d others", len(r.events(about)))
	})
	return event
}

// spec is a pod that runs a script and needs nothing from the API server.
func spec(script string) v1.PodSpec {
	return v1.PodSpec{
		AutomountServiceAccountToken: new(false), EnableServiceLinks: new(false),
		Containers: []v1.Container{{Name: "main", Image: lab.Busybox, Command: []string{"sh", "-c", script}}},
	}
}

// make creates a pod; a name for a node skips the scheduler.
func (r *room) make(name string, spec v1.PodSpec) *v1.Pod {
	r.t.Helper()
	pod, err := r.api.CoreV1().Pods(r.name).Create(r.t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(r.t, err)
	return pod
}

func (r *room) pod(name string) (*v1.Pod, error) {
	return r.api.CoreV1().Pods(r.name).Get(r.t.Context(), name, metav1.GetOptions{})
}

// inPhase returns the pod, and an error if its phase is another one.
func (r *room) inPhase(name string, phase v1.PodPhase) (*v1.Pod, error) {
	pod, err := r.pod(name)
	if err == nil && pod.Status.Phase != phase {
		err = fmt.Errorf("it is %s: %s: %v", pod.Status.Phase, pod.Status.Message, pod.Status.ContainerStatuses)
	}
	return pod, err
}

// untilPhase waits until the pod's phase is so.
func (r *room) untilPhase(name string, phase v1.PodPhase) (pod *v1.Pod) {
	r.t.Helper()
	r.until(fmt.Sprintf("pod %s is %s", name, phase), func() (err error) {
		pod, err = r.inPhase(name, phase)
		return err
	})
	return pod
}

// untilRunsOrLost waits until the pod runs, or does not exist; then it returns nil.
func (r *room) untilRunsOrLost(name string) (pod *v1.Pod) {
	r.t.Helper()
	r.until("pod "+name+" runs", func() (err error) {
		if pod, err = r.inPhase(name, v1.PodRunning); apierrors.IsNotFound(err) {
			pod, err = nil, nil
		}
		return err
	})
	return pod
}

// untilGone waits until there is no such pod.
func (r *room) untilGone(name string) {
	r.t.Helper()
	r.until("pod "+name+" is gone", func() error {
		pod, err := r.pod(name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = fmt.Errorf("it still exists: %s", pod.Status.Phase)
		}
		return err
	})
}

// delete deletes a pod; a grace below zero is the pod's own.
func (r *room) delete(name string, grace int64) {
	r.t.Helper()
	var opts metav1.DeleteOptions
	if grace >= 0 {
		opts.GracePeriodSeconds = &grace
	}
	require.NoError(r.t, r.api.CoreV1().Pods(r.name).Delete(r.t.Context(), name, opts))
}

// running returns the number of the runtime's sandboxes in the namespace, by pod name.
func (r *room) running() map[string]int {
	r.t.Helper()
	list, err := lab.List(r.t.Context(), r.daemon.Endpoint)
	require.NoError(r.t, err)
	found := map[string]int{}
	for _, s := range list.Sandboxes {
		if s.Metadata.Namespace == r.name {
			found[s.Metadata.Name]++
		}
	}
	return found
}

// deployment is one of replicas pods that run script.
func deployment(name string, replicas int32, script string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec(script)},
		},
	}
}

// untilAvailable waits until all of a deployment's pods, and no others, are
// there as its current template has them.
func (r *room) untilAvailable(name string, replicas int32) {
	r.t.Helper()
	r.until(fmt.Sprintf("deployment %s has %d pods", name, replicas), func() error {
		d, err := r.api.AppsV1().Deployments(r.name).Get(r.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.Replicas != replicas || s.UpdatedReplicas != replicas || s.AvailableReplicas != replicas {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
}

// logOf returns the log of a pod's container.
func (r *room) logOf(pod *v1.Pod) string {
	var out strings.Builder
	for _, l := range r.readLog(r.logFile(*pod, "main", 0)) {
		out.WriteString(l.text + "\n")
	}
	return out.String()
}
