// Package fakenode runs fake nodes for the tests of controllers: an envtest has an API
// server but no nodes, so that its pods remain Pending.
//
// # Behavior
//
// Nothing is executed: the [fake.Behavior] of the containers of a pod specifies when
// they are ready, exit or fail. Without a scheduler it also binds pods, with the filters and
// scores of package scheduler. Everything else is done by the packages of a real node: kube/node
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
// Package runtime/fake lists the options. [Config].Behave returns the behavior of a container,
// and [Config].Behaviors has behaviors by container name or image. [Node].Drivers are DRA
// drivers, for pods with ResourceClaims. A test causes events of pods with [Nodes.Exit],
// [Nodes.OOM], [Nodes.Evict], [Nodes.Crash] and [Nodes.SetReady], and of nodes with
// [Nodes.Fail], [Nodes.Unready], [Nodes.Drain] and [Nodes.Recover].
//
// [Config].Adopt runs nodes whose objects other clients create and delete, such as a cluster
// autoscaler, instead of nodes that this package creates:
//
//	nodes, err := fakenode.New(api, fakenode.Config{
//		NoScheduler: true,
//		Adopt:       func(n *v1.Node) bool { return n.Annotations["kwok.x-k8s.io/node"] == "fake" },
//	})
//
// A test without binaries uses an in-memory API server (kube/apitest), and can run
// in a synctest bubble, where an hour passes in milliseconds:
//
//	synctest.Test(t, func(t *testing.T) {
//		api := new(apitest.Server)
//		nodes := fakenode.Start(t.Context(), t, api.RESTConfig(), fakenode.Config{})
//		…
//	})
//
// The API server, the nodes and the client must be created in the bubble, and the nodes with
// its *testing.T. "deadlock: main bubble goroutine has exited but blocked goroutines remain"
// at the end means that something still runs in it: nodes without [Nodes.Stop], or a watch of
// the test that was not stopped. Pods that remain Pending mean that the nodes are outside.
//
// [StartWithClient] does the same with a client, such as one of client-go's package fake: pods of the fake
// client then have UIDs, nodes and statuses. A fake client of controller-runtime shares the
// objects of a client of client-go (examples/fakeclient):
//
//	clientset := fake.NewClientset()
//	c := crfake.NewClientBuilder().WithObjectTracker(clientset.Tracker()).Build()
//	nodes := fakenode.StartWithClient(t.Context(), t, clientset, fakenode.Config{})
//
// Fake clients delete pods at once, without a grace period, and have no preconditions; the
// in-memory API server does not have these limits.
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
//   - Nodes write the events of the kubelet that follow from a behavior or a method: Pulled,
//     Created, Started, Killing, BackOff, Failed (with Pulling, of images), Unhealthy,
//     Evicted, NodeReady, NodeNotReady, NodeSchedulable, NodeNotSchedulable, those of the
//     conditions of a new node, and those of admission; the scheduler writes Scheduled and FailedScheduling. Pulled
//     reports an image that is present, since none is pulled. Events that are not written when a node fails are lost.
//   - There are no networks: pod addresses are not reachable. Logs, commands, endpoints and
//     resource usage of behaviors have an effect only where [Nodes.View] is served: package
//     kube/hollow serves the kubelet's API.
//   - Volumes, images, Secrets and other references of pods are ignored, except
//     ResourceClaims: they are prepared by the drivers of a node ([Node].Drivers), and pods
//     with claims are rejected by nodes without drivers. Claims must be created from
//     templates, allocated and reserved by the test or by the control plane.
//   - A pod with an invalid behavior is rejected, with the error in its status.
//   - Pods are bound by priority, with resources, host ports, taints, node and pod affinity,
//     and topology spread, as by the default profile of kube-scheduler; there is no
//     preemption, and volumes are ignored (package scheduler). Pods with another
//     spec.schedulerName, and pods with scheduling gates, are not bound.
//   - A node that another process has run, under the same name, continues with its pods as
//     their statuses describe them: with the same containers and restart counts. Times have the
//     resolution of the API, a second. Which runs of a command have failed is forgotten.
//
// # Differences from the kubelet
//
// A container that cannot be started is started again every second, without a longer
// backoff. The readiness of a container does not depend on whether it has a probe; a
// container with a readiness probe has the event Unhealthy once whenever it becomes unready,
// not in each period of the probe. The
// grace period of an eviction is zero. A pod without changes is synced every 30 minutes
// instead of every minute.
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
