package node

import (
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/hugepages"
	"github.com/kubeparts/kubeparts/kube/internal/pause"
)

const (
	selfAttachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"
	providedIPAnnotation = "alpha.kubernetes.io/provided-node-ip"
	cloudTaint           = "node.cloudprovider.kubernetes.io/uninitialized"
)

// ownLabels are those that the node puts right when it comes back (ns-3).
var ownLabels = []string{
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion,
	v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceTypeStable, v1.LabelInstanceType,
	v1.LabelOSStable, v1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	v1.LabelWindowsBuild,
}

// Object returns the node's object as it is made first, without its status
// (ns-2).
func (s Spec) Object() *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: maps.Clone(s.Labels)},
		Spec:       v1.NodeSpec{ProviderID: s.ProviderID, Unschedulable: s.Unschedulable, Taints: slices.Clone(s.Taints)},
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[v1.LabelHostname] = s.Hostname
	node.Labels[v1.LabelOSStable] = s.OS
	node.Labels[v1.LabelArchStable] = s.Arch
	annotations := map[string]string{}
	if !s.SelfAttach {
		annotations[selfAttachAnnotation] = "true"
	}
	if s.ExternalCloudProvider && s.ProvidedNodeIP != "" {
		annotations[providedIPAnnotation] = s.ProvidedNodeIP
	}
	if len(annotations) > 0 {
		node.Annotations = annotations
	}
	taint := func(key, value string) {
		if !slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == key && t.Effect == v1.TaintEffectNoSchedule }) {
			node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: v1.TaintEffectNoSchedule})
		}
	}
	if s.Unschedulable {
		taint(v1.TaintNodeUnschedulable, "")
	}
	if s.ExternalCloudProvider {
		taint(cloudTaint, "true")
	}
	return node
}

// Reconcile returns what an object that is there already has to become when the
// agent comes back, and whether that is anything else than it is (ns-3). fresh is
// the object as it would be made now, with its status.
func (s Spec) Reconcile(is, fresh *v1.Node) (*v1.Node, bool) {
	node := is.DeepCopy()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	if value, want := fresh.Annotations[selfAttachAnnotation]; want {
		node.Annotations[selfAttachAnnotation] = value
	} else {
		delete(node.Annotations, selfAttachAnnotation)
	}
	labels := slices.Clone(ownLabels)
	if !s.LabelsOnce {
		labels = slices.AppendSeq(labels, maps.Keys(s.Labels))
	}
	for _, name := range labels {
		if value, want := fresh.Labels[name]; want {
			node.Labels[name] = value
		}
	}
	for _, list := range []struct{ is, fresh v1.ResourceList }{
		{node.Status.Capacity, fresh.Status.Capacity}, {node.Status.Allocatable, fresh.Status.Allocatable},
	} {
		for name, value := range list.fresh {
			if hugepages.Is(name) && list.is != nil {
				list.is[name] = value.DeepCopy()
			}
		}
		for name, value := range list.is {
			_, known := list.fresh[name]
			switch {
			case hugepages.Is(name) && !known:
				delete(list.is, name)
			case extended(name) && !s.KeepDevices && !known && value.Sign() != 0:
				list.is[name] = *resource.NewQuantity(0, resource.DecimalSI)
			}
		}
	}
	changed := !maps.Equal(node.Labels, is.Labels) || !maps.Equal(node.Annotations, is.Annotations) ||
		!equality.Semantic.DeepEqual(node.Status, is.Status)
	return node, changed
}

// register tries until the object is there and in order (ns-1). It returns false
// when ctx has ended before.
func (n *Node) register(ctx context.Context, started time.Time) bool {
	for wait := firstBackoff; ; wait = min(2*wait, maxBackoff) {
		if pause.For(ctx, wait) != nil {
			return false
		}
		made, err := n.tryRegister(ctx, started)
		if err == nil {
			if n.cfg.Hooks.Registered != nil {
				n.cfg.Hooks.Registered(time.Since(started), made)
			}
			n.cfg.Logger.Info("node registered", "node", n.cfg.Spec.Name, "made", made)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		n.cfg.Logger.Warn("register node", "node", n.cfg.Spec.Name, "err", err)
	}
}

// tryRegister makes the object, or puts right what is there.
func (n *Node) tryRegister(ctx context.Context, started time.Time) (made bool, err error) {
	ctx, cancel := n.call(ctx)
	defer cancel()
	if n.cfg.Existing {
		is, err := n.cfg.Nodes.Get(ctx, n.cfg.Spec.Name, metav1.GetOptions{})
		if err == nil {
			n.saw(is)
		}
		return false, err
	}
	draft, errs := apply(ctx, n.cfg.Setters, n.cfg.Spec.Object(), nil, started)
	for _, err := range errs {
		n.cfg.Logger.Warn("node status", "err", err)
	}
	node, createErr := n.cfg.Nodes.Create(ctx, draft.Node, metav1.CreateOptions{})
	if createErr == nil {
		n.saw(node)
		return true, nil
	}
	// One who may not make nodes may have one all the same.
	if !apierrors.IsAlreadyExists(createErr) && !apierrors.IsForbidden(createErr) {
		return false, createErr
	}
	is, err := n.cfg.Nodes.Get(ctx, n.cfg.Spec.Name, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsForbidden(createErr) {
			return false, createErr // which says more
		}
		return false, err
	}
	want, changed := n.cfg.Spec.Reconcile(is, draft.Node)
	if changed {
		if is, err = n.patch(ctx, is, want); err != nil {
			return false, err
		}
	}
	n.saw(is)
	return false, nil
}
