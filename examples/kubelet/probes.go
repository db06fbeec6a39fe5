package main

import (
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/prober/grpcprobe"
	"github.com/kubeparts/kubeparts/runtime"
)

// probeHandlers returns a handler for every type of probe.
func probeHandlers(rt runtime.Execer) prober.Handlers {
	return prober.Handlers{
		Exec:      prober.Exec{Runtime: rt},
		HTTPGet:   prober.HTTPGet{},
		TCPSocket: prober.TCPSocket{},
		GRPC:      grpcprobe.Handler{},
	}
}
