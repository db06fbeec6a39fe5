package fakenode

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// A recordingRuntime records the events of containers and prepares resource claims, which the
// in-memory runtime does not.
type recordingRuntime struct {
	*runtimetest.Runtime
	record  func(runtime.Event)
	prepare func(context.Context, runtime.SyncRequest) error
}

// SyncPod implements runtime.Runtime. It records the events of the actions, after all of them.
func (r recordingRuntime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if err := r.prepare(ctx, req); err != nil {
		return runtime.SyncResult{}, err
	}
	req.Volumes = ready(req.Pod)
	out, err := r.Runtime.SyncPod(ctx, req)
	for _, a := range out.Actions {
		for _, e := range eventsOf(req.Pod, a) {
			r.record(e)
		}
	}
	return out, err
}

// ready returns all volumes of a pod: they have no content, and nothing prepares them. Pods of
// a cluster have one for the token of their service account.
func ready(pod *v1.Pod) map[string]runtime.Volume {
	if len(pod.Spec.Volumes) == 0 {
		return nil
	}
	out := make(map[string]runtime.Volume, len(pod.Spec.Volumes))
	for i := range pod.Spec.Volumes {
		out[pod.Spec.Volumes[i].Name] = runtime.Volume{}
	}
	return out
}

// KillPod implements runtime.Runtime. The events precede the kill, as those of the kubelet.
func (r recordingRuntime) KillPod(ctx context.Context, req runtime.KillRequest) error {
	s, err := r.Runtime.PodStatus(ctx, req.UID)
	if err != nil {
		return err
	}
	pod := req.Pod
	if pod == nil {
		pod = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: s.UID}}
	}
	for _, c := range s.Containers {
		if c.State == runtime.ContainerRunning {
			r.record(killing(pod, c.Name))
		}
	}
	return r.Runtime.KillPod(ctx, req)
}

// eventsOf returns the events of an action.
func eventsOf(pod *v1.Pod, a runtime.Action) []runtime.Event {
	of := func(eventType, reason, format string, args ...any) runtime.Event {
		return runtime.Event{Object: runtime.ContainerRef(pod, a.Target), Type: eventType, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case a.Kind == runtime.KillContainer && a.Err == nil:
		return []runtime.Event{killing(pod, a.Target)}
	case a.Kind != runtime.StartContainer || errors.Is(a.Err, context.Canceled) || errors.Is(a.Err, context.DeadlineExceeded):
		return nil
	case a.Err == nil:
		return []runtime.Event{
			of(v1.EventTypeNormal, "Pulled", "Container image %q already present on machine", imageOf(pod, a.Target)),
			of(v1.EventTypeNormal, "Created", "Container created"),
			of(v1.EventTypeNormal, "Started", "Container started"),
		}
	}
	switch a.Reason {
	case "CrashLoopBackOff":
		return []runtime.Event{
			of(v1.EventTypeWarning, "BackOff", "Back-off restarting failed container %s in pod %s_%s(%s)", a.Target, pod.Name, pod.Namespace, pod.UID),
		}
	case "ErrImagePull":
		return []runtime.Event{
			of(v1.EventTypeNormal, "Pulling", "Pulling image %q", imageOf(pod, a.Target)),
			of(v1.EventTypeWarning, "Failed", "Failed to pull image %q: %s", imageOf(pod, a.Target), a.Message),
			of(v1.EventTypeWarning, "Failed", "Error: %s", a.Reason),
		}
	case "ImagePullBackOff":
		return []runtime.Event{
			of(v1.EventTypeNormal, "BackOff", "%s", a.Message),
			of(v1.EventTypeWarning, "Failed", "Error: %s", a.Reason),
		}
	}
	return []runtime.Event{of(v1.EventTypeWarning, "Failed", "Error: %s", a.Message)}
}

func killing(pod *v1.Pod, container string) runtime.Event {
	return runtime.Event{
		Object: runtime.ContainerRef(pod, container), Type: v1.EventTypeNormal, Reason: "Killing", Message: "Stopping container " + container,
	}
}

// imageOf returns the image of a container of a pod.
func imageOf(pod *v1.Pod, container string) string {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

// recordUnreadyLocked records that a container of a pod has become unready, if it has a
// readiness probe; its own, not that of withProbes.
func (a *agent) recordUnreadyLocked(d *podBehavior, c *runtime.ContainerStatus, ready bool) {
	if ready || d.unready[c.Name] == c.ID {
		if ready {
			delete(d.unready, c.Name)
		}
		return
	}
	if d.unready == nil {
		d.unready = map[string]string{}
	}
	d.unready[c.Name] = c.ID
	for _, spec := range slices.Concat(d.source.Spec.InitContainers, d.source.Spec.Containers) {
		if spec.Name == c.Name && spec.ReadinessProbe != nil {
			a.record(runtime.Event{
				Object: runtime.ContainerRef(d.source, c.Name), Type: v1.EventTypeWarning, Reason: "Unhealthy",
				Message: "Readiness probe failed: container is not ready",
			})
		}
	}
}
