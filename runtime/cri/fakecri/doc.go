// Package fakecri is an in-memory CRI runtime for tests and simulations.
//
// A [Runtime] behaves like a CRI runtime: it has sandboxes with addresses,
// containers that are created, run, exit, are stopped with SIGTERM, a grace period
// and SIGKILL, and are removed, and images, logs, streams, statistics and events. It
// returns the errors of a real runtime for invalid calls. It executes nothing: a
// container behaves as specified by the [fake.Behavior] for its name, its image, or an
// annotation of its pod, and by the commands of a test.
//
// # Usage
//
// With the zero Config everything works. A Runtime implements both services of the
// CRI's Go interfaces, and can be used in place of a client:
//
//	daemon, err := fakecri.New(fakecri.Config{
//		Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{
//			"web": {StopDelay: 3 * time.Second},
//			"job": {Exit: &fake.Exit{After: time.Minute, Code: 1, Crashes: 2}},
//		}},
//		Faults: fake.On(fake.Random(seed, 0.05, fake.Fault{Lost: true}), "StartContainer"),
//	})
//	rt, err := cri.New(cri.Config{Name: "fakecri", Runtime: daemon, Images: daemon, RootDir: …})
//
// A [fake.Script] is the same configuration as text. An annotation of a pod sets the
// behavior of that pod, so that a test does not depend on the runtime:
//
//	fakecri.kubeparts.io/behavior: "exit=1@1m"
//	behavior.fakecri.kubeparts.io/web: "http=8080@5s"
//
// Package runtime/cri/serve serves a Runtime on a unix socket.
//
// A test changes the state of containers with [Runtime.Exit], [Runtime.Kill],
// [Runtime.OOM], [Runtime.Hang], [Runtime.Linger] and [Runtime.KillSandbox], adds
// sandboxes and containers of another agent with [Runtime.Put], stops the daemon with
// [Runtime.Down] and restarts the machine with [Runtime.Reboot]. The actual state,
// regardless of injected faults, is returned by [Runtime.Containers] and
// [Runtime.Sandboxes], and Config.Observe is called for each change.
//
// Config.Faults maps a [fake.Call] to a [fake.Fault]: an error, a delay, a hang, an effect
// whose response is lost, a stale list. Package runtime/fake has functions that construct
// and combine such functions; an unresponsive daemon is fake.Always(fake.Fault{Hang: true}).
//
// # Concurrency
//
// All methods are safe for concurrent use. A Runtime has no goroutines, except those
// that listen with Config.Listen and those of connections; pending events are timers.
// Config.Faults and Config.Observe are called without locks and may call the Runtime.
//
// Returned messages may be shared with other responses and must not be modified.
// Messages passed as arguments are copied.
//
// # Guarantees and limits
//
// It uses package time, so that a Runtime created in a testing/synctest bubble runs in
// virtual time. Without random faults, and with calls from a single goroutine, the same
// calls at the same times have the same results, including IDs.
//
// Lists by pod UID, and operations on an object by its complete ID, take the same time
// with ten thousand pods as with ten; a complete list is one pass without copies. While
// there is an object whose label io.kubernetes.pod.uid differs from its pod's UID, lists
// by that label search all objects. Removing a pod takes time quadratic in the number
// of its containers: some 0.3 s for ten thousand. A pod with one container uses some
// 4 KiB, and its lifecycle takes some 40 µs.
//
// It has the error codes, states and events of containerd 2.4, which a test compares; the
// error messages are not. As in containerd, an ID may be abbreviated to a unique prefix,
// and a canceled StopContainer does not kill.
//
// A stream of events whose reader is 4096 events behind is terminated with
// ResourceExhausted; other calls do not wait for the reader. Stale lists go back at most
// 4096 changes.
//
// There is no registry: any image name can be pulled, and its ID is derived from the
// name. A container requires that its image is present. Disk usage is the sum of image
// layers and writable layers; it decreases when they are removed, for images in use
// when their last container is removed.
//
// [fake.Random] uses some 20 bytes per method for each pod, which are never freed.
//
// Logs are written only with Config.WriteLogs. Endpoints listen on loopback only with
// Config.Listen, which does not work in a synctest bubble. In a bubble,
// [Runtime.DialContext] connects to endpoints by the addresses of pods; an
// http.Transport that uses it must disable keep-alive or be closed, because the
// goroutines of its idle connections are in the bubble too.
//
// Usage of CPU, memory and disk follows the curves, regardless of limits. There is no
// pressure stall information, swap or network traffic.
//
// Nothing is isolated, mounted or limited: resources, mounts, security contexts and
// namespaces are reported as requested. A termination message is written to the file
// that is mounted for it. There are no checkpoints, and a pod has one IPv4 address.
//
// # Differences from the kubelet
//
// None: it is the server side of the kubelet's CRI client.
//
// # Testing
//
// The engine of runtime/cri over this runtime passes the conformance suite of package
// runtimetest in virtual time; a sequence of some 300 calls has the same results as with
// containerd; a test runs ten thousand pods in one process.
//
// # Stability
//
// Growing: a minor version may change the API; CHANGELOG.md describes how to migrate.
package fakecri
