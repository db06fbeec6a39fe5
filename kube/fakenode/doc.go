// Package fakenode gives the tests of a controller nodes on which pods live: an
// envtest has an API server and no node, so that its pods stay Pending for ever.
//
// # What it decides
//
// What a pod's containers do: nothing is executed, they behave as they are declared
// to ([Behaviour]). And, where there is no scheduler, which node takes a pod: the
// first that it fits on. All else is what the packages of this house do on a real
// node: the nodes register and keep their leases (kube/node), their pods are taken
// through podworker, pleg and status over a runtime in memory
// (runtime/runtimetest), and their statuses and events are written by kube/client.
//
// # Usage
//
// These lines, and the import, make the pods of an envtest live:
//
//	import "github.com/kubeparts/kubeparts/kube/fakenode"
//
//	cfg, err := testEnv.Start() // as it was
//	t.Cleanup(func() { testEnv.Stop() }) // before Start: the nodes stop first
//	nodes := fakenode.Start(t.Context(), t, cfg, fakenode.Config{})
//
// An API server that is stopped while nodes watch it waits for them, an envtest until
// its timeout. With "defer testEnv.Stop()", which runs before t.Cleanup, the test also
// needs "defer nodes.Stop()" after it.
//
// In a Ginkgo suite that is fakenode.Start(ctx, GinkgoT(), cfg, …) in BeforeSuite,
// with the suite's own ctx. From there on a pod runs and is ready as soon as it is
// made, stops when it is deleted, and completes, fails or is evicted when it is
// declared to:
//
//	pod.Annotations = map[string]string{fakenode.Annotation: "ready=2s,exit=1@1m"}
//
// [ParseBehaviour] has all the words. Config.Behave declares by a func of the pod,
// Config.Behaviours by the name or the image of a container. A test makes things
// happen with [Nodes.Exit], [Nodes.SetReady], [Nodes.Evict], [Nodes.Crash] and
// [Nodes.SetHealth].
//
// A test without any binary has the API server in memory (kube/client/apitest), and
// can be in a synctest bubble: an hour is over in milliseconds there.
//
//	synctest.Test(t, func(t *testing.T) {
//		api := new(apitest.Server)
//		nodes := fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{})
//		…
//	})
//
// In real time, times are what they say they are: there is no scale for them, since
// an API server's and a controller's own would not keep to it. Declare short ones.
//
// # Concurrency
//
// All methods may be called from any goroutine; Run once.
//
// # Guarantees and limits
//
// Hundreds of nodes and thousands of pods may be in one process (examples/hollow):
// one watch of all pods serves all nodes, they share the connection and the limits
// of their calls, and a pod that nothing happens to has no goroutine.
//
//   - Probes are not run, also those that a pod declares: a container is ready when
//     its Behaviour says so, and alive until it exits.
//   - There are no logs, no exec, and no networks: the addresses of pods lead nowhere.
//   - Volumes, images, Secrets and what else pods refer to is not looked at.
//   - What a behaviour misspells has the pod refused, with the reason in its status.
//   - The scheduler knows selectors, required affinity to nodes, taints, host ports
//     and resources, and nothing of other pods' affinities, spreading, priorities or
//     preemption.
//   - A node that has run before with a pod does not know it again in another process:
//     its containers start anew.
//
// # Differences from the kubelet
//
// A container that cannot be started is tried again each second, not after seconds
// to minutes. Every container has a readiness of its own, whether it has a probe or
// not. The grace period of an eviction is zero.
//
// # Testing
//
// Against an API server in memory in virtual time, and, in test/envtest and
// test/hollow, against a real one.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package fakenode
