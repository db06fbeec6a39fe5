package cloud

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A Config says what a Runtime works with.
type Config struct {
	// Cloud that the pods run on. Required. If it is an Eventer, changes are seen at
	// once.
	Cloud API

	// Node is whose machines these are: others of the cloud are not seen. Required.
	Node string

	// Backoff of containers that crash. Zero: the kubelet's.
	Backoff plan.BackoffConfig
}

// A Runtime has pods on a cloud.
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

// New checks cfg and returns a Runtime. It asks the cloud for nothing.
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

// SyncPod implements [runtime.Syncer]: it looks, has a plan made, and carries it out. It
// takes a look of its own, as the tags tell more than req.Status does.
func (r *Runtime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if req.Pod == nil || req.Pod.UID == "" {
		return runtime.SyncResult{}, errors.New("cloud: SyncRequest.Pod is nil or has no UID")
	}
	machines, err := r.machinesOf(ctx, req.Pod.UID)
	if err != nil {
		return runtime.SyncResult{}, fmt.Errorf("cloud: look at pod %s: %w", req.Pod.UID, err)
	}
	s := &step{Runtime: r, pod: req.Pod, volumes: req.Volumes, machines: machines, status: statusOf(req.Pod.UID, machines)}
	in := plan.Input{Pod: req.Pod, Status: s.status, Probes: req.Probes, Backoff: r.backoff, Now: time.Now()}
	remember(&in, machines)
	s.carryOut(ctx, plan.Compute(in))
	return s.result, errors.Join(ctx.Err(), s.result.Err())
}
