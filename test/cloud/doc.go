// Package cloud runs pods on a cloud that takes whole pods: a manager of virtual
// machines, a service of container instances. It is the other half of a provider:
// package provider says what virtual-kubelet wants of pods, a [Runtime] has them on
// the cloud.
//
// # What it decides
//
// Next to nothing. A pod is a machine, an instance of a container is a process on it.
// What the pod needs next (which init container, which restart and when, whether the
// machine can stay) is decided by plan.Compute, which is the kubelet's judgement as a
// pure function; the Runtime looks at the cloud, asks it, and does what it says with
// the cloud's calls. So there are restart policies and rules, init containers,
// sidecars, back-off, ephemeral containers and replaced machines, and none of them is
// in here.
//
// # What to copy
//
// All of this package but the fake, and of it you change:
//
//   - api.go: what is asked of a cloud. Put your cloud's client behind [API]. What it
//     has not got is most often: starting a process again on a machine (then a small
//     agent on the machine does it), or client tokens (then look for the token among
//     the tags before creating).
//   - tags.go: what is written down with machines and processes; a cloud with few or
//     short tags needs fewer, or one with all of them as JSON.
//   - step.go, start: what a container becomes on your cloud. Here it is the image, the
//     command and literal variables; package podenv resolves the others, and what to
//     do with the volumes of a request is yours.
//
// conformance_test.go is the test to copy: runtimetest.TestRuntime says by name which
// promise of runtime.Runtime is broken, and what is usually the cause.
//
// # Concurrency
//
// All methods may be called from many goroutines.
//
// # Guarantees and limits
//
// State is in the cloud's tags and nowhere else: a Runtime that is made anew, on another
// host if need be, goes on where the last one ended, with restart counts and grace
// periods. Of a call that was cut short or whose answer was lost, the next one finds what
// it had begun. Only the memory of back-offs is lost, and derived from the exits.
//
// The cloud's list must show what was done before (of one that lags, cache and wait in
// the client). There are no commands in containers, logs, hooks or resizes; each is an
// optional power or a few lines in step.go. Grace periods are not stretched to the
// kubelet's two seconds.
//
// # Testing
//
// Against package fakecloud, in virtual time: the conformance kit with a quick cloud,
// a slow one, and one that loses answers.
//
// # Stability
//
// Growing: more will come; a minor version may change what is here, and
// CHANGELOG.md says how to follow.
package cloud
