package cri

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Foreign returns the pods of the CRI runtime that may run and do not belong to this node:
// those that Config.Providers.Ledger does not contain. Pods does not return them, and they are never
// changed or removed. A node should not start while there are any, since another node
// manages them.
func (r *Runtime) Foreign(ctx context.Context) ([]*runtime.Pod, error) {
	sandboxes, containers, err := r.listAll(ctx, "")
	if err != nil {
		return nil, err
	}
	var foreign []*runtime.Pod
	for _, pod := range r.podsOf(sandboxes, containers) {
		if pod.MayRun() && !r.cfg.Providers.Ledger.Owns(pod.UID) {
			foreign = append(foreign, pod)
		}
	}
	return foreign, nil
}

// Ledger returns Config.Providers.Ledger, whose Prune has to be called: agent.Subsystems.Ledger.
func (r *Runtime) Ledger() *Ledger { return r.cfg.Providers.Ledger }

// A foreignPods reports each pod of another node once. The zero value has reported none.
type foreignPods struct {
	mu       sync.Mutex // guards the field below
	reported map[types.UID]bool
}

// changed returns those of the pods that it has not returned before.
func (f *foreignPods) changed(pods map[types.UID]string) map[types.UID]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	added, reported := map[types.UID]string{}, make(map[types.UID]bool, len(pods))
	for uid, name := range pods {
		if reported[uid] = true; !f.reported[uid] {
			added[uid] = name
		}
	}
	f.reported = reported
	return added
}

// withoutForeign returns the sandboxes and containers of this node's pods, and logs the
// others once.
func (r *Runtime) withoutForeign(sandboxes []*runtimeapi.PodSandbox, containers []*runtimeapi.Container) ([]*runtimeapi.PodSandbox, []*runtimeapi.Container) {
	if r.cfg.Providers.Ledger == nil {
		return sandboxes, containers
	}
	foreign := map[types.UID]string{}
	ourSandboxes := sandboxes[:0]
	for _, s := range sandboxes {
		if uid := types.UID(s.Metadata.Uid); r.cfg.Providers.Ledger.Owns(uid) {
			ourSandboxes = append(ourSandboxes, s)
		} else {
			foreign[uid] = s.Metadata.Namespace + "/" + s.Metadata.Name
		}
	}
	ours := containers[:0]
	for _, c := range containers {
		if uid := types.UID(c.Labels[podconfig.LabelPodUID]); r.cfg.Providers.Ledger.Owns(uid) {
			ours = append(ours, c)
		} else {
			foreign[uid] = c.Labels[podconfig.LabelPodNamespace] + "/" + c.Labels[podconfig.LabelPodName]
		}
	}
	for uid, name := range r.foreign.changed(foreign) {
		r.log.Warn("Pod of the runtime does not belong to this node; it is left unchanged", "pod", name, "podUID", uid, "rootDir", r.cfg.Dirs.Root)
	}
	return ourSandboxes, ours
}
