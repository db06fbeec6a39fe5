package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// NodeIDAnnotation of a node holds what CSI drivers call it, by driver, as JSON
// (vol-64).
const NodeIDAnnotation = "csi.volume.kubernetes.io/nodeid"

// A CSIDriver is what a driver on this node says of itself.
type CSIDriver struct {
	Name, NodeID string

	// MaxVolumes it can have here; 0: any number.
	MaxVolumes int64

	// Topology are the labels by which it places volumes; the node gets them.
	Topology map[string]string
}

// A CSINode makes the CSI drivers of a node known: in its CSINode, by which volumes are
// attached and pods placed, in an annotation, and in labels (vol-64). Its methods may be
// called from any goroutine.
type CSINode struct {
	Client   kubernetes.Interface
	NodeName string
}

// conflicts is how often a change is tried that others get ahead of.
const conflicts = 10

// Ensure makes the CSINode if it is not there: pods whose volumes are placed by it wait
// for one, and so does a kubelet before it is ready (ns-10). It needs the Node.
func (c CSINode) Ensure(ctx context.Context) error {
	node, err := c.Client.CoreV1().Nodes().Get(ctx, c.NodeName, metav1.GetOptions{})
	if err == nil {
		all := c.Client.StorageV1().CSINodes()
		if _, err = all.Get(ctx, c.NodeName, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			_, err = all.Create(ctx, c.empty(node), metav1.CreateOptions{})
		}
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("client: make CSINode %s: %w", c.NodeName, err)
	}
	return nil
}

// empty is the CSINode of a node without drivers.
func (c CSINode) empty(node *v1.Node) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name:            c.NodeName,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
	}}
}

// Add makes a driver known, or known anew. It needs the Node.
func (c CSINode) Add(ctx context.Context, d CSIDriver) error {
	node, err := c.annotate(ctx, func(ids map[string]string) { ids[d.Name] = d.NodeID }, d.Topology)
	if err == nil {
		err = c.change(ctx, node, func(drivers []storagev1.CSINodeDriver) []storagev1.CSINodeDriver {
			next := storagev1.CSINodeDriver{Name: d.Name, NodeID: d.NodeID, TopologyKeys: slices.Sorted(maps.Keys(d.Topology))}
			if d.MaxVolumes > 0 {
				next.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32)}
				*next.Allocatable.Count = int32(min(d.MaxVolumes, math.MaxInt32))
			}
			drivers = without(drivers, d.Name)
			return append(drivers, next)
		})
	}
	if err != nil {
		return fmt.Errorf("client: make CSI driver %s known: %w", d.Name, err)
	}
	return nil
}

// Remove says that a driver is gone. The labels of its topology stay, as volumes that it
// has placed by them do.
func (c CSINode) Remove(ctx context.Context, driver string) error {
	node, err := c.annotate(ctx, func(ids map[string]string) { delete(ids, driver) }, nil)
	if err == nil {
		err = c.change(ctx, node, func(drivers []storagev1.CSINodeDriver) []storagev1.CSINodeDriver { return without(drivers, driver) })
	}
	if err != nil {
		return fmt.Errorf("client: give CSI driver %s up: %w", driver, err)
	}
	return nil
}

func without(drivers []storagev1.CSINodeDriver, name string) []storagev1.CSINodeDriver {
	return slices.DeleteFunc(slices.Clone(drivers), func(d storagev1.CSINodeDriver) bool { return d.Name == name })
}

// annotate changes the annotation and the labels of the node, which it returns.
func (c CSINode) annotate(ctx context.Context, change func(ids map[string]string), topology map[string]string) (*v1.Node, error) {
	nodes := c.Client.CoreV1().Nodes()
	var node *v1.Node
	err := c.again(ctx, func() error {
		var err error
		if node, err = nodes.Get(ctx, c.NodeName, metav1.GetOptions{}); err != nil {
			return err
		}
		ids := map[string]string{}
		if old := node.Annotations[NodeIDAnnotation]; old != "" {
			if err := json.Unmarshal([]byte(old), &ids); err != nil {
				return fmt.Errorf("annotation %s of node %s: %w", NodeIDAnnotation, c.NodeName, err)
			}
		}
		before := maps.Clone(ids)
		change(ids)
		labels := maps.Clone(topology)
		maps.DeleteFunc(labels, func(key, value string) bool { return node.Labels[key] == value })
		if maps.Equal(ids, before) && len(labels) == 0 {
			return nil
		}
		var value any // null: the annotation goes
		if len(ids) > 0 {
			text, err := json.Marshal(ids)
			if err != nil {
				return err
			}
			value = string(text)
		}
		// With the version, so that two drivers don't take each other's place.
		meta := map[string]any{"resourceVersion": node.ResourceVersion, "annotations": map[string]any{NodeIDAnnotation: value}}
		if len(labels) > 0 { // null would take all labels away
			meta["labels"] = labels
		}
		patch, err := json.Marshal(map[string]any{"metadata": meta})
		if err != nil {
			return err
		}
		_, err = nodes.Patch(ctx, c.NodeName, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
		return err
	})
	return node, err
}

// change changes the drivers of the CSINode, which is made if need be.
func (c CSINode) change(ctx context.Context, node *v1.Node, change func([]storagev1.CSINodeDriver) []storagev1.CSINodeDriver) error {
	all := c.Client.StorageV1().CSINodes()
	return c.again(ctx, func() error {
		there, err := all.Get(ctx, c.NodeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			made := c.empty(node)
			made.Spec.Drivers = change(nil)
			if len(made.Spec.Drivers) == 0 {
				return nil
			}
			_, err = all.Create(ctx, made, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		there.Spec.Drivers = change(there.Spec.Drivers)
		_, err = all.Update(ctx, there, metav1.UpdateOptions{})
		return err
	})
}

// again repeats do while others get ahead of it.
func (c CSINode) again(ctx context.Context, do func() error) error {
	var err error
	for range conflicts {
		if err = do(); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}
