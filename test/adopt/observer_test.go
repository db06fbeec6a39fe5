//go:build linux

package adopt

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// An observer records the versions of all pods in the API server.
type observer struct {
	mu   sync.Mutex // guards the following
	pods map[string]*history
}

// A history has the versions of a pod, oldest first.
type history struct {
	versions []v1.Pod
	changed  time.Time // except for the reasons of containers that wait, which alternate
	deleted  bool
}

// observe records until the test ends.
func observe(t *testing.T, api kubernetes.Interface) *observer {
	o := &observer{pods: map[string]*history{}}
	factory := informers.NewSharedInformerFactory(api, 0)
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(pod any) { o.add(pod, false) },
		UpdateFunc: func(_, pod any) { o.add(pod, false) },
		DeleteFunc: func(pod any) { o.add(pod, true) },
	})
	require.NoError(t, err)
	factory.Start(t.Context().Done())
	t.Cleanup(factory.Shutdown)
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced))
	return o
}

func (o *observer) add(object any, deleted bool) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	of := o.pods[pod.Name]
	if of == nil {
		of = new(history)
		o.pods[pod.Name] = of
	}
	if n := len(of.versions); n == 0 || deleted || !slices.Equal(lasting(of.versions[n-1]), lasting(*pod)) {
		of.changed = time.Now()
	}
	of.versions, of.deleted = append(of.versions, *pod.DeepCopy()), deleted
}

// lasting returns what of a status stays while a container cannot start.
func lasting(pod v1.Pod) (lines []string) {
	lines = append(lines, string(pod.Status.Phase))
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		lines = append(lines, fmt.Sprintf("%s %s %d %v %v %v", c.Name, c.ContainerID, c.RestartCount, c.Ready, c.State.Running, c.State.Terminated))
	}
	for _, c := range pod.Status.Conditions {
		lines = append(lines, fmt.Sprintf("%s %s %s", c.Type, c.Status, c.Reason))
	}
	return lines
}

// of returns the history of a pod.
func (o *observer) of(name string) history {
	o.mu.Lock()
	defer o.mu.Unlock()
	if h := o.pods[name]; h != nil {
		return history{slices.Clone(h.versions), h.changed, h.deleted}
	}
	return history{}
}

// last returns the newest version of a pod.
func (o *observer) last(name string) v1.Pod {
	if versions := o.of(name).versions; len(versions) > 0 {
		return versions[len(versions)-1]
	}
	return v1.Pod{}
}

// The times without a change after which a pod is settled: if no container of it is about
// to start or to stop, and otherwise, for example while it waits for a volume.
const (
	quiet      = 5 * time.Second
	patience   = 4 * time.Minute // for eventual actions, on a busy machine
	unchanging = 30 * time.Second
)

// unsettled returns the pods that may still change.
func (o *observer) unsettled(names []string) (found []string) {
	for _, name := range names {
		h := o.of(name)
		since := time.Since(h.changed)
		if len(h.versions) == 0 || since < unchanging && (since < quiet || !steady(h.versions[len(h.versions)-1])) {
			found = append(found, name)
		}
	}
	return found
}

// steady reports whether no container of the pod is about to start or to stop.
func steady(pod v1.Pod) bool {
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.State.Running != nil })
	}
	return pod.Status.Phase == v1.PodRunning && !slices.ContainsFunc(pod.Status.ContainerStatuses, func(c v1.ContainerStatus) bool { return !c.Ready })
}

// flatten returns the values of a status by their paths, with conditions by type and
// containers by name.
func flatten(t *testing.T, pod v1.Pod) map[string]string {
	data, err := json.Marshal(pod.Status)
	require.NoError(t, err)
	var value any
	require.NoError(t, json.Unmarshal(data, &value))
	found := map[string]string{}
	flattenInto(found, "", value)
	return found
}

func flattenInto(found map[string]string, path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			flattenInto(found, path+"."+key, v)
		}
	case []any:
		for i, v := range value {
			key := fmt.Sprint(i)
			if fields, ok := v.(map[string]any); ok {
				for _, field := range []string{"name", "type", "mountPath"} {
					if name, ok := fields[field].(string); ok {
						key = name
						break
					}
				}
			}
			flattenInto(found, path+"["+key+"]", v)
		}
	default:
		found[path] = fmt.Sprint(value)
	}
}

// differences returns a line for each path whose value differs.
func differences(before, after map[string]string) (lines []string) {
	paths := maps.Clone(before)
	maps.Copy(paths, after)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if b, a := before[path], after[path]; a != b {
			lines = append(lines, fmt.Sprintf("%s: %q, was %q", path, a, b))
		}
	}
	return lines
}

// An exit is what the statuses of a pod report of a container's end.
type exit struct {
	Container, Reason, Message, Finished string
	Code                                 int32
}

// exits returns what was reported of each container that ended, by its ID: more than one
// exit of a container is a contradiction.
func exits(versions []v1.Pod) map[string][]exit {
	found := map[string][]exit{}
	for _, pod := range versions {
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			for _, state := range []v1.ContainerState{c.State, c.LastTerminationState} {
				if state.Terminated == nil {
					continue
				}
				s := state.Terminated
				e := exit{c.Name, s.Reason, s.Message, s.FinishedAt.UTC().Format(time.RFC3339), s.ExitCode}
				if !slices.Contains(found[s.ContainerID], e) {
					found[s.ContainerID] = append(found[s.ContainerID], e)
				}
			}
		}
	}
	return found
}
