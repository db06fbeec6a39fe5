package fakenode

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// isFake reports whether a client is one of package k8s.io/client-go/kubernetes/fake.
func isFake(api kubernetes.Interface) bool {
	fake, ok := api.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && fake.IsWatchListSemanticsUnSupported()
}

// A fakeAPI adds to a fake client what nodes require of an API server: UIDs and creation
// times of pods and nodes, and bindings.
type fakeAPI struct{ kubernetes.Interface }

// IsWatchListSemanticsUnSupported is the method by which fake clients report it.
func (f fakeAPI) IsWatchListSemanticsUnSupported() bool { return true }

// CoreV1 implements kubernetes.Interface.
func (f fakeAPI) CoreV1() corev1.CoreV1Interface { return fakeCore{f.Interface.CoreV1()} }

type fakeCore struct{ corev1.CoreV1Interface }

// Nodes implements corev1.CoreV1Interface.
func (c fakeCore) Nodes() corev1.NodeInterface { return fakeNodes{c.CoreV1Interface.Nodes()} }

// Pods implements corev1.CoreV1Interface.
func (c fakeCore) Pods(namespace string) corev1.PodInterface {
	return fakePods{c.CoreV1Interface.Pods(namespace), c.CoreV1Interface}
}

type fakeNodes struct{ corev1.NodeInterface }

// Create implements corev1.NodeInterface.
func (n fakeNodes) Create(ctx context.Context, node *v1.Node, opts metav1.CreateOptions) (*v1.Node, error) {
	node = node.DeepCopy()
	node.UID, node.CreationTimestamp = uuid.NewUUID(), metav1.Now()
	return n.NodeInterface.Create(ctx, node, opts)
}

// Watch implements corev1.NodeInterface; see fakePods.Watch.
func (n fakeNodes) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	source, err := n.NodeInterface.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return buffered(source, func(watch.Event) bool { return true }), nil
}

type fakePods struct {
	corev1.PodInterface
	api corev1.CoreV1Interface
}

// identify assigns a UID and a creation time to a pod that was created without. A pod that
// was deleted is not an error.
func (p fakePods) identify(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	if pod.UID != "" {
		return pod, nil
	}
	meta := map[string]any{"uid": uuid.NewUUID()}
	if pod.CreationTimestamp.IsZero() {
		meta["creationTimestamp"] = metav1.Now()
	}
	patch, err := json.Marshal(map[string]any{"metadata": meta})
	if err != nil {
		return nil, err
	}
	identified, err := p.api.Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return pod, nil
	}
	return identified, err
}

// List implements corev1.PodInterface.
func (p fakePods) List(ctx context.Context, opts metav1.ListOptions) (*v1.PodList, error) {
	list, err := p.PodInterface.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		pod, err := p.identify(ctx, &list.Items[i])
		if err != nil {
			return nil, fmt.Errorf("assign UID to pod %s/%s: %w", list.Items[i].Namespace, list.Items[i].Name, err)
		}
		list.Items[i] = *pod
	}
	return list, nil
}

// Bind implements corev1.PodInterface. The fake client does not store bindings.
func (p fakePods) Bind(ctx context.Context, binding *v1.Binding, _ metav1.CreateOptions) error {
	pod, err := p.PodInterface.Get(ctx, binding.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.Spec.NodeName != "" || pod.UID != binding.UID {
		return apierrors.NewConflict(v1.Resource("pods"), binding.Name, fmt.Errorf("pod %s is already assigned to node %q, or was replaced", pod.Name, pod.Spec.NodeName))
	}
	patch, err := json.Marshal(map[string]any{
		"spec": map[string]any{"nodeName": binding.Target.Name},
		"status": v1.PodStatus{Conditions: []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now(),
		}}},
	})
	if err != nil {
		return err
	}
	_, err = p.PodInterface.Patch(ctx, binding.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Watch implements corev1.PodInterface. The watch of the fake client panics if 100 events
// are not received, so that they are buffered without a limit, and its objects may be those of
// its store, so that they are copied. A pod without UID is reported
// when it has one.
func (p fakePods) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	source, err := p.PodInterface.Watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	return buffered(source, func(e watch.Event) bool {
		pod, ok := e.Object.(*v1.Pod)
		if !ok || pod.UID != "" || e.Type == watch.Deleted {
			return true
		}
		_, err := p.identify(ctx, pod) // emits an event
		return err != nil
	}), nil
}
