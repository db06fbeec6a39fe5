// Package trace plays the history of a cluster on another one: it applies and deletes objects at
// the times at which a trace has them, in real time, faster or slower, or in virtual time.
//
// # Behavior
//
// It decides when which object is applied or deleted. A [Trace] is a sequence of events, which
// [ReadSimKube] reads from a file of SimKube's tracer and [OfPods] makes of the pods of
// sim/cluster, and so of the CSV files that sim/cluster/trace reads. A [Player] plays it with a
// client: on a cluster whose nodes are those of kube/fakenode or examples/hollow, or on
// kube/apitest in a synctest bubble, where a day of a cluster with its real controllers
// (kube/controllers) takes seconds.
//
// # Usage
//
//	trace, err := trace.ReadSimKube(file)
//	trace.SetBehaviors(fakenode.Annotation) // pods terminate when those of the trace did
//	player, err := trace.NewPlayer(restConfig, trace.Config{Speed: 60})
//	err = player.Play(ctx, trace)
//
// examples/play is that as a program.
//
// # Concurrency
//
// A Trace must not be modified while it is played. A Player may play one trace after the other;
// Play must not be called concurrently.
//
// # Guarantees and limits
//
// The objects of an event are applied in their order, one after the other, with server-side
// apply; then those that it deletes are deleted, without waiting until they are gone. An event
// that is late is played at once and does not delay those after it further. A call that fails for
// the time being (the server is overloaded, the connection is refused) is repeated for a few
// seconds; any other error ends the play, and names the event and the object. That an object to
// delete does not exist is not an error.
//
// Objects are applied without what another cluster has determined: status, UID, resource version,
// managed fields, owner references, and the node and service account of pods. Namespaces are
// created.
//
// Files are untrusted: a file has at most 128 MiB and 16 million values, which are nested at most
// 100 deep. An error names the offset. Of a file of SimKube the format 2 is read; its
// configuration and its index are ignored.
//
// Pods of sim/cluster keep name, requests, limits, run time, exit code, restart policy, priority
// (with a PriorityClass), labels, node selector, affinity, tolerations and image; memory and disk
// usage are not part of the trace. A pod that is replaced when it fails becomes a ReplicaSet or,
// if its containers are not always restarted, a Job.
//
// # Differences from the kubelet
//
// The kubelet has no counterpart. SimKube's driver also sets node selectors and tolerations and
// removes the ports of containers; [Config].Edit can.
//
// # Testing
//
// Files of all types of values and of errors; files are fuzzed. Traces are played in virtual time
// on kube/apitest, by the tests of kube/controllers with the real controllers, and by test/hollow on
// a real API server.
//
// # Stability
//
// Experimental: the API may change in any release.
package trace
