package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrNoCSINode is the reason why a node with CSI volumes is not ready until its CSINode
// exists (rule ns-10).
var ErrNoCSINode = errors.New("CSINode is not yet initialized")

// A CSINodeInit creates the CSINode of a node. All fields are required.
type CSINodeInit struct {
	CSINode CSINode

	// Registered is closed when the Node object exists.
	Registered <-chan struct{}

	// Changed is called after Err has changed. It must not block.
	Changed func()

	Logger *slog.Logger

	err atomic.Pointer[error]
}

// Err returns nil after Run has created the CSINode, or has found that the agent is not
// permitted to; otherwise an error that wraps ErrNoCSINode. Safe for concurrent use.
func (i *CSINodeInit) Err() error {
	if err := i.err.Load(); err != nil {
		return *err
	}
	return ErrNoCSINode
}

// Run creates the CSINode, with retries after 100 ms to 10 s, and returns nil when it
// exists or ctx is done. An agent that must not create it runs without CSI drivers.
func (i *CSINodeInit) Run(ctx context.Context) error {
	select {
	case <-i.Registered:
	case <-ctx.Done():
		return nil
	}
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		err := i.CSINode.Ensure(ctx)
		if err == nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			if err != nil {
				i.Logger.Warn("Failed to create CSINode; pods cannot use CSI volumes", "err", err)
			}
			i.set(nil)
			i.Changed()
			return nil
		}
		i.set(fmt.Errorf("%w: %w", ErrNoCSINode, err))
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (i *CSINodeInit) set(err error) { i.err.Store(&err) }
