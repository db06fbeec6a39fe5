package resolved

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A mounted pod has volumes of this Resolver.
type mounted struct {
	uid     types.UID
	refs    []v1.ObjectReference
	refresh *time.Timer // nil if nothing expires
}

// Mount implements pipeline.Volumes: it returns the current content of the volumes that consist of files, each with
// [runtime.Volume.Content]. Volumes of other kinds are not returned. After a change, Watch reports the pod,
// whose next sync calls Mount again.
func (r *Resolver) Mount(ctx context.Context, pod *v1.Pod) (map[string]runtime.Volume, error) {
	// Before the objects are read: a change meanwhile is reported.
	m := &mounted{uid: pod.UID, refs: volumeReferences(pod)}
	r.mount(m)
	volumes, err := r.volumes(ctx, pod)
	if err != nil {
		return nil, err
	}
	out := make(map[string]runtime.Volume, len(volumes))
	for _, v := range volumes {
		out[v.Name] = runtime.Volume{ReadOnly: true, Content: &runtime.Content{Files: v.Files}}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if refreshAt := firstRefresh(volumes); !refreshAt.IsZero() && r.mounted[pod.UID] == m {
		m.refresh = time.AfterFunc(time.Until(refreshAt), func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.notifyLocked(pod.UID)
		})
	}
	return out, nil
}

// mount replaces the state of a pod.
func (r *Resolver) mount(m *mounted) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unmountLocked(m.uid)
	r.mounted[m.uid] = m
}

func (r *Resolver) unmountLocked(uid types.UID) {
	if old := r.mounted[uid]; old != nil && old.refresh != nil {
		old.refresh.Stop()
	}
	delete(r.mounted, uid)
}

// Unmount implements pipeline.Volumes: it discards the tokens of the pod.
func (r *Resolver) Unmount(_ context.Context, pod *v1.Pod) error {
	if r.cfg.Tokens != nil {
		r.cfg.Tokens.Forget(pod.UID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unmountLocked(pod.UID)
	return nil
}

// A watcher receives the pods whose volumes have changed.
type watcher struct {
	pods map[types.UID]struct{}
	more chan struct{} // capacity 1
}

// Watch implements runtime.Watcher: it calls changed with each pod with mounted volumes whose content is to be read
// again, until ctx is done.
func (r *Resolver) Watch(ctx context.Context, changed func(uid types.UID)) error {
	w := &watcher{pods: map[types.UID]struct{}{}, more: make(chan struct{}, 1)}
	r.mu.Lock()
	r.watchers[w] = struct{}{}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, w)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.more:
		}
		r.mu.Lock()
		pods := slices.Collect(maps.Keys(w.pods))
		clear(w.pods)
		r.mu.Unlock()
		for _, uid := range pods {
			changed(uid)
		}
	}
}

// notifyLocked reports a pod to the watchers.
func (r *Resolver) notifyLocked(uid types.UID) {
	for w := range r.watchers {
		w.pods[uid] = struct{}{}
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
}
