// Package node keeps a machine's node object and lease in an API server, so that
// a scheduler gives it pods and a controller notices when it has gone.
//
// # What it decides
//
// What the object is when it is made ([Spec.Object]), what of one that is there
// already is put right when the agent comes back ([Spec.Reconcile]), what its
// status says (the [Setter] list, of which [Facts.Setters] has the kubelet's),
// whether that has to be sent ([Changed]), and what the lease says ([Renew]). All
// of these are functions of values; a [Node] calls them at their times.
//
// # Usage
//
//	n, err := node.New(node.Config{
//		Spec:    node.Spec{Name: "n1"},
//		Nodes:   client.CoreV1().Nodes(),
//		Leases:  client.CoordinationV1().Leases("kube-node-lease"),
//		Setters: node.Facts{Addresses: addresses.Addresses, Machine: machine, Health: health}.Setters(),
//	})
//	…
//	err = n.Run(ctx)
//
// A virtual node takes fewer facts, or setters of its own. [Node.Update] makes a
// change of facts known within a second, [Node.Owner] is what mirror pods belong
// to, and [Node.Object] has the labels and taints that others have put on it.
//
// # Concurrency
//
// Run is called once. The other methods may be called from anywhere. Setters and
// facts are called one at a time, from one goroutine, the lease's calls are made
// from another: a status that hangs does not keep the lease from being renewed.
//
// # Guarantees and limits
//
//   - A node whose facts do not change costs a read and a renewed lease per 10 s,
//     and a write per 5 min, and never more than five tries of each per period.
//   - What others write into the object stays: their labels, annotations, taints
//     and conditions.
//   - An event is told once the object that says so has been written.
//   - An object that somebody deletes while the agent runs is not made again: the
//     agent has to be started anew.
//   - Conditions other than the kubelet's are for a setter of one's own.
//
// # Differences from the kubelet
//
//   - Labels of the configuration are put right each time that the agent starts
//     (nq-20); [Spec.LabelsOnce] is the kubelet's way. Taints never are: many are
//     there to be taken away by somebody.
//   - The node of an agent that has just started stays as ready as it was, for
//     half a minute at most, until the runtime has been asked ([Health].Unknown).
//   - A change can be announced, and is then sent at once.
//   - Of two addresses of one type none gets lost when they change.
//   - There is no cloud provider: where there is one, [Spec].ExternalCloudProvider
//     leaves the addresses to it.
//
// # Testing
//
// Each rule ns-1 … ns-21 and ls-1 … ls-4 has a test that names it, or a reason in
// rules_test.go why it has none. Time is virtual, the API server in memory. The
// agent's cluster suite has it talk to a real one.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package node
