// Package lab starts real components for integration tests: a private
// containerd with its own root, state, socket, network and images, and a
// Kubernetes control plane without nodes. All of it is removed when the test ends. The
// package is test support; no library package imports it.
//
// # Behavior
//
// It decides whether this machine can run the test ([Need] skips it with the reason, or
// fails if KUBEPARTS_CI=1), where the daemon's files are, and what is removed afterwards.
//
// # Usage
//
//	func TestIntegrationAContainerRestarts(t *testing.T) {
//		ctrd := lab.Containerd(t, lab.ContainerdConfig{})
//		// dial ctrd.Endpoint, run pods from lab.Busybox ...
//		ctrd.Kill()  // SIGKILL: the containers keep running
//		ctrd.Start()
//	}
//
// [NewControlPlane] starts etcd, an API server, the controllers and the scheduler,
// and writes kubeconfig files for an administrator, a node, and a machine that is to
// become a node. Its API server can be stopped and restarted. [NewKubectl] returns the
// kubectl of the same version.
//
// A [Registry] serves images, optionally only to users with credentials.
//
// A test that needs the lab has Integration in its name, so that
// `go test -run Integration` picks exactly those. KUBEPARTS_CONTAINERD names
// the daemon's binary; a suite is run once per version of it.
//
// # Concurrency
//
// Several daemons may run at once, in one test binary or in several: each has its own
// directory and bridge. The methods of a [Daemon] must be called on the test's goroutine,
// as FailNow of testing.T.
//
// # Guarantees and limits
//
// The test's cleanup removes every process, mount, network link, cgroup and file of the
// daemon and its containers, even if the test fails. A test binary that is killed cannot
// clean up; the next call of [Containerd] does it. The test must run as root on Linux.
//
// # Differences from the kubelet
//
// None: this package only starts, observes and stops runtimes.
//
// # Testing
//
// The package's integration test starts a daemon, runs a pod, kills and restarts the
// daemon, and checks that everything was removed.
package lab
