// Package controllers runs the controllers of kube-controller-manager, and kube-scheduler,
// in the process of a test.
//
// # Behavior
//
// The code is taken from Kubernetes 1.37.2 (k8s.io/kubernetes): with an API server
// (kube/apitest, or an envtest) and nodes that run pods (kube/fakenode), Deployments, Jobs,
// StatefulSets, Services and the other workloads behave as in a cluster. A test of an
// operator that creates them can wait until they are available, fail their nodes and roll
// them back, in one process and, with kube/apitest, in virtual time.
//
// When a node fails ([fakenode.Nodes.Fail]), the node lifecycle controller taints it
// Config.NodeMonitorGracePeriod after its last heartbeat, 50 s by default; the check every
// 5 s and the eviction rate of one node per 10 s delay the taint NoExecute further. The pods
// are deleted when their tolerations of the taint end. They are those of the admission plugin
// DefaultTolerationSeconds, 300 s, unless the pod has its own; kube-apiserver and kube/apitest
// set them, fake clients do not. Hence pods are deleted about 6 minutes after the failure; a
// test should wait for 7. A ReplicaSet replaces them at once, a StatefulSet does not. They
// remain terminating, bound to the failed node, until the node recovers, which completes their
// termination, or until its Node object is deleted, after which the pod garbage collector
// deletes them.
//
// # Usage
//
// This test takes seven virtual minutes, and less than a second:
//
//	func TestDeploymentSurvivesANode(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			api := new(apitest.Server)
//			cfg := fakenode.Config{Nodes: fakenode.Many(2, fakenode.Node{})}
//			nodes := fakenode.Start(t.Context(), t, api.RESTConfig(), cfg)
//			controllers.Start(t.Context(), t, api.RESTConfig(), controllers.Config{})
//			apps := kubernetes.NewForConfigOrDie(api.RESTConfig()).AppsV1()
//			_, err := apps.Deployments("default").Create(t.Context(), web, metav1.CreateOptions{})
//			…
//			time.Sleep(time.Minute) // virtual; it is available now
//			err = nodes.Fail("fake-1")
//			…
//			time.Sleep(7 * time.Minute)
//			web, err = apps.Deployments("default").Get(t.Context(), "web", metav1.GetOptions{})
//			if web.Status.AvailableReplicas != 3 { … }
//		})
//	}
//
// Times differ by some seconds between runs, since the order of concurrent requests does;
// a test should wait longer than the minimum.
//
// These are the controllers, by the names that Config.Controllers selects:
// cronjob-controller, daemonset-controller, deployment-controller,
// disruption-controller, endpoints-controller, endpointslice-controller,
// ephemeral-volume-controller, garbage-collector-controller,
// horizontal-pod-autoscaler-controller, job-controller, namespace-controller, node-lifecycle-controller,
// pod-garbage-collector-controller, replicaset-controller, replicationcontroller-controller, resourcequota-controller,
// serviceaccount-controller, statefulset-controller, taint-eviction-controller, ttl-after-finished-controller.
//
// HorizontalPodAutoscalers need resource metrics: those of the behaviors of fake nodes, with
// api.Aggregate(hollow.Metrics(nodes)), of package kube/hollow.
//
// The controllers for volumes and certificates, IPAM and endpoint mirroring are not among
// them. A PersistentVolumeClaim remains pending, which fake nodes ignore.
//
// The package is a module of its own, and for tests only. k8s.io/kubernetes is not meant to
// be imported: it requires versions of its libraries that do not exist, so that the go.mod
// of each consumer has to replace them, and go get fails without these lines. They determine
// the version of client-go and the other libraries of the whole module. Tests with this
// package should therefore be in a module of their own, such as a directory test with a
// go.mod, which requires the module under test with a replacement by "../". These are the lines:
//
//	require github.com/kubeparts/kubeparts/kube/controllers v0.1.0
//
//	replace (
//		k8s.io/api => k8s.io/api v0.37.2
//		k8s.io/apiextensions-apiserver => k8s.io/apiextensions-apiserver v0.37.2
//		k8s.io/apimachinery => k8s.io/apimachinery v0.37.2
//		k8s.io/apiserver => k8s.io/apiserver v0.37.2
//		k8s.io/cli-runtime => k8s.io/cli-runtime v0.37.2
//		k8s.io/client-go => k8s.io/client-go v0.37.2
//		k8s.io/cloud-provider => k8s.io/cloud-provider v0.37.2
//		k8s.io/cluster-bootstrap => k8s.io/cluster-bootstrap v0.37.2
//		k8s.io/code-generator => k8s.io/code-generator v0.37.2
//		k8s.io/component-base => k8s.io/component-base v0.37.2
//		k8s.io/component-helpers => k8s.io/component-helpers v0.37.2
//		k8s.io/controller-manager => k8s.io/controller-manager v0.37.2
//		k8s.io/cri-api => k8s.io/cri-api v0.37.2
//		k8s.io/cri-client => k8s.io/cri-client v0.37.2
//		k8s.io/cri-streaming => k8s.io/cri-streaming v0.37.2
//		k8s.io/csi-translation-lib => k8s.io/csi-translation-lib v0.37.2
//		k8s.io/dynamic-resource-allocation => k8s.io/dynamic-resource-allocation v0.37.2
//		k8s.io/endpointslice => k8s.io/endpointslice v0.37.2
//		k8s.io/externaljwt => k8s.io/externaljwt v0.37.2
//		k8s.io/kms => k8s.io/kms v0.37.2
//		k8s.io/kube-aggregator => k8s.io/kube-aggregator v0.37.2
//		k8s.io/kube-controller-manager => k8s.io/kube-controller-manager v0.37.2
//		k8s.io/kube-proxy => k8s.io/kube-proxy v0.37.2
//		k8s.io/kube-scheduler => k8s.io/kube-scheduler v0.37.2
//		k8s.io/kubectl => k8s.io/kubectl v0.37.2
//		k8s.io/kubelet => k8s.io/kubelet v0.37.2
//		k8s.io/metrics => k8s.io/metrics v0.37.2
//		k8s.io/mount-utils => k8s.io/mount-utils v0.37.2
//		k8s.io/pod-security-admission => k8s.io/pod-security-admission v0.37.2
//		k8s.io/sample-apiserver => k8s.io/sample-apiserver v0.37.2
//		k8s.io/sample-cli-plugin => k8s.io/sample-cli-plugin v0.37.2
//		k8s.io/sample-controller => k8s.io/sample-controller v0.37.2
//		k8s.io/streaming => k8s.io/streaming v0.37.2
//	)
//
// # Concurrency
//
// Several tests can run controllers at the same time, each against its own API server.
//
// # Guarantees and limits
//
// When Run returns, the controllers have stopped. Goroutines that record events may still
// run for a moment; a synctest bubble waits for them.
//
// Virtual time needs two settings of the process, which this package makes when it is
// initialized: os/signal is started, and errors that Kubernetes' libraries report through
// [k8s.io/apimachinery/pkg/util/runtime.HandleError] are logged without a rate limit. Errors
// of controllers whose caches do not have their own last write yet are not logged as errors,
// but with verbosity 4: they are normal, and retried. Errors that libraries report without a
// context are written to klog, whose output is that of the process (klog.SetOutput). Feature
// gates are those of the process, with their defaults; a test must not change them while
// controllers run. Metrics are registered once, and count those of all tests.
//
// The controllers use the API of their own version: an older API server may lack a resource.
// The node lifecycle controller does not evict pods when all nodes fail, or more than 55 %
// of at most 50 nodes.
//
// # Differences
//
// Differences from kube-controller-manager: there is no leader election, and client requests
// are not rate-limited unless the configuration is. Service accounts are not separated: all
// controllers use the credentials of the configuration. Quotas count objects of kinds that are
// defined after the start only every five minutes.
//
// # Testing
//
// Tests run a cluster in virtual time; an integration test runs it with a real API server.
//
// # Stability
//
// Experimental: it follows Kubernetes' internal packages, which change with each minor
// version.
//
// [fakenode.Nodes.Fail]: https://pkg.go.dev/github.com/kubeparts/kubeparts/kube/fakenode#Nodes.Fail
package controllers
