// Package client connects the packages of a node agent to a Kubernetes API server: sources
// of pods, sinks of statuses and events, and the objects that pods refer to.
//
// # Behavior
//
// It makes no decisions about pods. It implements the interfaces of other packages for a
// cluster, with few requests, without losing data while the server is unavailable, and with
// backoff when it fails:
//
//	Connect          clients: kubeconfig or in-cluster, protobuf, rate limits
//	Pods             podsource.PodSource: the pods of one node
//	Feed             the pods of all nodes, for several Pods in one process
//	Nodes            the nodes of the cluster
//	Statuses         status.Sink: one patch for each change
//	Mirrors          podworker.Mirrors: mirror pods of static pods
//	Events           a func(runtime.Event)
//	Objects          pipeline.Objects, and the Objects of runtime/cri and of volume
//	PodCertificates  the Requests of volume/certificate
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
// pods is the source podsource.APISource of a podsource.Merge, which runs it. events,
// statuses and objects each have a Run. Each can be used without the others, except
// Statuses, which requires Pods.
//
// # Concurrency
//
// All methods are safe for concurrent use; Run must not be called concurrently. Requests
// are canceled with their ctx. Returned objects are shared and must not be modified. Time
// is package time, so that complete nodes run in synctest bubbles with package
// apitest.
//
// # Guarantees and limits
//
// Pods: the set is always complete, and of this node only. A watch that breaks is resumed
// at its last version; if that is too old (410 Gone), all pods are read again, with the
// most recent version. While the server is unavailable the last set remains; reconnecting
// takes up to 30 s.
//
// Statuses: a change is one request, and nothing is read before it is written, except after
// a conflict. A pod that was deleted or replaced is detected by the response. Fields of
// other clients are preserved; changes that others make to fields of the node are reverted,
// at most every 10 s for a pod. A status that is too large is shortened until the server
// accepts it, with an event. With the default limits, 100 pods with 3 changes each drain in
// 2 s, at 50 ms per request.
//
// Objects: one watch for each object that a registered pod refers to, none for a whole
// cluster. Each takes the memory of the object and of about 4 goroutines. They are kept
// for a minute after the last pod is unregistered.
//
// Failures: each persistent failure causes at most a few requests per minute for each
// object, whatever the callers do. Retry-After is honored.
//
// # Differences from the kubelet
//
//   - Half of the requests: no GET before each status; 5 requests in the lifecycle of a
//     plain pod where the kubelet makes 9.
//   - A status is written when it changes, not at the next tick, and a terminal phase that
//     another client has set is preserved (the kubelet reverts it).
//   - Reading an object that no registered pod refers to is not an error.
//   - Objects in volumes are watched while they are mounted, since their changes are
//     pushed.
//   - Lists and watches do not use client-go's reflectors, which retry without delay when a
//     watch-list fails with 410, and may block for minutes after they were stopped.
//   - The first read of pods returns the most recent version; the kubelet's may come from
//     an outdated cache.
//   - Mirror pods that the server rejects are created again with backoff, not at each sync.
//   - Burst is 300 instead of 100, since a node reports all of its pods after a restart.
//   - Event messages are truncated to 1024 bytes.
//   - Services are read in the namespaces of pods with enableServiceLinks, not in the whole
//     cluster.
//   - Secrets that only a PersistentVolume refers to, and not the pod, are not registered
//     (iSCSI, RBD and similar volumes): no plugin mounts such volumes.
//
// # Testing
//
// Tests use package apitest in synctest bubbles: latency, 410, throttling, interrupted
// watches, conflicts, rejections, lost responses, and truncated streams; the requests of
// each kind of persistent failure are counted. integration_trouble_test.go and
// integration_badinput_test.go do the same with a real server. rules_test.go lists the
// rules.
//
// # Stability
//
// Growing: the API will be extended; a minor version may change it, and CHANGELOG.md
// describes how to migrate.
package client
