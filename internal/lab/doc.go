// Package lab starts real components for integration tests: a private
// containerd with its own root, state, socket, network and images, and a
// Kubernetes control plane without nodes, of which nothing is left when the test
// ends. It is test support; no library package imports it.
//
// # What it decides
//
// Whether this machine can run the test ([Need]: skip with the reason, or fail
// where KUBEPARTS_CI=1), where the daemon lives, and what has to be swept up
// afterwards.
//
// # Usage
//
//	func TestIntegrationAContainerRestarts(t *testing.T) {
//		ctrd := lab.Containerd(t, lab.ContainerdConfig{})
//		// dial ctrd.Endpoint, run pods from lab.Busybox ...
//		ctrd.Kill()  // SIGKILL: the daemon dies, its containers live on
//		ctrd.Start() // and comes back
//	}
//
// [NewControlPlane] starts etcd, an API server, the controllers and the scheduler,
// and makes kubeconfig files for whoever is to speak to them: an administrator, a
// node, a machine that is to become one. Its API server can be stopped and started
// again. [NewKubectl] is the client that people have, of the same version.
//
// A [Registry] serves images to it, also to those with credentials only.
//
// A test that needs the lab has Integration in its name, so that
// `go test -run Integration` picks exactly those. KUBEPARTS_CONTAINERD names
// the daemon's binary; a suite is run once per version of it.
//
// # Concurrency
//
// Several daemons may run at once, in one test binary or in many: each takes a
// directory and a bridge that nobody else has. The methods of one [Daemon] are
// for the test's own goroutine, as testing.T's FailNow is.
//
// # Guarantees and limits
//
// After the test's cleanup there is no process, mount, network link, cgroup or
// file of the daemon or its containers left, however the test ended. A test
// binary that is killed cannot clean up; the next call of [Containerd] sweeps
// what such a one left behind. The test has to be root, on Linux.
//
// # Differences from the kubelet
//
// None: this package speaks to runtimes only to start, watch and end them.
//
// # Testing
//
// The package's own integration test starts a daemon, runs a pod, kills and
// resumes the daemon, and then looks for leftovers.
package lab
