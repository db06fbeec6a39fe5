package podworker

import (
	"context"
	"errors"
	"fmt"
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Mirrors creates and deletes mirror pods: the copies of static pods in the API server.
// kube/client implements it. Its methods may block until ctx is done. Changes of mirror pods
// are reported by a source; see [Loop.AddPods].
type Mirrors interface {
	// Node returns the owner of mirror pods: the node's object. It returns false if that
	// does not exist or is being deleted; then no mirror pod is created.
	Node() (owner metav1.OwnerReference, ok bool)

	// CreateMirror creates a mirror pod that [MirrorPod] returned. It succeeds if one with
	// the same config.mirror annotation exists.
	CreateMirror(ctx context.Context, mirror *v1.Pod) error

	// DeleteMirror deletes a mirror pod with the grace period 0 if it still has that UID.
	// It succeeds if the pod does not exist or has another UID.
	DeleteMirror(ctx context.Context, mirror *v1.Pod) error
}

// MirrorPod returns the mirror pod of a static pod: owned by the node, and annotated with the
// hash of the manifest. It returns an error if pod has no such hash, and is therefore not
// static, or if node has no UID.
func MirrorPod(pod *v1.Pod, node metav1.OwnerReference) (*v1.Pod, error) {
	hash := pod.Annotations[runtime.ConfigHashAnnotation]
	if hash == "" {
		return nil, fmt.Errorf("podworker: pod %s/%s is not static: no annotation %s", pod.Namespace, pod.Name, runtime.ConfigHashAnnotation)
	}
	if node.UID == "" {
		return nil, errors.New("podworker: the node's object has no UID")
	}
	mirror := pod.DeepCopy()
	mirror.Annotations = maps.Clone(pod.Annotations)
	mirror.Annotations[v1.MirrorPodAnnotationKey] = hash
	node.APIVersion, node.Kind, node.Controller = "v1", "Node", new(true)
	mirror.OwnerReferences = []metav1.OwnerReference{node}
	return mirror, nil
}

// mirrorMatches reports whether mirror is the mirror pod of this static pod, and not of an
// earlier manifest of the same name.
func mirrorMatches(pod, mirror *v1.Pod) bool {
	return pod.Name == mirror.Name && pod.Namespace == mirror.Namespace &&
		mirror.Annotations[v1.MirrorPodAnnotationKey] == pod.Annotations[runtime.ConfigHashAnnotation]
}

// A mirrorPlan contains the actions for a mirror pod.
type mirrorPlan struct{ remove, create bool }

// planMirror compares a static pod with its mirror pod, nil if there is none. A mirror pod that
// is being deleted, or is of another manifest, is deleted; one that is missing or was deleted
// is created.
func planMirror(pod, mirror *v1.Pod) mirrorPlan {
	switch {
	case mirror == nil:
		return mirrorPlan{create: true}
	case mirror.DeletionTimestamp != nil || !mirrorMatches(pod, mirror):
		return mirrorPlan{remove: true, create: true}
	default:
		return mirrorPlan{}
	}
}

// SyncMirror makes mirrors have one mirror pod of a static pod: it creates a missing one, and
// replaces one that is being deleted or is of another manifest. mirror is the existing one; nil:
// there is none. It creates none while the node's object does not exist. Its errors are those
// of mirrors. It has no effect if the mirror pod is up to date.
func SyncMirror(ctx context.Context, mirrors Mirrors, pod, mirror *v1.Pod) error {
	plan := planMirror(pod, mirror)
	if plan.remove {
		if err := mirrors.DeleteMirror(ctx, mirror); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	if !plan.create {
		return nil
	}
	node, ok := mirrors.Node()
	if !ok {
		return nil
	}
	created, err := MirrorPod(pod, node)
	if err != nil {
		return err
	}
	if err := mirrors.CreateMirror(ctx, created); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return nil
}
