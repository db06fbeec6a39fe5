package provider

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A notFound is what virtual-kubelet's errdefs.IsNotFound knows.
type notFound struct{ namespace, name string }

func (e notFound) Error() string {
	return fmt.Sprintf("provider: there is no pod %s/%s", e.namespace, e.name)
}

// NotFound marks the error.
func (notFound) NotFound() bool { return true }

// CreatePod takes in a pod, also one that ran before the Provider did.
func (p *Provider) CreatePod(_ context.Context, pod *v1.Pod) error {
	if pod.UID == "" {
		return fmt.Errorf("provider: pod %s/%s has no UID", pod.Namespace, pod.Name)
	}
	p.want(pod)
	return nil
}

// UpdatePod takes in a newer version of a pod.
func (p *Provider) UpdatePod(ctx context.Context, pod *v1.Pod) error { return p.CreatePod(ctx, pod) }

// DeletePod asks for the end of a pod, with its grace period, and does not wait for it:
// NotifyPods tells. A pod that only the runtime knows ends with the grace period that
// it was made with.
func (p *Provider) DeletePod(_ context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.pods[pod.UID]; known != nil {
		going := ended(pod)
		going.Status = known.Status
		p.pods[pod.UID] = going
		p.showLocked()
		return nil
	}
	if p.earlier[pod.UID] == nil {
		return notFound{pod.Namespace, pod.Name}
	}
	delete(p.earlier, pod.UID) // it is in nobody's set: the loop ends it as an orphan
	p.showLocked()
	return nil
}

// GetPod returns a pod by name, with the status that was said last. Of two of one name
// it is the one that is not about to end.
func (p *Provider) GetPod(_ context.Context, namespace, name string) (*v1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found *v1.Pod
	for _, pod := range p.pods {
		if pod.Namespace == namespace && pod.Name == name && (found == nil || pod.DeletionTimestamp == nil) {
			found = pod
		}
	}
	if found == nil {
		return nil, notFound{namespace, name}
	}
	return found.DeepCopy(), nil
}

// GetPodStatus returns the status of a pod.
func (p *Provider) GetPodStatus(ctx context.Context, namespace, name string) (*v1.PodStatus, error) {
	pod, err := p.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &pod.Status, nil
}

// GetPods lists all pods, by name. Those that ran before the Provider did, and were not
// named since, have no more than their names and UIDs, for virtual-kubelet's search for
// pods that nobody wants.
func (p *Provider) GetPods(context.Context) ([]*v1.Pod, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pods := make([]*v1.Pod, 0, len(p.pods)+len(p.earlier))
	for _, pod := range p.pods {
		pods = append(pods, pod.DeepCopy())
	}
	for _, pod := range p.earlier {
		pods = append(pods, &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}})
	}
	slices.SortFunc(pods, func(a, b *v1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return pods, nil
}

// NotifyPods has notify called with a pod whenever its status has changed, in order for
// each pod. It is called once, before Run.
func (p *Provider) NotifyPods(_ context.Context, notify func(*v1.Pod)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = notify
}
