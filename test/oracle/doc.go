// Package oracle compares a kubelet with what Kubernetes documents, when things go wrong.
//
// It starts a kubelet, of Kubernetes or of this repository, on a CRI runtime in memory and an API
// server, plays a scenario in real time (pods, exits, failing probes, killed sandboxes, faults of the
// runtime and of the API server, kills of the kubelet), and records what crosses the kubelet's borders:
// the calls of the CRI, the changes of the runtime, and the pods that a watcher receives. Invariants that
// hold for any kubelet check the record; those of package sim are the same ones.
//
// docs/oracle.md describes the commands, the format of scenarios, and what was found.
package oracle
