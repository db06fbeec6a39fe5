package client

import (
	"cmp"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// Pod returns the pod with a UID as last read; nil if the node has none. It is shared and
// must not be modified.
func (p *Pods) Pod(uid types.UID) *v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byUID[uid]
}

// Mirror returns the mirror pod of the static pod with a name; nil if there is none. It is
// shared and must not be modified.
func (p *Pods) Mirror(namespace, name string) *v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	pod := p.byName[types.NamespacedName{Namespace: namespace, Name: name}]
	if pod == nil {
		return nil
	}
	if !runtime.IsMirror(pod) {
		return nil
	}
	return pod
}

// Synced reports whether the pods were read.
func (p *Pods) Synced() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.synced
}

// next returns a channel that is closed when something changes after this call.
func (p *Pods) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

// current returns the set, oldest first, and a channel that is closed when it changes.
func (p *Pods) current() (set []*v1.Pod, synced bool, changed <-chan struct{}) {
	p.mu.Lock()
	set, synced, changed = slices.Collect(maps.Values(p.byName)), p.synced, p.changed
	p.mu.Unlock()
	slices.SortFunc(set, func(a, b *v1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return set, synced, changed
}

// replace implements store.
func (p *Pods) replace(list []*v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.byUID
	p.byName = make(map[types.NamespacedName]*v1.Pod, len(list))
	p.byUID = make(map[types.UID]*v1.Pod, len(list))
	for _, pod := range list {
		p.shareLocked(pod, was[pod.UID])
		p.putLocked(pod)
	}
	p.synced = true
	p.changedLocked()
}

// put implements store.
func (p *Pods) put(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shareLocked(pod, p.byUID[pod.UID])
	p.putLocked(pod)
	p.changedLocked()
}

// shareLocked shares the memory of two versions of a pod, unless the Feed has done so.
func (p *Pods) shareLocked(pod, was *v1.Pod) {
	if p.cfg.Feed == nil {
		share(pod, was)
	}
}

func (p *Pods) putLocked(pod *v1.Pod) {
	if pod.Spec.NodeName != p.cfg.NodeName {
		// A server that does not support the selector returns all pods.
		p.dropLocked(pod)
		return
	}
	name := nameOf(pod)
	if was := p.byName[name]; was != nil && was.UID != pod.UID {
		delete(p.byUID, was.UID) // names are unique: the other pod was deleted
	}
	p.byName[name], p.byUID[pod.UID] = pod, pod
}

// drop implements store.
func (p *Pods) drop(pod *v1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dropLocked(pod)
	p.changedLocked()
}

func (p *Pods) dropLocked(pod *v1.Pod) {
	delete(p.byUID, pod.UID)
	if was := p.byName[nameOf(pod)]; was != nil && was.UID == pod.UID {
		delete(p.byName, nameOf(pod))
	}
}

// changedLocked wakes the goroutines that wait for a change.
func (p *Pods) changedLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// nameOf returns the namespace and name of an object.
func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}
