package options

import (
	"log/slog"

	internalapi "k8s.io/cri-api/pkg/apis"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/status"
)

// Version is the version of Kubernetes that package kubelet implements, and that
// the node reports.
const Version = runtime.KubernetesVersion + "+kubeparts"

// ProcessRuntime is the value of containerRuntimeEndpoint with which pods run as plain
// processes (package runtime/process). The program must then call process.Supervise first.
const ProcessRuntime = "process"

// A Config configures a Kubelet. The zero value is a standalone kubelet with the defaults
// of a KubeletConfiguration on containerd. A source of pods is required: a cluster, or
// staticPodPath or staticPodURL of the Configuration, or one that a function in Adjust adds to the agent.Config.
type Config struct {
	// Configuration is read and completed by package kube/kubelet/config. kubelet.Open sets the
	// defaults of fields that have their zero value in a copy. Nil: the defaults.
	Configuration *kubeletconfig.KubeletConfiguration

	// NodeName is the name of the node. Empty: the host name, in lower case.
	NodeName string

	// RootDir is the directory of the state. Two kubelets must not share it. Empty:
	// /var/lib/kubelet.
	RootDir string

	// Objects are the ConfigMaps and Secrets of a kubelet without an API server. The zero value
	// has none.
	Objects LocalObjects

	// Runtime runs the containers. The zero value connects to the
	// containerRuntimeEndpoint of the Configuration, which is ProcessRuntime or the
	// address of a CRI runtime; empty: unix:///run/containerd/containerd.sock.
	Runtime Runtime

	// Cluster is the API server. The zero value is a standalone kubelet, which runs
	// static pods only.
	Cluster Cluster

	// Host configures the interaction with the machine.
	Host Host

	// Sink is notified of every status, in addition to the API server. Nil: statuses are
	// sent to the API server only.
	Sink status.Sink

	// Record is called with every event, in addition to the API server. It must not
	// block. If nil, events are sent to the API server only.
	Record func(runtime.Event)

	// Notify is called with messages for the operator, such as the addresses of
	// listeners and node pressure. It must not block. If nil, they are discarded.
	Notify func(message string)

	// Adjust changes the configurations of the subsystems, in order: compose.Adjust makes an element of
	// a function, which may replace a default or wrap it: the runtime's image credentials, the plugins of
	// volumes, the order of eviction, the admitters of the agent, routes of the server. [Adjustable] lists
	// them; another one is an error. Append to it.
	Adjust []compose.Adjustment

	// Logger is used by all subsystems. If nil, slog.Default() is used.
	Logger *slog.Logger
}

// A Runtime is a CRI runtime, by Service and Images, or any other runtime, by New. The caller closes
// it after Run has returned.
type Runtime struct {
	// Name is the prefix of container IDs, such as "containerd". Required with Service and New.
	Name string

	Service internalapi.RuntimeService
	Images  internalapi.ImageManagerService

	// New returns the runtime of a node whose pods are not containers of this machine: a machine
	// manager, a cloud API. kubelet.Open calls it once, with the configuration of package
	// runtime/cri for this node without Runtime and Images. It is Config.Engine of package
	// runtime/containers; any other runtime uses the parts that it needs, such as
	// Providers.Objects.
	//
	// The node has no cgroups, devices, resource claims and image garbage collection, and does
	// not resize containers. Logs, streams, statistics and probes depend on the optional
	// interfaces of the runtime, which are found by compose.As; a pipeline.Admitter also decides
	// about the admission of pods: volumes are set up on this machine, and it rejects pods that it
	// cannot give them. The Node object has the label kubeparts.io/runtime with Name
	// as its value, and, unless registerWithTaints of the Configuration is set, a taint of that
	// key and value with the effect NoSchedule: only pods that tolerate it are scheduled there.
	New func(engine cri.Config) (runtime.Runtime, error)

	// Node describes where the pods of New run. If nil, they run on this machine: its resources
	// are those of the node, and pods are evicted when it is short of memory or process IDs.
	Node NodeReporter

	// Processes reports that containers are plain processes, without cgroups, images
	// and mount namespaces.
	Processes bool

	// PauseImage is the image of sandboxes, which is never deleted. Empty: the one that
	// the runtime reports.
	PauseImage string

	// CredentialProviderConfig and CredentialProviderBinDir configure plugins for image
	// pull credentials: a CredentialProviderConfig file or directory, and the directory
	// of the programs. Both or neither must be set.
	CredentialProviderConfig string
	CredentialProviderBinDir string
}

// A Cluster is an API server: a Client, a Kubeconfig, or InCluster. Without any of them the
// kubelet is standalone.
type Cluster struct {
	// Client is the connection to the API server. If it is set, the fields that describe
	// a connection are ignored, and its certificate is not rotated.
	Client *client.Connection

	// Kubeconfig is the path of a kubeconfig file.
	Kubeconfig string

	// BootstrapKubeconfig is the path of a kubeconfig file with which a certificate for
	// Kubeconfig is requested if that file has no valid client certificate. It is not read
	// otherwise, and need not exist then.
	BootstrapKubeconfig string

	// InCluster uses the service account of the pod that the program runs in.
	InCluster bool

	// CertDir is the directory of requested certificates, including the serving
	// certificate of a standalone kubelet. Empty: pki in RootDir.
	CertDir string

	// CheckpointPods makes a kubelet that starts while the API server is unreachable run
	// the pods that the API server specified last, from a checkpoint in RootDir. Pods that
	// were deleted in the meantime then run until it is reachable.
	CheckpointPods bool

	// NodeLabels are labels of the Node object.
	NodeLabels map[string]string

	// ExternalCloudProvider reports that a controller of the cluster initializes the node:
	// it removes a taint, and sets the addresses if Host.IPs is nil.
	ExternalCloudProvider bool

	// Version is the version that the node reports. Empty: Version of this package.
	Version string
}
