// Package provider is the pod side of a virtual-kubelet provider, over any
// runtime.Runtime.
//
// # Behavior
//
// The package determines the pods that the agent runs: the pods that virtual-kubelet passed to
// CreatePod and UpdatePod, and, while a new process adopts them, the pods that the runtime runs
// already. Package agent and its parts decide about each pod: the lifecycle by UID,
// restarts with back-off, graceful termination, probes, phase, conditions and the
// delivery of statuses.
//
// With a runtime that copies files (runtime/containers with Support.Files), Config.Volumes is a
// resolved.Resolver: changed objects and rotated tokens reach running pods.
//
// virtual-kubelet keeps the node object, its lease, the watch of pods, environment
// variables from ConfigMaps and Secrets, and the HTTP server.
//
// # Usage
//
//	p, err := provider.New(provider.Config{Runtime: rt})
//	go p.Run(ctx)
//	controller, err := node.NewPodController(node.PodControllerConfig{Provider: p, …})
//	err = controller.Run(ctx, workers)
//
// This module does not import virtual-kubelet. [Provider] implements the interfaces whose
// signatures consist of Kubernetes types: node.PodLifecycleHandler and node.PodNotifier. The
// module github.com/kubeparts/kubeparts/kube/provider/virtualkubelet adds virtual-kubelet's
// own types: its Provider is a complete nodeutil.Provider, with logs, exec, attach,
// port-forward and statistics, for nodeutil.NewNode. Its documentation has the versions that
// build together: package nodeutil of virtual-kubelet v1.13.0 needs the line
//
//	k8s.io/apiserver v0.37.2
//
// in a go.mod that requires this module and not that one.
//
// # Concurrency
//
// All methods are safe for concurrent use; Run must be called once. The methods of
// PodLifecycleHandler do not block on a pod or on the runtime, except GetPods until Run has
// listed the runtime's pods. The function that NotifyPods
// registers is called from several goroutines, in order for each pod; while it blocks,
// later statuses are delayed and nothing else.
//
// # Guarantees and limits
//
//   - A pod that DeletePod was called for has its grace period. GetPods and GetPodStatus
//     report it until all its containers have terminated and its volumes are unmounted;
//     the last notification contains the exit codes. GetPod reports NotFound at once,
//     because virtual-kubelet does not create a pod while GetPod returns one of the same
//     name, and a pod may be recreated under its name. A pod that is recreated before
//     virtual-kubelet has called DeletePod replaces the old one through UpdatePod.
//   - Pods are identified by UID. The statuses of a pod that has been replaced under its
//     name are not reported to virtual-kubelet, which identifies pods by name.
//   - A process that starts again adopts running pods. Until virtual-kubelet has passed
//     each of them to CreatePod or DeletePod, or Config.AdoptWithin has passed, no pod is
//     started or terminated. Afterwards, running pods that it has not passed are
//     terminated.
//   - Errors for an unknown pod have the method NotFound() bool, which
//     errdefs.IsNotFound of virtual-kubelet recognizes; a container without log or a
//     runtime without the capability is an error that is runtime.ErrUnsupported.
//   - Logs are files of the runtime (runtime.LogReader), or what a [LogStreamer] returns.
//     Exec without input and terminal needs only a runtime.Execer.
//   - Readiness gates have no effect: virtual-kubelet neither passes conditions that others
//     set to the provider, nor preserves them.
//   - virtual-kubelet deletes the object of a pod in the API when the grace period is
//     over, not earlier if the pod has terminated and not later if it has not. The object
//     of a pod without a running container is deleted immediately. virtual-kubelet
//     discards deletions that it learns of from a list after its watch was interrupted;
//     such a pod runs until virtual-kubelet starts again.
//
// # Differences from the kubelet
//
// Those of package agent. There are no static pods and no mirror pods. Without
// SkipDownwardAPIResolution the environment of containers is resolved by
// virtual-kubelet once, when a pod is created.
//
// # Testing
//
// The tests here call the methods as virtual-kubelet does, in virtual time.
// test/provider runs a Provider under virtual-kubelet's PodController and NodeController
// (v1.13.0) with client-go informers and an API server in memory; package virtualkubelet
// runs one under nodeutil.NewNode, over HTTP.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package provider
