package resolved

import (
	"context"
	"iter"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime/podenv"
	"github.com/kubeparts/kubeparts/volume/payload"
)

// The times between attempts that fail.
const minRetry, maxRetry = time.Second, 2 * time.Minute

// A follower is notified if an object of its pod has changed.
type follower struct {
	refs    []v1.ObjectReference
	changed chan struct{} // capacity 1
}

// Follow returns the resolved pod, and again each value that differs from the one before: when an object has changed
// and when a token is replaced. An error is returned by Resolve; the next attempt follows. The sequence
// ends when ctx is done. It does not read an API: pod is the object of this version; a caller whose pod was updated
// follows the new one.
func (r *Resolver) Follow(ctx context.Context, pod *v1.Pod) iter.Seq2[*Pod, error] {
	return func(yield func(*Pod, error) bool) {
		f := &follower{refs: references(pod), changed: make(chan struct{}, 1)}
		r.mu.Lock()
		r.followers[f] = struct{}{}
		r.mu.Unlock()
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			delete(r.followers, f)
		}()
		var last *Pod
		for retry := minRetry; ctx.Err() == nil; {
			p, err := r.Resolve(ctx, pod)
			if ctx.Err() != nil {
				return
			}
			var timer <-chan time.Time
			switch {
			case err != nil || incomplete(p):
				timer, retry = time.After(retry), min(2*retry, maxRetry)
			default:
				retry = minRetry
				if !p.RefreshAt.IsZero() {
					timer = time.After(time.Until(p.RefreshAt))
				}
			}
			switch {
			case err != nil && !yield(nil, err):
				return
			case err == nil && !p.Equal(last):
				if last = p; !yield(p, nil) {
					return
				}
			}
			select {
			case <-ctx.Done():
			case <-f.changed:
			case <-timer:
			}
		}
	}
}

// incomplete reports whether a container has an error.
func incomplete(p *Pod) bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool { return c.Err != nil })
}

// references returns the objects that a pod refers to.
func references(pod *v1.Pod) (refs []v1.ObjectReference) {
	add := func(kind, name string) {
		refs = append(refs, v1.ObjectReference{Kind: kind, Namespace: pod.Namespace, Name: name})
	}
	for c := range podspec.Containers(pod) {
		configMaps, secrets, _ := podenv.References(pod, c)
		for _, name := range configMaps {
			add(payload.KindConfigMap, name)
		}
		for _, name := range secrets {
			add(payload.KindSecret, name)
		}
	}
	for _, ref := range pod.Spec.ImagePullSecrets {
		add(payload.KindSecret, ref.Name)
	}
	return append(refs, volumeReferences(pod)...)
}

func volumeReferences(pod *v1.Pod) (refs []v1.ObjectReference) {
	for i := range pod.Spec.Volumes {
		if source := payload.SourceOf(&pod.Spec.Volumes[i].VolumeSource); source != nil {
			refs = append(refs, payload.References(pod, source)...)
		}
	}
	return refs
}

// ObjectChanged must be called when an object has been created, changed or deleted: pods that refer to it are
// resolved again. Kind is one of those of package payload. It does not block.
func (r *Resolver) ObjectChanged(kind, namespace, name string) {
	refers := func(ref v1.ObjectReference) bool {
		return ref.Kind == kind && ref.Namespace == namespace && (ref.Name == name || ref.Name == "")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for f := range r.followers {
		if slices.ContainsFunc(f.refs, refers) {
			select {
			case f.changed <- struct{}{}:
			default: // it was notified
			}
		}
	}
	for _, m := range r.mounted {
		if slices.ContainsFunc(m.refs, refers) {
			r.notifyLocked(m.uid)
		}
	}
}
