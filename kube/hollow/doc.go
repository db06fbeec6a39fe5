// Package hollow runs simulated nodes in place of kwok: for the load tests of schedulers,
// autoscalers and controllers, whose pods restart, fail, are evicted and use resources.
//
// # Behavior
//
// [Nodes] run the Node objects that other clients create, such as a cluster autoscaler, with
// package kube/fakenode: selected by annotations or labels, by default those of kwok's users.
// [Rules] are the behaviors of pods by namespace, labels, image and container, and Stages of
// kwok as far as they have a counterpart. With [Shard] several processes share the nodes, and
// [Port] serves the kubelet's API of each, so that kubectl logs and exec, metrics-server and
// HorizontalPodAutoscalers work.
//
// # Usage
//
//	rules, err := hollow.ParseRules(text)
//	nodes, err := hollow.New(restConfig, hollow.Config{Rules: rules, Shard: hollow.Shard{
//		Group: "hollow", Namespace: "hollow", Identity: podName,
//	}})
//	…
//	err = nodes.Run(ctx)
//
// examples/hollow is a program of it, and its directory deploy runs it in a cluster;
// docs/hollow.md describes both.
//
// # Concurrency
//
// Run must be called once. The other methods are safe for concurrent use.
//
// # Guarantees and limits
//
//   - A process runs a node only if all processes of the group have published the same members
//     in their leases, and it has stopped the nodes of others before it publishes. A process
//     whose lease is not renewed stops its nodes after two thirds of the duration of the lease;
//     others run them after the whole. A process that is suspended and resumed later can
//     send requests that were in progress.
//   - When a process ends, others run its nodes after about two tenths of the duration; when it
//     dies, after the duration and two tenths more. Only its nodes change hands.
//   - Pods continue as their statuses describe them: running containers run, and restart counts
//     increase. What was not written when a process died did not happen.
//   - Logs, outputs of commands and resource usage are computed from the behavior of a container
//     when they are requested, and cost nothing before. Usage is computed from the behavior: it does
//     not depend on requests of clients. A port that a behavior serves is reached by port
//     forwarding only.
//   - Each process watches all pods and all nodes of the cluster, also those of others.
//
// # Differences from the kubelet
//
// Those of package kube/fakenode.
//
// # Testing
//
// Groups of processes are tested in virtual time with an in-memory API server: processes join,
// end, die and lose their connection, and no request of a node is from a process that does not
// run it. The port is tested over TCP.
//
// # Stability
//
// Experimental: the API may change or be removed in any version.
package hollow
