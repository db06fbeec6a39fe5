package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/state"
)

// A Checkpoint keeps the parts of a Node object on which pods depend in a file: labels,
// annotations, taints and addresses. A kubelet that starts while the API server is
// unreachable admits pods with it. Object is safe for concurrent use; Save must not be
// called concurrently.
type Checkpoint struct {
	store state.Store
	first *v1.Node // as read
	saved *v1.Node
}

// OpenCheckpoint reads the file at path. A missing file, or one of a node with another
// name, is an empty checkpoint. It returns an error if the file cannot be read.
func OpenCheckpoint(path, nodeName string) (*Checkpoint, error) {
	c := &Checkpoint{store: state.File(path)}
	text, err := c.store.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	var object v1.Node
	if err == nil {
		err = json.Unmarshal(text, &object)
	}
	if err != nil {
		return nil, fmt.Errorf("node: read checkpoint %s: %w", path, err)
	}
	if object.Name == nodeName {
		c.first = &object
	}
	return c, nil
}

// Object returns the Node as it was when the checkpoint was opened; nil if there was
// none. The caller must not change it.
func (c *Checkpoint) Object() *v1.Node { return c.first }

// Save writes the file, unless nothing in it has changed since the last Save.
func (c *Checkpoint) Save(n *v1.Node) error {
	object := &v1.Node{Status: v1.NodeStatus{Addresses: n.Status.Addresses}, Spec: v1.NodeSpec{Taints: n.Spec.Taints}}
	object.Name, object.UID, object.Labels, object.Annotations = n.Name, n.UID, n.Labels, n.Annotations
	if c.saved != nil && reflect.DeepEqual(c.saved, object) {
		return nil
	}
	text, err := json.Marshal(object)
	if err == nil {
		err = c.store.Save(text)
	}
	if err != nil {
		return fmt.Errorf("node: write checkpoint: %w", err)
	}
	c.saved = object
	return nil
}
