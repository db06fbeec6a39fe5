package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A Config configures a Runtime. Cloud and Node are required.
type Config struct {
	// Cloud runs the pods. If it is an Eventer, changes are detected immediately.
	Cloud API

	// Node is the name of the node. Machines of other nodes are ignored.
	Node string

	// Backoff delays restarts of containers. Zero: as the kubelet does.
	Backoff plan.BackoffConfig
}

// A Runtime runs pods on a cloud.
type Runtime struct {
	cloud   API
	node    string
	backoff *plan.Backoff
}

var (
	_ runtime.Runtime          = (*Runtime)(nil)
	_ runtime.Watcher          = (*Runtime)(nil)
	_ runtime.GarbageCollector = (*Runtime)(nil)
)

// New returns a Runtime, or an error that names an invalid field. It does not call the cloud.
func New(cfg Config) (*Runtime, error) {
	switch {
	case cfg.Cloud == nil:
		return nil, errors.New("cloud: Config.Cloud is nil")
	case cfg.Node == "":
		return nil, errors.New("cloud: Config.Node is empty")
	}
	backoff, err := plan.NewBackoff(cfg.Backoff)
	if err != nil {
		return nil, fmt.Errorf("cloud: %w", err)
	}
	return &Runtime{cloud: cfg.Cloud, node: cfg.Node, backoff: backoff}, nil
}

// SyncPod implements [runtime.Runtime]: it lists the machines, computes a plan and executes it.
// req.Status is not used, because the tags contain more.
func (r *Runtime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if req.Pod == nil || req.Pod.UID == "" {
		return runtime.SyncResult{}, errors.New("cloud: SyncRequest.Pod is nil or has no UID")
	}
	machines, err := r.machinesOf(ctx, req.Pod.UID)
	if err != nil {
		return runtime.SyncResult{}, fmt.Errorf("cloud: inspect pod %s: %w", req.Pod.UID, err)
	}
	s := &step{Runtime: r, pod: req.Pod, volumes: req.Volumes, machines: machines, status: statusOf(req.Pod.UID, machines)}
	in := plan.Input{Pod: req.Pod, Status: s.status, Probes: req.Probes, Backoff: r.backoff, Now: time.Now()}
	addHistory(&in, machines)
	s.execute(ctx, plan.Compute(in))
	return s.result, errors.Join(ctx.Err(), s.result.Err())
}
