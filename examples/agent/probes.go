package main

import (
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/prober/grpcprobe"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// probing makes the prober, with a handler for every type of probe. What it finds
// out is kept in a file: that the agent is started anew changes nothing for a pod.
func (a *assembly) probing(rt runtime.Execer, changes *pleg.Generator) (*prober.Manager, error) {
	return prober.New(prober.Config{
		Handlers: prober.Handlers{
			Exec:      prober.Exec{Runtime: rt},
			HTTPGet:   prober.HTTPGet{},
			TCPSocket: prober.TCPSocket{},
			GRPC:      grpcprobe.Handler{},
		},
		Status: changes.Get, HostIPs: a.hostIPs, File: filepath.Join(a.opts.root, "probes.json"),
		Hooks: a.count.Prober(), Record: a.record, Logger: a.logger,
	})
}

// matters tells all of them of the pods of which a probe has found out something
// that is to be acted on.
func matters(tell ...func(types.UID)) func(prober.Change) {
	return func(c prober.Change) {
		if !c.Matters() {
			return
		}
		for _, t := range tell {
			t(c.UID)
		}
	}
}

// probed hands what probes say to the status.
func probed(probes *prober.Manager) func(types.UID) map[string]status.Probed {
	return func(uid types.UID) map[string]status.Probed {
		out := map[string]status.Probed{}
		for name, p := range probes.Containers(uid) {
			out[name] = status.Probed(p)
		}
		return out
	}
}
