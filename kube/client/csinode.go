package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// nodeIDAnnotation of a node contains the node IDs of CSI drivers, by driver, as JSON (rule
// vol-64).
const nodeIDAnnotation = "csi.volume.kubernetes.io/nodeid"

// A CSIDriver is a CSI driver of a node.
type CSIDriver struct {
	Name, NodeID string

	// MaxVolumes is the maximum number of volumes on the node. Zero: no limit.
	MaxVolumes int64

	// Topology are the topology labels, which are set on the node.
	Topology map[string]string
}

// A CSINode registers the CSI drivers of a node: in its CSINode object, which volume
// attachment and scheduling use, and in an annotation and labels of the Node (rule vol-64).
// Safe for concurrent use.
type CSINode struct {
	Client   kubernetes.Interface
	NodeName string

	// MigratedPlugins are the sorted names of the plugins whose volumes CSI drivers mount, as in
	// csimigration.Plugins. The attach/detach controller attaches volumes of other plugins
	// without CSI. May be empty.
	MigratedPlugins []string
}

// conflicts is the number of attempts of a change that conflicts with others.
const conflicts = 10

// Ensure creates the CSINode if it does not exist: pods with CSI volumes are not scheduled
// without it, and the kubelet is not ready before it exists (rule ns-10). It also sets the
// annotation with the migrated plugins. The Node must exist.
func (c CSINode) Ensure(ctx context.Context) error {
	node, err := c.Client.CoreV1().Nodes().Get(ctx, c.NodeName, metav1.GetOptions{})
	if err == nil {
		err = c.change(ctx, node, func(drivers []storagev1.CSINodeDriver) []storagev1.CSINodeDriver { return drivers })
	}
	if err != nil {
		return fmt.Errorf("client: create CSINode %s: %w", c.NodeName, err)
	}
	return nil
}

// empty returns the CSINode of a node without drivers.
func (c CSINode) empty(node *v1.Node) *storagev1.CSINode {
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{
		Name:            c.NodeName,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
	}}
}

// migrate sets the annotation with the migrated plugins.
func (c CSINode) migrate(node *storagev1.CSINode) {
	if len(c.MigratedPlugins) == 0 {
		delete(node.Annotations, v1.MigratedPluginsAnnotationKey)
		return
	}
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[v1.MigratedPluginsAnnotationKey] = strings.Join(c.MigratedPlugins, ",")
}

// Add adds or updates a driver. The Node must exist.
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
		return fmt.Errorf("client: register CSI driver %s: %w", d.Name, err)
	}
	return nil
}

// Remove removes a driver. Its topology labels remain, since existing volumes refer to
// them.
func (c CSINode) Remove(ctx context.Context, driver string) error {
	node, err := c.annotate(ctx, func(ids map[string]string) { delete(ids, driver) }, nil)
	if err == nil {
		err = c.change(ctx, node, func(drivers []storagev1.CSINodeDriver) []storagev1.CSINodeDriver { return without(drivers, driver) })
	}
	if err != nil {
		return fmt.Errorf("client: remove CSI driver %s: %w", driver, err)
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
	err := c.withRetries(ctx, func() error {
		var err error
		if node, err = nodes.Get(ctx, c.NodeName, metav1.GetOptions{}); err != nil {
			return err
		}
		ids := map[string]string{}
		if old := node.Annotations[nodeIDAnnotation]; old != "" {
			if err := json.Unmarshal([]byte(old), &ids); err != nil {
				return fmt.Errorf("annotation %s of node %s: %w", nodeIDAnnotation, c.NodeName, err)
			}
		}
		before := maps.Clone(ids)
		change(ids)
		labels := maps.Clone(topology)
		maps.DeleteFunc(labels, func(key, value string) bool { return node.Labels[key] == value })
		if maps.Equal(ids, before) && len(labels) == 0 {
			return nil
		}
		var value any // null deletes the annotation
		if len(ids) > 0 {
			text, err := json.Marshal(ids)
			if err != nil {
				return err
			}
			value = string(text)
		}
		// The version prevents concurrent changes of two drivers from being lost.
		meta := map[string]any{"resourceVersion": node.ResourceVersion, "annotations": map[string]any{nodeIDAnnotation: value}}
		if len(labels) > 0 { // null would delete all labels
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

// change changes the drivers of the CSINode, which it creates if it does not exist.
func (c CSINode) change(ctx context.Context, node *v1.Node, change func([]storagev1.CSINodeDriver) []storagev1.CSINodeDriver) error {
	all := c.Client.StorageV1().CSINodes()
	return c.withRetries(ctx, func() error {
		current, err := all.Get(ctx, c.NodeName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			created := c.empty(node)
			created.Spec.Drivers = change(nil)
			c.migrate(created)
			_, err = all.Create(ctx, created, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		before := current.DeepCopy()
		current.Spec.Drivers = change(current.Spec.Drivers)
		c.migrate(current)
		if apiequality.Semantic.DeepEqual(before, current) {
			return nil
		}
		_, err = all.Update(ctx, current, metav1.UpdateOptions{})
		return err
	})
}

// withRetries calls do until it does not conflict with another change.
func (c CSINode) withRetries(ctx context.Context, do func() error) error {
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
