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

	"github.com/kubeparts/kubeparts/kube/internal/pause"
)

const (
	selfAttachAnnotation = "volumes.kubernetes.io/controller-managed-attach-detach"
	providedIPAnnotation = "alpha.kubernetes.io/provided-node-ip"
	cloudTaint           = "node.cloudprovider.kubernetes.io/uninitialized"

	betaOS   = "beta.kubernetes.io/os"
	betaArch = "beta.kubernetes.io/arch"
)

// ownLabels are updated in an existing object (rule ns-3).
var ownLabels = []string{
	v1.LabelHostname, v1.LabelTopologyZone, v1.LabelTopologyRegion,
	v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	v1.LabelInstanceTypeStable, v1.LabelInstanceType,
	v1.LabelOSStable, v1.LabelArchStable, betaOS, betaArch,
	v1.LabelWindowsBuild,
}

// restoreLabels sets the labels of the operating system and of the architecture, which the scheduler
// depends on, and reports whether another client had changed them. Only these are restored while
// the node runs; the others when it starts (rule ns-3).
func (s Spec) restoreLabels(node *v1.Node) (changed bool) {
	for label, value := range map[string]string{v1.LabelOSStable: s.OS, v1.LabelArchStable: s.Arch} {
		if node.Labels[label] == value {
			continue
		}
		if node.Labels == nil {
			node.Labels = map[string]string{}
		}
		node.Labels[label], changed = value, true
	}
	return changed
}

// Object returns the Node object as it is created, without its status (rule ns-2).
func (s Spec) Object() *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: maps.Clone(s.Labels)},
		Spec:       v1.NodeSpec{ProviderID: s.CloudProvider.ProviderID, Unschedulable: s.Unschedulable, Taints: slices.Clone(s.Taints)},
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	node.Labels[v1.LabelHostname] = s.Hostname
	for _, label := range []string{v1.LabelOSStable, betaOS} { // the beta ones are deprecated, but selectors use them
		node.Labels[label] = s.OS
	}
	for _, label := range []string{v1.LabelArchStable, betaArch} {
		node.Labels[label] = s.Arch
	}
	annotations := map[string]string{}
	if !s.SelfAttach {
		annotations[selfAttachAnnotation] = "true"
	}
	if len(annotations) > 0 {
		node.Annotations = annotations
	}
	s.CloudProvider.annotate(node)
	taint := func(key, value string) {
		if !slices.ContainsFunc(node.Spec.Taints, func(t v1.Taint) bool { return t.Key == key && t.Effect == v1.TaintEffectNoSchedule }) {
			node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: v1.TaintEffectNoSchedule})
		}
	}
	if s.Unschedulable {
		taint(v1.TaintNodeUnschedulable, "")
	}
	if s.CloudProvider.External {
		taint(cloudTaint, "true")
	}
	return node
}

// annotate sets or removes the annotation with the configured addresses.
func (c CloudProvider) annotate(node *v1.Node) {
	switch {
	case !c.External || c.ProvidedNodeIP == "":
		delete(node.Annotations, providedIPAnnotation)
	case node.Annotations == nil:
		node.Annotations = map[string]string{providedIPAnnotation: c.ProvidedNodeIP}
	default:
		node.Annotations[providedIPAnnotation] = c.ProvidedNodeIP
	}
}

// Reconcile returns an existing object with the updates of a restart, and whether it
// differs (rule ns-3). fresh is the object as it would be created now, with its status.
func (s Spec) Reconcile(is, fresh *v1.Node) (*v1.Node, bool) {
	node := is.DeepCopy()
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	if value, ok := fresh.Annotations[selfAttachAnnotation]; ok {
		node.Annotations[selfAttachAnnotation] = value
	} else {
		delete(node.Annotations, selfAttachAnnotation)
	}
	labels := slices.Clone(ownLabels)
	if !s.NoLabelUpdate {
		labels = slices.AppendSeq(labels, maps.Keys(s.Labels))
	}
	for _, name := range labels {
		if value, ok := fresh.Labels[name]; ok {
			node.Labels[name] = value
		}
	}
	for _, list := range []struct{ is, fresh v1.ResourceList }{
		{node.Status.Capacity, fresh.Status.Capacity}, {node.Status.Allocatable, fresh.Status.Allocatable},
	} {
		for name, value := range list.fresh {
			if hugePages(name) && list.is != nil {
				list.is[name] = value.DeepCopy()
			}
		}
		for name, value := range list.is {
			_, known := list.fresh[name]
			switch {
			case hugePages(name) && !known:
				delete(list.is, name)
			case extended(name) && !s.KeepExtendedResources && !known && value.Sign() != 0:
				list.is[name] = *resource.NewQuantity(0, resource.DecimalSI)
			}
		}
	}
	changed := !maps.Equal(node.Labels, is.Labels) || !maps.Equal(node.Annotations, is.Annotations) ||
		!equality.Semantic.DeepEqual(node.Status, is.Status)
	return node, changed
}

func hugePages(name v1.ResourceName) bool {
	return len(name) > len(v1.ResourceHugePagesPrefix) && name[:len(v1.ResourceHugePagesPrefix)] == v1.ResourceHugePagesPrefix
}

// register registers the node, and retries until it succeeds (rule ns-1). It returns false
// if ctx is done.
func (n *Node) register(ctx context.Context, started time.Time) bool {
	for wait := firstBackoff; ; wait = min(2*wait, maxBackoff) {
		if pause.For(ctx, wait) != nil {
			return false
		}
		created, err := n.tryRegister(ctx, started)
		if err == nil {
			if n.cfg.Hooks.Registered != nil {
				n.cfg.Hooks.Registered(time.Since(started), created)
			}
			n.cfg.Logger.Info("Registered node", "node", n.cfg.Spec.Name, "created", created)
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		n.cfg.Logger.Warn("Failed to register node; will retry", "node", n.cfg.Spec.Name, "err", err)
	}
}

// tryRegister creates the object, or updates an existing one.
func (n *Node) tryRegister(ctx context.Context, started time.Time) (created bool, err error) {
	ctx, cancel := n.call(ctx)
	defer cancel()
	if n.cfg.NoRegistration {
		is, err := n.cfg.Nodes.Get(ctx, n.cfg.Spec.Name, metav1.GetOptions{})
		if err == nil {
			n.observed(is)
		}
		return false, err
	}
	draft, errs := apply(ctx, n.cfg.Setters, n.cfg.Spec.Object(), nil, started)
	for _, err := range errs {
		n.cfg.Logger.Warn("Failed to compute part of the node status; its previous value is reported", "err", err)
	}
	node, createErr := n.cfg.Nodes.Create(ctx, draft.Node, metav1.CreateOptions{})
	if createErr == nil {
		n.observed(node)
		n.record(node, draft.events)
		return true, nil
	}
	// A client that may not create nodes may have an existing one.
	if !apierrors.IsAlreadyExists(createErr) && !apierrors.IsForbidden(createErr) {
		return false, createErr
	}
	is, err := n.cfg.Nodes.Get(ctx, n.cfg.Spec.Name, metav1.GetOptions{})
	if err != nil {
		if apierrors.IsForbidden(createErr) {
			return false, createErr // the cause
		}
		return false, err
	}
	want, changed := n.cfg.Spec.Reconcile(is, draft.Node)
	if changed {
		if is, err = n.patch(ctx, is, want); err != nil {
			return false, err
		}
	}
	n.observed(is)
	return false, nil
}
