package main

import (
	"errors"
	"io/fs"
	"path/filepath"
	"reflect"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// recall reads the node's object of the time before. Without it no pods are
// remembered: a node that does not know its labels would refuse those that ask for
// them.
func (c *cluster) recall(opts options) {
	c.nodePath = filepath.Join(opts.root, "node.json")
	var was v1.Node
	switch err := checkpoint.Read(c.nodePath, &was); {
	case err == nil && was.Name == opts.nodeName:
		c.was = &was
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		c.logger.Error("the record of the node cannot be read: no pods are remembered", "err", err)
		c.nodePath = ""
	}
}

// keep records the node's object, as far as pods depend on it. It is called on one
// goroutine.
func (c *cluster) keep(n *v1.Node) {
	if c.nodePath == "" {
		return
	}
	is := &v1.Node{Status: v1.NodeStatus{Addresses: n.Status.Addresses}, Spec: v1.NodeSpec{Taints: n.Spec.Taints}}
	is.Name, is.UID, is.Labels, is.Annotations = n.Name, n.UID, n.Labels, n.Annotations
	if c.kept != nil && reflect.DeepEqual(c.kept, is) {
		return
	}
	if err := checkpoint.Write(c.nodePath, is); err != nil {
		c.logger.Error("the node cannot be recorded", "err", err)
		return
	}
	c.kept = is
}

// nodeObject is the node's object as it is known best; nil: not at all.
func (c *cluster) nodeObject() *v1.Node {
	switch {
	case c == nil:
		return nil
	case c.node != nil && c.node.Object() != nil:
		return c.node.Object()
	}
	return c.was
}

// heartbeat returns who watches the node's lease: when it can be renewed again, the
// API server is back, and nobody has to wait any longer for his next try.
func (c *cluster) heartbeat() func(error) {
	failed := false // the renewals are made one after the other
	return func(err error) {
		if failed && err == nil {
			c.pods.Retry()
			c.sayAgain()
		}
		failed = err != nil
	}
}

// sayAgain has statuses told that could not be.
func (c *cluster) sayAgain() {
	if again := c.retry.Load(); again != nil {
		(*again)()
	}
}

// onReturn sets what is done when the API server is back.
func (c *cluster) onReturn(again func()) {
	if c != nil {
		c.retry.Store(&again)
	}
}
