// Package jobs is a runtime.Runtime over a service that runs jobs: submit, list, cancel. With
// package provider it makes a virtual-kubelet provider of a batch service of a cloud, or of a
// workload manager of a compute cluster.
//
// # Behavior
//
// A job is an instance of a container: a restart submits another one. The next step of a pod
// (which restart and when, what to stop) is decided by plan.Compute. A container is in the
// state created while its job is in the queue. The sandbox of a pod is the set of jobs that were
// submitted together; it is ready until the last of them has ended, has no address, and a
// restart after that is a new sandbox.
//
// # Usage
//
// A program implements the three methods of [Service] with the client of its service:
//
//	rt, err := jobs.New(jobs.Config{Service: service})
//	p, err := virtualkubelet.New(provider.Config{Runtime: rt, NodeName: "batch"})
//
// The directory kube/provider/virtualkubelet/examples/jobs is a complete provider. The test to
// copy is runtimetest.TestRuntime with Suite.Queued, as in conformance_test.go.
//
// # Concurrency
//
// All methods are safe for concurrent use, with the exceptions of runtime.Runtime. Jobs of a
// pod are canceled concurrently.
//
// # Guarantees and limits
//
//   - All state is in the labels of the jobs: another Runtime, possibly on another host,
//     continues with restart counts and grace periods. Back-off delays are in memory; a new
//     Runtime derives them from the exits. So is which jobs were canceled because a probe had
//     failed: between the cancellation and the next submission, a new Runtime lets the exit
//     code decide.
//   - A job is submitted under the same ID until the list contains it, so that a lost response
//     does not start a container twice.
//   - A service that deletes ended jobs while their pod exists loses their exit codes and
//     restart counts, and a pod with the restart policy Never may run again.
//   - Jobs have no order and no hooks: pods with init containers or sidecars, and
//     containers with lifecycle hooks, are not started. They wait with the reason
//     CreateContainerConfigError, and the message names what is not supported.
//   - With Config.Resolver a job has its environment, the files of ConfigMap, Secret,
//     downwardAPI and projected volumes and its pull credentials as values, those of the time of
//     its submission: a token is not replaced while the job runs. Without it, containers with
//     volumes are not started, and the token of the service account, which Kubernetes mounts into
//     every container, is left out.
//   - Ephemeral containers are jobs as well.
//   - There are no addresses, commands and statistics. A [Logger] has the logs.
//   - Each operation on a pod lists all jobs of the service once, about ten times in the life
//     of a pod; besides, they are listed once per second. A service with a rate limit should
//     answer from a cache that its own calls of Submit and Cancel update.
//
// # Differences from the kubelet
//
// Those of package runtime/cri/plan. A pod whose containers have all exited has no ready
// sandbox until one of them restarts. Grace periods have no minimum of two seconds.
//
// # Testing
//
// Over a queue in memory, in virtual time: the conformance suite, with a queue that starts jobs
// at once and with one that starts them after a second.
//
// # Stability
//
// Experimental: expect it to change.
package jobs
