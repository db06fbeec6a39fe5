// Package virtualkubelet makes a virtual-kubelet node of any runtime.Runtime: it is package
// provider with the types of virtual-kubelet.
//
// # Behavior
//
// [Provider] implements nodeutil.Provider and node.PodNotifier completely. The lifecycle of
// pods is that of package provider. Logs, exec, attach, port-forward and statistics come from
// the optional interfaces of the runtime:
//
//	logs           provider.LogStreamer, runtime.LogReader
//	exec           runtime.StreamExecer; runtime.Execer without input and terminal
//	attach         runtime.Attacher
//	port-forward   runtime.PortForwarder
//	statistics     runtime.StatsProvider, runtime.ImageFSReporter
//
// Events of pods are written with the client of [Provider.NewNode], which needs the permission
// to create and patch events, unless Config.Record is set.
//
// What a runtime does not implement is answered with an error that is
// runtime.ErrUnsupported; virtual-kubelet responds 500 with its message.
//
// # Usage
//
//	p, err := virtualkubelet.New(provider.Config{Runtime: rt, NodeName: "virtual"})
//	n, err := p.NewNode(client, auth, func(c *nodeutil.NodeConfig) error {
//		c.NodeSpec.Status.Capacity = v1.ResourceList{v1.ResourcePods: resource.MustParse("100")}
//		c.TLSConfig = …
//		return nil
//	})
//	group.Go(func() error { return p.Run(ctx) })
//	group.Go(func() error { return n.Run(ctx) })
//
// The directories examples/processes (86 lines of code) and examples/jobs (113) are complete
// providers, over processes of the host and over a queue of jobs: package kube/provider/jobs
// is the runtime to use over a service that runs jobs.
//
// # go.mod
//
// This package is a module of its own, because nodeutil imports the libraries of the API
// server: the closure of this package has 1,413 packages, that of package provider 305. The
// module requires
//
//	github.com/virtual-kubelet/virtual-kubelet v1.13.0
//	k8s.io/apiserver v0.37.2
//
// virtual-kubelet v1.13.0 requires k8s.io/apiserver v0.35.4, which does not compile with
// k8s.io/apimachinery v0.37. A module that requires this one gets both versions without
// further lines. A module that uses nodeutil with package provider alone needs the line for
// k8s.io/apiserver in its go.mod, and one that uses virtual-kubelet v1.12 cannot be built:
// its packages node/api and nodeutil import k8s.io/apiserver/pkg/util/wsstream, which v0.36
// does not have.
//
// A workspace (go.work), where requirements are not pruned, selects a version of
// google.golang.org/genproto with packages that are modules of their own today, and the
// build fails with "ambiguous import". It needs
//
//	replace google.golang.org/genproto v0.0.0-20200526211855-cb27e3aa2013 => google.golang.org/genproto v0.0.0-20260817212433-ac3dfec99bb1
//
// # Concurrency
//
// All methods are safe for concurrent use; Run must be called once.
//
// # Guarantees and limits
//
//   - NewNode requires an Auth: without one, every client that reaches the port could run
//     commands in pods.
//   - The CPU and memory of the node are the sums of its pods. The CPU time does not decrease
//     when a pod terminates. The file system of the node is not reported.
//   - Statistics are at most 15 seconds old. virtual-kubelet passes no query parameters: the
//     summary always has all resources.
//   - The node is Ready while the process runs, whatever the runtime's health is; a
//     node.NodeProvider of the program can report more.
//   - Options of logs that virtual-kubelet does not parse (stream, insecureSkipTLSVerifyBackend)
//     have no effect. tailLines=0 is the whole log, because virtual-kubelet passes 0 for an
//     option that is not set.
//
// # Differences from the kubelet
//
// Those of package provider, and of the HTTP server of virtual-kubelet: there is no
// /configz, /healthz, /checkpoint or /metrics/cadvisor, and exec does not support tty with a
// separate standard error.
//
// # Testing
//
// The tests run nodeutil.NewNode over an API server in memory, and read logs, run commands,
// attach, forward ports and read statistics over HTTP with the clients that kubectl uses.
// Tests of the pod controller in virtual time are in test/provider.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package virtualkubelet
