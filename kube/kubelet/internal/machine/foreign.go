package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// openLedger opens the record of the pods that belong to this node.
func openLedger(ctx context.Context, b stores.Base, s Services) (ledger *cri.Ledger, err error) {
	err = awaitRuntime(ctx, b, func() (err error) {
		ledger, err = cri.OpenLedger(ctx, cri.LedgerConfig{RootDir: b.Config.RootDir, Runtime: s.Service, Exclusive: s.Processes, Logger: b.Logger})
		return err
	})
	return ledger, err
}

// retryPeriod is the time between two attempts of awaitRuntime.
const retryPeriod = time.Second

// awaitRuntime calls do until the runtime answers it without an error, or ctx is done: a runtime may
// accept connections before it has read its pods. Its error is then the last one that the runtime
// answered, not that of a call that ctx has ended.
func awaitRuntime(ctx context.Context, b stores.Base, do func() error) error {
	var last error
	for {
		err := do()
		if s, answered := status.FromError(err); err == nil || !answered || s.Code() == codes.Unimplemented {
			return err
		}
		if last == nil {
			b.Logger.Warn("Failed to list the pods of the runtime; the node starts when the runtime lists them", "err", err)
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(retryPeriod):
		}
	}
}

// errOtherNode names what an operator can do about pods of another node.
const errOtherNode = "another kubelet or node manages them and is not stopped by this one: stop it and start this node with its --root-dir, " +
	"or %s; with Config.Host.IgnoreForeignPods (--ignore-foreign-pods) the node starts, and leaves them unchanged"

// explainForeign adds what an operator can do to an error that is cm.ErrForeign.
func explainForeign(err error) error {
	if !errors.Is(err, cm.ErrForeign) {
		return err
	}
	return fmt.Errorf("%w: "+errOtherNode, err, "give this node cgroups of its own (cgroupRoot, --cgroup-root)")
}

// refuseForeign returns an error if the runtime runs pods of another node.
func refuseForeign(ctx context.Context, b stores.Base, rt *cri.Runtime) error {
	if b.Config.Host.IgnoreForeignPods {
		return nil
	}
	var foreign []*runtime.Pod
	err := awaitRuntime(ctx, b, func() (err error) {
		foreign, err = rt.Foreign(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("look for pods of other nodes: %w", err)
	}
	if len(foreign) == 0 {
		return nil
	}
	first := foreign[0]
	return fmt.Errorf("the runtime runs %d pods that this node does not know, such as %s/%s (UID %s), which has no directory in %s: "+errOtherNode, len(foreign),
		first.Namespace, first.Name, first.UID, b.Config.RootDir, "give this node a runtime of its own (containerRuntimeEndpoint)")
}
