// Package client speaks to a Kubernetes API server for a node agent: where its
// pods come from, where their statuses go, and what they refer to.
//
// # What it decides
//
// Nothing about pods. It brings each seam of the core to a cluster, and sees that
// little is asked of the server, that nothing is lost while it is away, and that
// it is not pressed when it fails:
//
//	Connect    the clients: kubeconfig or in-cluster, protobuf, limits
//	Pods       podsource.PodSource: the pods of one node
//	Statuses   status.StatusSink: one patch for a change
//	Mirrors    podworker.Mirrors: copies of static pods
//	Events     whatever takes a func(runtime.Event)
//	Objects    podworker.Objects, and the Objects of runtime/cri and of volume
//
// # Usage
//
//	conn, err := client.Connect(client.Config{Kubeconfig: path})
//	pods, err := client.NewPods(client.PodsConfig{Client: conn.API, NodeName: name})
//	events, err := client.NewEvents(client.EventsConfig{Client: conn.Events, NodeName: name})
//	statuses, err := client.NewStatuses(client.StatusesConfig{Client: conn.API, Pods: pods, Record: events.Record})
//	objects, err := client.NewObjects(client.ObjectsConfig{Client: conn.API, Changed: volumes.ObjectChanged})
//	mirrors, err := client.NewMirrors(client.MirrorsConfig{Client: conn.API, Node: owner})
//
// pods is the source podsource.APISource of a podsource.Merge, which runs it.
// events, statuses and objects each have a Run. Each works without the others,
// but for Statuses, which looks at Pods.
//
// # Concurrency
//
// All methods may be called from any goroutine at any time; Run once at a time.
// Calls of the API end with their ctx. Objects that are returned are shared, and
// nobody changes them. Everything is package time's, so that whole nodes run in
// synctest bubbles: see package apitest.
//
// # Guarantees and limits
//
// Pods: the set is always whole, and only of this node. A watch that breaks is
// taken up where it ended, one that is too old (410 Gone) is followed by
// everything there is, read as of now and not from a cache of some time ago. What
// was read last stays while the server is away, which means that it takes up to
// 30s to hear of it again.
//
// Statuses: a change is one call; in the steady path nothing is read before it is
// written. A pod that is gone, or is another one by now, is found out by the
// answer. What others wrote stays (section 7.8 of our rules); what somebody else
// changed of ours is written again, at most every 10s for a pod. A status that is
// too large is shortened until the server takes it, with an event. At the default
// limits 100 pods drain 3 changes each, at 50ms a call, in 2s.
//
// Objects: one watch for each object that a registered pod refers to, none for a
// whole cluster. Its memory is that of those objects and about 4 goroutines each.
// After the last pod has gone they are kept for a minute.
//
// Failures: each kind of persistent failure costs at most a few calls a minute
// for each thing that is wanted, whatever the callers do; a Retry-After is
// honoured.
//
// # Differences from the kubelet
//
//   - Half the calls: no GET before each status (st-66); 5 calls for the life of
//     a plain pod where the kubelet makes 9.
//   - A status is written when it is said, not at the next tick (st-64, st-68),
//     and a terminal phase that somebody set stays (the kubelet takes it back).
//   - Reading an object that no pod registered is no error (oc-4).
//   - Objects in volumes are watched as long as they are mounted (oc-6), since
//     their changes are pushed.
//   - Lists and watches are our own, not client-go's reflectors: those loop
//     without a wait when a watch-list is answered with 410, and may wait for
//     minutes after they were told to stop.
//   - The first read of pods is as of now; the kubelet's may come from a cache
//     that is behind.
//   - Mirror pods that are refused are not asked for again at each sync (L-33).
//   - Burst is 300 instead of 100, since a node that comes back has something to
//     say of each of its pods.
//   - Event messages are cut at 1024 bytes.
//   - Services are read of the namespaces whose pods want variables of them, not
//     of the cluster.
//   - Of a PersistentVolume's secrets (iSCSI, RBD and the like), those that only
//     the volume names, and not the pod, are not registered: nobody here mounts
//     such volumes.
//
// # Testing
//
// Against package apitest in synctest bubbles: latency, 410, throttling, dropped
// watches, conflicts, refusals, lost answers, streams that break half-way. The
// calls of each kind of persistent failure are counted. The same is done to a real
// server in integration_trouble_test.go and integration_badinput_test.go: watches cut
// and too old, 429, statuses that are too large, clocks that differ, a namespace that
// goes. rules_test.go lists the rules.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package client
