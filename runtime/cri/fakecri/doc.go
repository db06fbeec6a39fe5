// Package fakecri is a whole CRI runtime in memory, for tests and simulations:
// pods that really live, without a node.
//
// # What it decides
//
// [Runtime] decides what a CRI runtime would: it has sandboxes with addresses,
// containers that are created, run, end, are stopped with TERM, a grace and KILL,
// and are removed, images that are pulled, logs, streams, statistics and events,
// and the errors of whatever cannot be done in a state. It executes nothing: a
// container does what a [Behaviour] says, by the name of the container, its
// image, or an annotation of the pod, and what a test commands.
//
// # Usage
//
// The zero Config makes a runtime on which everything works. A Runtime is both
// services of the CRI's Go interfaces, so it goes wherever a client would:
//
//	fake, err := fakecri.New(fakecri.Config{
//		Behaviours: fakecri.Behaviours{Containers: map[string]fakecri.Behaviour{
//			"web": {StopDelay: 3 * time.Second},
//			"job": {RunFor: time.Minute, ExitCode: 1, Crashes: 2},
//		}},
//		Faults: fakecri.On(fakecri.Random(seed, 0.05, fakecri.Fault{Lost: true}), "StartContainer"),
//	})
//	rt, err := cri.New(cri.Config{Name: "fakecri", Runtime: fake, Images: fake, RootDir: …})
//
// A [Script] says the same in YAML, and an annotation of a pod says it for that
// pod alone, so that a test need not know the runtime beneath:
//
//	fakecri.kubeparts.io/behaviour: "{runFor: 1m, exitCode: 1}"
//	behaviour.fakecri.kubeparts.io/web: "{endpoints: [{port: 8080, http: true, readyAfter: 5s}]}"
//
// Package runtime/cri/serve serves a Runtime on a unix socket, for any other
// client of the CRI.
//
// A test makes things happen with [Runtime.Exit], [Runtime.Kill], [Runtime.OOM],
// [Runtime.Hang], [Runtime.Linger] and [Runtime.KillSandbox], lets be there what
// another agent left behind with [Runtime.Put], ends the daemon with [Runtime.Down]
// and the machine with [Runtime.Reboot]. It sees what is true, whatever faults
// make callers see, with [Runtime.Containers] and [Runtime.Sandboxes], and each
// change at its instant with Config.Observe.
//
// Faults are functions from a [Call] to a [Fault]: an error, a delay, a hang, an
// effect whose answer is lost, a list that is stale. [Always], [Every], [Times],
// [Until], [On], [If], [First] and [Random] put them together; a half-dead socket
// is Always(Fault{Hang: true}).
//
// # Concurrency
//
// All methods may be called by many goroutines at once. A Runtime has no
// goroutine of its own, except those that listen with Config.Listen and those of
// connections: what is to happen later is a timer. Config.Faults and
// Config.Observe are called without locks and may call back.
//
// Messages that are returned may be shared with other answers: they are to be
// read only. Messages that are handed in are copied.
//
// # Guarantees and limits
//
// Time is package time, so that a Runtime made in a testing/synctest bubble
// lives in virtual time. Without random faults, and with one goroutine calling,
// the same calls at the same times have the same results, IDs included.
//
// What is told of a pod by its UID, and all that is done to one object by its
// whole ID, takes the same time among ten thousand pods as among ten; a list of
// everything is one pass without copies. While something is there whose label
// io.kubernetes.pod.uid is not its pod's UID, lists by that label look through
// everything too. What removes a pod takes time by the square of the containers
// that it has: some 0.3 s for ten thousand. A pod with one container takes some
// 4 KiB, and its life some 40 µs.
//
// Codes of errors, states and events are those of containerd 2.4, which is asked
// the same questions in a test; the words are not. Like containerd, an ID may be
// the beginning of one, and a StopContainer that is called off kills nothing.
//
// A stream of events whose reader falls 4096 events behind is ended with
// ResourceExhausted: nobody else waits for that reader. Stale lists go back 4096
// changes.
//
// Images need no registry: whatever name is pulled is there afterwards, with IDs
// that come from the name. A container needs its image to be there. The space of
// images is that of their layers and of what containers write; it falls when
// they are removed, those of images in use when their last container is.
//
// [Random] remembers for each pod that it ever saw how often it was called, in
// some 20 bytes for each method.
//
// Logs are written with Config.WriteLogs only, and endpoints listen on loopback
// with Config.Listen only, which a synctest bubble does not bear. In one
// [Runtime.DialContext] reaches endpoints by the addresses of pods; an
// http.Transport over it is to be without keep-alive, or to be closed, since
// the goroutines of its idle connections are in the bubble too.
//
// Use of cpu, memory and disk is what curves say, whatever the limits. There is
// no pressure stall information, no swap and no traffic.
//
// Nothing is isolated, mounted or limited: resources, mounts, security contexts
// and namespaces are reported as they were asked for. A termination message is
// written to the file that is mounted for it. There are no checkpoints, and one
// pod has one IPv4 address.
//
// # Differences from the kubelet
//
// This is the other side of the kubelet's CRI client.
//
// # Testing
//
// The engine of runtime/cri over this runtime keeps the contract of package
// runtimetest in virtual time; a script of some 300 calls is answered as
// containerd answers it; ten thousand pods in one process are one of the tests.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package fakecri
