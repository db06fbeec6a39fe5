package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubeparts/kubeparts/kube/client"
)

// errNoCSINode is what a node waits for that can have volumes of CSI drivers (ns-10).
var errNoCSINode = errors.New("CSINode is not yet initialized")

// A storage is what the node's readiness depends on of its volumes. The zero value waits
// for nothing.
type storage struct{ err atomic.Pointer[error] }

func (s *storage) set(err error) { s.err.Store(&err) }

// Err is what is missing.
func (s *storage) Err() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// makeCSINode makes the node's CSINode, which may take many tries; until then the node is
// not ready. An agent that may not make one goes without: it has no such drivers.
func (c *cluster) makeCSINode(ctx context.Context) error {
	if c.registered(ctx) != nil {
		return nil
	}
	object := client.CSINode{Client: c.conn.API, NodeName: c.spec.Name}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		err := object.Ensure(ctx)
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			if err != nil {
				c.logger.Warn("pods can have no volumes of CSI drivers", "err", err)
			}
			c.storage.set(nil)
			c.nodeChanged()
			return nil
		}
		c.storage.set(fmt.Errorf("%w: %w", errNoCSINode, err))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// waitForCSINode has the node's readiness wait for it.
func (c *cluster) waitForCSINode() {
	if c != nil {
		c.storage.set(errNoCSINode)
		c.more = append(c.more, c.makeCSINode)
	}
}

// warning is what the node could do with and does without (ns-11); "" if that is
// nothing.
func (n *podNode) warning() string {
	if n.groups == nil {
		return "pods have no cgroups, so that nothing keeps them to their limits"
	}
	if missing := n.tree.Facts().Missing(); len(missing) > 0 {
		return "the machine lacks cgroup controllers, whose limits are not kept: " + strings.Join(missing, ", ")
	}
	return ""
}
