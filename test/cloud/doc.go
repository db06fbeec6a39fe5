// Package cloud is a runtime.Runtime over a cloud API that takes whole pods: a manager of
// virtual machines, or a service of container instances. It is a tested implementation to
// copy from, and not part of a released module. Package kube/provider connects it to
// virtual-kubelet.
//
// # Behavior
//
// The mapping: a pod is a machine, an instance of a container is a process on it. The next
// step of a pod (which init container, which restart and when, whether the machine can be
// kept) is decided by plan.Compute, which is the kubelet's decision as a pure function; the
// Runtime lists the machines, computes the plan and executes it. Restart policies and rules,
// init containers, sidecars, back-off, ephemeral containers and replaced machines follow
// from that.
//
// # Usage
//
// Copy the package without fakecloud and change:
//
//   - api.go: the calls of the cloud. Implement [API] with your cloud's client. Most clouds
//     lack one of two things: starting a process again on a machine (a small agent on the
//     machine does it), or client tokens (look for the token among the tags before creating).
//   - tags.go: the persistent state of machines and processes. A cloud with few or short tags
//     needs fewer, or one tag with all of them as JSON.
//   - start in step.go: the process of a container. Here it is the image, the command and
//     literal variables. Package podenv resolves other variables; volumes are not implemented.
//
// conformance_test.go is the test to copy: runtimetest.TestRuntime names the violated requirement
// of runtime.Runtime and its usual cause.
//
// # Concurrency
//
// All methods are safe for concurrent use.
//
// # Guarantees and limits
//
// All state is in the tags of the cloud: a new Runtime, possibly on another host, continues
// with restart counts and grace periods. A call that was interrupted, or whose answer was
// lost, is completed by the next one. Only back-off delays are in memory; a new Runtime
// derives them from the exits.
//
// A list must show the effects of earlier calls; for a cloud whose lists lag, cache and wait
// in the client. Commands in containers, logs, hooks and resizes are not implemented; they
// are optional interfaces, or a few lines in step.go. Grace periods are not extended to the
// kubelet's minimum of two seconds.
//
// # Differences from the kubelet
//
// Those of package runtime/cri/plan. Volumes are checked for readiness and not mounted.
//
// # Testing
//
// Over package fakecloud, in virtual time: the conformance suite with a fast and with a slow
// cloud, and 200 seeds with a cloud that fails calls and loses answers.
//
// # Stability
//
// Experimental: expect it to change.
package cloud
