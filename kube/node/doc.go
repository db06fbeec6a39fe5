// Package node registers a node with an API server and maintains its status and lease.
//
// # Behavior
//
// The initial Node object ([Spec.Object]), the update of an existing one at a restart
// ([Spec.Reconcile]), the status (a list of [Setter]; [Report] returns the
// kubelet's), when it must be sent, and the content of the lease. A [Node] computes them
// periodically.
//
// # Usage
//
//	n, err := node.New(node.Config{
//		Spec:    node.Spec{Name: "n1"},
//		Nodes:   client.CoreV1().Nodes(),
//		Leases:  client.CoordinationV1().Leases("kube-node-lease"),
//		Setters: []node.Setter{node.Report(facts)}, // func(context.Context) (node.Facts, error)
//	})
//	…
//	err = n.Run(ctx)
//
// A virtual node has fewer facts, or its own setters. [Node.Update] reports changed facts
// within a second, [Node.Owner] returns the owner reference of mirror pods, and
// [Node.Object] returns the object with the labels and taints that other clients have set.
//
// # Concurrency
//
// Run must be called once. The other methods are safe for concurrent use. Setters and facts
// are called sequentially, from one goroutine, and the lease is renewed by another: a
// status update that blocks does not delay the lease.
//
// # Guarantees and limits
//
//   - A node whose facts do not change causes a read and a lease renewal every 10 s, and a
//     write every 5 min; at most five attempts of each per period.
//   - Labels, annotations, taints and conditions that other clients set are preserved.
//   - An event is recorded after the status that it is about was written.
//   - An object that is deleted while Run runs is not created again until the next Run of a
//     new Node.
//   - Conditions other than the kubelet's require a setter of the caller.
//
// # Differences from the kubelet
//
//   - Configured labels are updated at each start; [Spec].NoLabelUpdate is the kubelet's
//     behavior. Taints are not, since other components remove them.
//   - After a start the node remains as ready as it was, for at most 30 s, until the
//     runtime has responded ([Health].Unknown).
//   - Changes can be announced with Update, and are then sent immediately.
//   - If there are two addresses of one type, a change does not remove one of them.
//   - Only an external cloud provider is supported ([CloudProvider].External); it sets the
//     addresses of the node, and removes the taint that the object is created with.
//
// # Testing
//
// Tests name the rules ns-1 to ns-21 and ls-1 to ls-4 that they check; rules_test.go lists
// the rules without a test. Time is virtual, the API server is in memory. test/kubelet uses
// a control plane.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package node
