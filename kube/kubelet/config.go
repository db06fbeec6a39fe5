package kubelet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"
	internalapi "k8s.io/cri-api/pkg/apis"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/status"
	"github.com/kubeparts/kubeparts/volume"
)

// Version is the version of Kubernetes that package kubelet implements, and that
// the node reports.
const Version = "v1.37.2+kubeparts"

// ProcessRuntime is the value of containerRuntimeEndpoint with which pods run as plain
// processes (package runtime/process). The program must then call process.Supervise first.
const ProcessRuntime = "process"

// A Config configures a Kubelet. The zero value is a standalone kubelet with the defaults
// of a KubeletConfiguration on containerd. A source of pods is required: a cluster, or
// staticPodPath or staticPodURL of the Configuration, or one that Adjust.Agent adds.
type Config struct {
	// Configuration is read and completed by package kube/kubelet/config. New sets the
	// defaults of fields that have their zero value in a copy. Nil: the defaults.
	Configuration *kubeletconfig.KubeletConfiguration

	// NodeName is the name of the node. Empty: the host name, in lower case.
	NodeName string

	// RootDir is the directory of the state. Two kubelets must not share it. Empty:
	// /var/lib/kubelet.
	RootDir string

	// ObjectsDir is a directory of ConfigMaps and Secrets for static pods
	// (package volume/objectdir). It is not used with a cluster. Empty: there are none.
	ObjectsDir string

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

	// Adjust replaces and extends defaults of the subsystems. Append to it: the functions of
	// each element are called after those of the elements before it.
	Adjust []Adjust

	// Logger is used by all subsystems. If nil, slog.Default() is used.
	Logger *slog.Logger
}

// A Runtime is a CRI runtime. The caller closes it after Run has returned.
type Runtime struct {
	// Name is the prefix of container IDs, such as "containerd".
	Name string

	Service internalapi.RuntimeService
	Images  internalapi.ImageManagerService

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

// A Host configures the interaction of a Kubelet with the machine. The zero value leaves
// settings of the machine and of the process unchanged.
type Host struct {
	// Manage permits what affects the whole machine or process, as the kubelet
	// does: the OOM score and open files limit of the process, kernel parameters, the
	// inhibitor lock of logind, and links to logs in /var/log/containers. False leaves them unchanged, as a kubelet that is
	// one of several in a process should.
	Manage bool

	// IgnoreForeignPods permits that pods of another node run in the runtime or below the
	// cgroup root. They are never changed or removed, but both nodes set the limits of the
	// QoS classes, and assign the same resources. False: New returns an error.
	IgnoreForeignPods bool

	// NotifySystemd reports readiness, stopping, and liveness to systemd, if it started
	// the process (sd_notify). At most one kubelet of a process may do so.
	NotifySystemd bool

	// IPs are the addresses of the node: none, one, or one of each family. An
	// unspecified address such as 0.0.0.0 selects a family. Nil: they are detected.
	IPs []net.IP

	// DevicePluginsDir and PodResourcesDir are directories of sockets. Empty:
	// device-plugins and pod-resources in RootDir.
	DevicePluginsDir string
	PodResourcesDir  string

	// MemoryCgroup is the directory of the cgroup whose memory is the memory of the
	// node. Empty: the root cgroup.
	MemoryCgroup string

	// RuntimeCgroup is the cgroup of the container runtime, which is reported as the
	// system container runtime. Empty: it is not reported.
	RuntimeCgroup string

	// Flags are the values of command line flags, by name, for /flagz (see
	// config.FlagValues). If nil, that route does not exist.
	Flags map[string]string

	// LogLevel is set by PUT /debug/flags/v (see [LogLevel]). If nil, that route does not
	// exist.
	LogLevel *slog.LevelVar

	// TracerProvider creates the spans, instead of one that exports them as the field
	// tracing of the Configuration specifies. The caller shuts it down after Run has returned.
	// If nil, and that field is not set, nothing is traced.
	TracerProvider trace.TracerProvider

	// Shutdown configures graceful node shutdown.
	Shutdown Shutdown
}

// A Shutdown configures graceful node shutdown, in addition to the Configuration.
type Shutdown struct {
	// Triggers detect that the machine shuts down. Nil: logind on Linux, if Host.Manage
	// is set and the Configuration has a grace period.
	Triggers []shutdown.Trigger

	// Propagation is the time for which pods run after they were reported as not ready,
	// at most 30s. Zero: they are terminated at once.
	Propagation time.Duration

	// Flush bounds the delivery of the last statuses. Zero: 5s.
	Flush time.Duration

	// CarryOver gives the time that pods of one priority do not need to those after them.
	CarryOver bool
}

// Adjust has, for each subsystem, an optional function that New calls with the
// configuration of the subsystem before it constructs it. The configuration is complete,
// except that its Hooks are empty: those that a function sets are called after the
// kubelet's. A function may replace a default or wrap it: the runtime's image credentials,
// the plugins of volumes, the order of eviction, the admitters of the agent, routes of the
// server. New returns the error of a function, and an error if it sets a function or an
// interface to nil.
type Adjust struct {
	CRI        func(*cri.Config) error
	Volumes    func(*volume.Config) error
	Cgroups    func(*cm.Config) error // not called without cgroups
	Allocation func(*allocation.Config) error
	Images     func(*imagegc.Config) error // not called for plain processes
	Stats      func(*stats.Config) error
	Eviction   func(*eviction.Config) error
	Shutdown   func(*shutdown.Config) error
	Logs       func(*logrotate.Config) error
	Agent      func(*agent.Config) error  // the functions of its Adjust are called after the kubelet's
	Node       func(*node.Config) error   // not called without a cluster
	Server     func(*server.Config) error // not called without a listener
}

const defaultEndpoint = "unix:///run/containerd/containerd.sock"

// complete returns the Config with defaults, or an error that names an invalid field.
func (c Config) complete() (Config, error) {
	k := new(kubeletconfig.KubeletConfiguration)
	if c.Configuration != nil {
		k = c.Configuration.DeepCopy()
	}
	config.Default(k)
	c.Configuration = k
	if err := validate(k); err != nil {
		return c, err
	}
	if c.NodeName == "" {
		host, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("Config.NodeName is empty: %w", err)
		}
		c.NodeName = strings.ToLower(host)
	}
	var err error
	if c.RootDir, err = filepath.Abs(or(c.RootDir, "/var/lib/kubelet")); err != nil {
		return c, fmt.Errorf("Config.RootDir: %w", err)
	}
	if c.Runtime.Service == nil {
		k.ContainerRuntimeEndpoint = or(k.ContainerRuntimeEndpoint, defaultEndpoint)
		c.Runtime.Processes = k.ContainerRuntimeEndpoint == ProcessRuntime
	}
	if k.PodLogsDir == "" && c.Runtime.Processes {
		k.PodLogsDir = filepath.Join(c.RootDir, "log", "pods")
	}
	k.PodLogsDir = or(k.PodLogsDir, "/var/log/pods")
	c.Host.DevicePluginsDir = or(c.Host.DevicePluginsDir, filepath.Join(c.RootDir, "device-plugins"))
	c.Host.PodResourcesDir = or(c.Host.PodResourcesDir, filepath.Join(c.RootDir, "pod-resources"))
	c.Cluster.Version = or(c.Cluster.Version, Version)
	c.Cluster.CertDir = or(c.Cluster.CertDir, filepath.Join(c.RootDir, "pki"))
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Notify == nil {
		c.Notify = func(string) {}
	}
	if c.Record == nil {
		c.Record = func(runtime.Event) {}
	}
	return c, c.check()
}

func (c Config) check() error {
	k := c.Configuration
	switch endpoint := k.ContainerRuntimeEndpoint; {
	case c.Runtime.Service != nil && (c.Runtime.Images == nil || c.Runtime.Name == ""):
		return errors.New("Config.Runtime has no Images or no Name")
	case c.Runtime.Service == nil && endpoint != ProcessRuntime && !strings.HasPrefix(endpoint, "unix://"):
		return fmt.Errorf("containerRuntimeEndpoint is %q: want a socket such as %s, or %s", endpoint, defaultEndpoint, ProcessRuntime)
	case (c.Runtime.CredentialProviderConfig == "") != (c.Runtime.CredentialProviderBinDir == ""):
		return errors.New("only one of Config.Runtime.CredentialProviderConfig and Config.Runtime.CredentialProviderBinDir is set")
	case c.Cluster.InCluster && (c.Cluster.Kubeconfig != "" || c.Cluster.BootstrapKubeconfig != ""):
		return errors.New("Config.Cluster.InCluster excludes a kubeconfig")
	case c.Cluster.BootstrapKubeconfig != "" && c.Cluster.Kubeconfig == "":
		return errors.New("Config.Cluster.BootstrapKubeconfig requires Kubeconfig, which it creates")
	case c.Cluster.CheckpointPods && !c.clustered():
		return errors.New("Config.Cluster.CheckpointPods requires a Kubeconfig, InCluster or a Client")
	}
	return nil
}

// logConfiguration logs the Configuration with its defaults, masked.
func logConfiguration(ctx context.Context, c Config) {
	if !c.Logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	effective := config.Masked(c.Configuration)
	effective.APIVersion, effective.Kind = kubeletconfig.SchemeGroupVersion.String(), "KubeletConfiguration"
	text, _ := yaml.Marshal(effective) // a KubeletConfiguration can be encoded
	c.Logger.Info("Effective KubeletConfiguration", "config", string(text))
}

// clustered reports whether the kubelet is a node of a cluster.
func (c Config) clustered() bool {
	return c.Cluster.Client != nil || c.Cluster.Kubeconfig != "" || c.Cluster.InCluster
}

// maxPods returns the largest number of pods of the node (rule ns-12).
func (c Config) maxPods() int32 {
	k := c.Configuration
	if k.PodsPerCore > 0 {
		cores := min(int64(k.PodsPerCore)*int64(goruntime.NumCPU()), math.MaxInt32)
		return min(k.MaxPods, int32(cores))
	}
	return k.MaxPods
}

// or returns value, or fallback if value is zero.
func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// deref returns the value of a pointer; zero if it is nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
