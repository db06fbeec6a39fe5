package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A notFound is recognized by virtual-kubelet's errdefs.IsNotFound.
type notFound struct{ what string }

func (e notFound) Error() string { return "provider: " + e.what + ": not found" }

// NotFound marks the error for virtual-kubelet.
func (notFound) NotFound() bool { return true }

// Is makes it a runtime.ErrNotFound.
func (notFound) Is(target error) bool { return target == runtime.ErrNotFound }

func podNotFound(namespace, name string) error {
	return notFound{fmt.Sprintf("pod %s/%s", namespace, name)}
}

// CreatePod adds a pod to those that the agent runs. A pod that ran before this process
// is adopted. It returns an error if the pod has no UID or no namespace. That a pod cannot be run is not
// an error; its status reports it.
func (p *Provider) CreatePod(_ context.Context, pod *v1.Pod) error {
	if pod.UID == "" {
		return fmt.Errorf("provider: pod %s/%s has no UID", pod.Namespace, pod.Name)
	}
	if pod.Namespace == "" {
		return fmt.Errorf("provider: pod %s (%s) has no namespace", pod.Name, pod.UID)
	}
	pod = pod.DeepCopy()
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.pods[pod.UID]; old != nil {
		pod.Status = old.pod.Status
		if pod.DeletionTimestamp == nil { // a termination is not revoked
			pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = old.pod.DeletionTimestamp, old.pod.DeletionGracePeriodSeconds
		}
	}
	for uid, other := range p.pods {
		if uid != pod.UID && other.pod.Namespace == pod.Namespace && other.pod.Name == pod.Name {
			other.replaced = true // no longer desired, so that the agent terminates it
			if p.adoptingLocked() {
				delete(p.pods, uid) // the agent has not received it and would not report its termination
			}
		}
	}
	for uid, other := range p.earlier {
		if other.Namespace == pod.Namespace && other.Name == pod.Name { // virtual-kubelet will not pass another pod of this name
			delete(p.earlier, uid)
		}
	}
	p.setLocked(pod)
	return nil
}

// UpdatePod replaces the specification of a pod; see CreatePod.
func (p *Provider) UpdatePod(ctx context.Context, pod *v1.Pod) error { return p.CreatePod(ctx, pod) }

// setLocked adds pod, or replaces the older version of it.
func (p *Provider) setLocked(pod *v1.Pod) {
	if old := p.pods[pod.UID]; old != nil {
		old.pod = pod
	} else {
		p.pods[pod.UID] = &entry{pod: pod}
	}
	delete(p.earlier, pod.UID)
	p.publishLocked()
}

// DeletePod requests the termination of a pod with the grace period of the deletion, or
// else of its spec, and returns immediately; NotifyPods reports the termination. For a pod
// that virtual-kubelet has only from GetPods the grace period is the one that the runtime
// recorded. It returns a NotFound error if the pod is unknown.
func (p *Provider) DeletePod(_ context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, runs := p.pods[pod.UID], p.earlier[pod.UID] != nil
	switch {
	case known != nil:
		deleted := terminating(pod)
		delete(deleted.Annotations, annotationUID) // pod may be from GetPod
		deleted.Spec, deleted.Status = known.pod.Spec, known.pod.Status
		p.setLocked(deleted)
	case runs && len(pod.Spec.Containers) == 0: // from GetPods
		delete(p.earlier, pod.UID) // not among the desired pods, the agent terminates it
		p.publishLocked()
	case runs || p.earlier == nil && pod.UID != "": // it may run: the runtime was not listed yet
		p.setLocked(terminating(pod))
	default:
		return podNotFound(pod.Namespace, pod.Name)
	}
	return nil
}

// terminating returns a copy of pod with the deletion requested.
func terminating(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	if pod.DeletionTimestamp == nil {
		pod.DeletionTimestamp = new(metav1.Now())
	}
	if pod.DeletionGracePeriodSeconds == nil {
		pod.DeletionGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	}
	return pod
}

// annotationUID is an annotation of the pods that GetPod returns.
const annotationUID = "provider.kubeparts.io/uid"

// GetPod returns the pod of a name with the status reported last. It returns a NotFound
// error if there is none, or its deletion was requested: otherwise virtual-kubelet would
// not create a new pod of that name before the old one has terminated. The pod has the
// additional annotation provider.kubeparts.io/uid: virtual-kubelet compares metadata and
// spec, but not the UID, to decide whether it calls UpdatePod, and would ignore a pod that
// was deleted and recreated before virtual-kubelet's queue delivered the deletion.
func (p *Provider) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	pod, err := p.find(namespace, name)
	if err != nil || pod.DeletionTimestamp != nil {
		return nil, podNotFound(namespace, name)
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, annotationUID, string(pod.UID))
	return pod, nil
}

// GetPodStatus returns the status of the pod of a name that was reported last, also while
// the pod terminates. It returns a NotFound error if there is no such pod.
func (p *Provider) GetPodStatus(_ context.Context, namespace, name string) (*v1.PodStatus, error) {
	pod, err := p.find(namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// find returns a copy of the pod of a name, of several the one that has not been replaced.
func (p *Provider) find(namespace, name string) (*v1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.pods {
		if e.pod.Namespace == namespace && e.pod.Name == name && !e.replaced {
			return e.pod.DeepCopy(), nil
		}
	}
	return nil, podNotFound(namespace, name)
}

// GetPods lists all pods, also while they terminate, sorted by namespace, name and UID.
// Pods that ran before this process and were not passed yet have only these three fields;
// virtual-kubelet passes those to DeletePod that are not in the API. GetPods blocks until Run
// has listed the pods of the runtime once, and returns ctx's error if ctx is done first.
func (p *Provider) GetPods(ctx context.Context) ([]*v1.Pod, error) {
	select {
	case <-p.listed:
	case <-ctx.Done():
		return nil, fmt.Errorf("provider: list pods: the runtime was not listed yet: %w", ctx.Err())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	pods := make([]*v1.Pod, 0, len(p.pods)+len(p.earlier))
	for _, e := range p.pods {
		pods = append(pods, e.pod.DeepCopy())
	}
	for _, pod := range p.earlier {
		pods = append(pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}})
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return pods, nil
}

// NotifyPods registers the function that is called with a pod whenever its status has
// changed, in place of an earlier one. Statuses that were reported before are not repeated;
// virtual-kubelet calls it before it passes the first pod.
func (p *Provider) NotifyPods(_ context.Context, notify func(*v1.Pod)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = notify
}
