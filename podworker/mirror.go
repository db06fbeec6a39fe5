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

// Mirrors keep the copies of static pods that let others see them in the API
// server. A client of it implements them; they may block for as long as their
// ctx. What is in the API server comes back through a source: see
// [Loop.AddPods].
type Mirrors interface {
	// Node returns the owner of the copies: the node's object. It reports
	// false while there is none, or it is being deleted: then no copy is made
	// (sl-32, mir-1).
	Node() (owner metav1.OwnerReference, ok bool)

	// CreateMirror creates a copy as [MirrorPod] made it. That it is there
	// already with the same config.mirror annotation is success (mir-2).
	CreateMirror(ctx context.Context, mirror *v1.Pod) error

	// DeleteMirror deletes a copy at once, grace 0, if it still has that UID.
	// That it is gone, or another, is success (mir-3).
	DeleteMirror(ctx context.Context, mirror *v1.Pod) error
}

// MirrorPod returns the copy of a static pod for the API server (mir-1): owned
// by the node, and marked with the hash of the manifest that it was made from.
// A pod without such a hash is not static, which is an error.
func MirrorPod(pod *v1.Pod, node metav1.OwnerReference) (*v1.Pod, error) {
	hash := pod.Annotations[runtime.ConfigHashAnnotation]
	if hash == "" {
		return nil, fmt.Errorf("podworker: pod %s/%s has no %s annotation: it is no static pod", pod.Namespace, pod.Name, runtime.ConfigHashAnnotation)
	}
	if node.UID == "" {
		return nil, errors.New("podworker: the UID of the node's object is not known")
	}
	mirror := pod.DeepCopy()
	mirror.Annotations = maps.Clone(pod.Annotations)
	mirror.Annotations[runtime.ConfigMirrorAnnotation] = hash
	node.APIVersion, node.Kind, node.Controller = "v1", "Node", new(true)
	mirror.OwnerReferences = []metav1.OwnerReference{node}
	return mirror, nil
}

// MirrorMatches reports whether mirror is the copy of this very static pod, and
// not of an earlier manifest under its name (mir-4).
func MirrorMatches(pod, mirror *v1.Pod) bool {
	return pod.Name == mirror.Name && pod.Namespace == mirror.Namespace &&
		mirror.Annotations[runtime.ConfigMirrorAnnotation] == pod.Annotations[runtime.ConfigHashAnnotation]
}

// A mirrorPlan is what is due for the copy of a static pod.
type mirrorPlan struct{ remove, create bool }

// planMirror decides what is due, by the static pod and the copy that was last
// heard of (nil: none): one that is being deleted or is of another manifest goes
// away, and one that is missing, or was just removed, is made (sl-32, mir-6).
func planMirror(pod, mirror *v1.Pod) mirrorPlan {
	switch {
	case mirror == nil:
		return mirrorPlan{create: true}
	case mirror.DeletionTimestamp != nil || !MirrorMatches(pod, mirror):
		return mirrorPlan{remove: true, create: true}
	default:
		return mirrorPlan{}
	}
}

// mirror carries the plan for the copy of w's pod out. What fails is logged
// only: a static pod runs without the API server.
func (p *Pipeline) mirror(ctx context.Context, w SyncRequest) {
	if p.cfg.Mirrors == nil || !runtime.IsStatic(w.Pod) {
		return
	}
	plan := planMirror(w.Pod, w.Mirror)
	if err := p.carryOutMirror(ctx, w, plan); err != nil && ctx.Err() == nil {
		p.cfg.Logger.Warn("mirror pod", "pod", w.Pod.Namespace+"/"+w.Pod.Name, "uid", w.Pod.UID, "err", err)
	}
}

func (p *Pipeline) carryOutMirror(ctx context.Context, w SyncRequest, plan mirrorPlan) error {
	if plan.remove {
		if err := p.cfg.Mirrors.DeleteMirror(ctx, w.Mirror); err != nil {
			return fmt.Errorf("delete: %w", err)
		}
	}
	if !plan.create {
		return nil
	}
	node, ok := p.cfg.Mirrors.Node()
	if !ok {
		return nil
	}
	mirror, err := MirrorPod(w.Pod, node)
	if err != nil {
		return err
	}
	if err := p.cfg.Mirrors.CreateMirror(ctx, mirror); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	return nil
}
