//go:build unix

package compare

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// A watcher records the versions of all pods in the API server.
type watcher struct {
	mu   sync.Mutex // guards the following
	pods map[string]*watched
}

// watched is a pod with its versions.
type watched struct {
	history []v1.Pod
	changed time.Time
	deleted bool
}

// watchPods starts a watch, which ends with ctx, and waits until the pods were listed.
func watchPods(ctx context.Context, api kubernetes.Interface) (*watcher, error) {
	w := &watcher{pods: map[string]*watched{}}
	factory := informers.NewSharedInformerFactory(api, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.add(o, false) },
		UpdateFunc: func(_, o any) { w.add(o, false) },
		DeleteFunc: func(o any) { w.add(o, true) },
	})
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, ctx.Err()
	}
	return w, nil
}

// add records a version.
func (w *watcher) add(object any, deleted bool) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.pods[pod.Name]
	if of == nil {
		of = new(watched)
		w.pods[pod.Name] = of
	}
	pod = pod.DeepCopy()
	pod.ManagedFields = nil
	of.history, of.changed, of.deleted = append(of.history, *pod), time.Now(), deleted
}

// The times without a change after which a pod is settled: one that looks so, and any other,
// for example one that waits for a volume.
const (
	quietTime    = 8 * time.Second
	patientTime  = 25 * time.Second
	settlingTime = 100 * time.Second // for all pods of a batch
)

// settled returns the pod's number of versions if it did not change for long enough. Static
// pods have a name with the node's.
func (w *watcher) settled(name string, now time.Time) (versions int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	of := w.pods[name]
	if of == nil {
		return 0, false
	}
	n := len(of.history)
	quiet := now.Sub(of.changed)
	return n, quiet >= lab.Limit(patientTime) || quiet >= lab.Limit(quietTime) && looksSettled(&of.history[n-1])
}

func (w *watcher) history(name string) (history []v1.Pod, deleted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of := w.pods[name]; of != nil {
		return of.history[:len(of.history):len(of.history)], of.deleted
	}
	return nil, true
}

// looksSettled reports whether no container of the pod is about to start or stop.
func looksSettled(pod *v1.Pod) bool {
	switch pod.Status.Phase {
	case v1.PodSucceeded, v1.PodFailed:
		// A pod fails before its containers and its sandbox have stopped.
		return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.State.Running != nil }) &&
			!slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
				return c.Type == v1.PodReadyToStartContainers && c.Status == v1.ConditionTrue
			})
	case v1.PodRunning:
		if pod.Spec.ActiveDeadlineSeconds != nil {
			return false // it will fail
		}
		if pod.Spec.RestartPolicy == v1.RestartPolicyNever && slices.ContainsFunc(pod.Spec.Containers, func(c v1.Container) bool {
			return c.LivenessProbe != nil || c.StartupProbe != nil
		}) {
			return false // a probe may terminate it
		}
	default: // an init container that fails, or an image that cannot be pulled
		return slices.ContainsFunc(append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...), func(c v1.ContainerStatus) bool {
			// After ErrImagePull it waits for the next pull.
			return c.State.Waiting != nil && !slices.Contains([]string{"ContainerCreating", "PodInitializing", "ErrImagePull"}, c.State.Waiting.Reason)
		})
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Waiting != nil && (c.State.Waiting.Reason == "ContainerCreating" || c.State.Waiting.Reason == "PodInitializing") {
			return false
		}
	}
	return true
}
