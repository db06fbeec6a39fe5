// Package fakenode runs fake nodes for the tests of controllers: an envtest has an API
// server but no nodes, so that its pods remain Pending.
//
// # Behavior
//
// What the containers of a pod do: nothing is executed; their [Behavior] specifies when
// they are ready, exit or fail. Without a scheduler it also binds pods, to the first node
// that they fit. Everything else is done by the packages of a real node: kube/node
// registers the nodes and renews their leases, podworker, pleg and status run the pods on
// an in-memory runtime (runtime/runtimetest), and kube/client writes statuses and events.
//
// # Usage
//
// These lines run the pods of an envtest:
//
//	import "github.com/kubeparts/kubeparts/kube/fakenode"
//
//	cfg, err := testEnv.Start() // as before
//	t.Cleanup(func() { testEnv.Stop() }) // before Start: the nodes stop first
//	nodes := fakenode.Start(t.Context(), t, cfg, fakenode.Config{})
//
// An API server that is stopped while nodes watch it waits for them, an envtest until its
// timeout. With "defer testEnv.Stop()", which runs before t.Cleanup, the test also needs
// "defer nodes.Stop()" after it.
//
// In a Ginkgo suite, call fakenode.Start(ctx, GinkgoT(), cfg, …) in BeforeSuite, with the
// ctx of the suite. Pods then run and are ready as soon as they are created, terminate when
// they are deleted, and complete, fail or are evicted as their behavior specifies:
//
//	pod.Annotations = map[string]string{fakenode.Annotation: "ready=2s,exit=1@1m"}
//
// [ParseBehavior] lists all options. [Config].Behave returns the behavior of a container,
// and [Config].Behaviors has behaviors by container name or image. A test causes events
// with [Nodes.Exit], [Nodes.SetReady], [Nodes.Evict], [Nodes.Crash] and [Nodes.SetHealth].
//
// A test without binaries uses an in-memory API server (kube/client/apitest), and can run
// in a synctest bubble, where an hour passes in milliseconds:
//
//	synctest.Test(t, func(t *testing.T) {
//		api := new(apitest.Server)
//		nodes := fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{})
//		…
//	})
//
// Outside of a bubble durations are real; they cannot be scaled, since those of an API
// server and of the controller are not.
//
// # Concurrency
//
// All methods are safe for concurrent use. Run must be called once.
//
// # Guarantees and limits
//
// Hundreds of nodes and thousands of pods can run in one process (examples/hollow): all
// nodes share one watch of pods, the connection and its rate limits, and an idle pod has no
// goroutine.
//
//   - Probes are not executed, including those of the pod: a container is ready when its
//     Behavior specifies it, and live until it exits.
//   - There are no logs, no exec and no networks: pod addresses are not reachable.
//   - Volumes, images, Secrets and other references of pods are ignored.
//   - A pod with an invalid behavior is rejected, with the error in its status.
//   - Scheduling considers node selectors, required node affinity, taints, host ports and
//     resources, not pod affinity, topology spread, priorities or preemption.
//   - A node does not recover its pods in another process: their containers are started
//     again.
//
// # Differences from the kubelet
//
// A container that cannot be started is started again every second, without a longer
// backoff. The readiness of a container does not depend on whether it has a probe. The
// grace period of an eviction is zero.
//
// # Testing
//
// Tests use an in-memory API server in virtual time; test/envtest and test/hollow use a
// real one.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package fakenode
