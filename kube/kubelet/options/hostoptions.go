package options

import (
	"log/slog"
	"net"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/kubeparts/kubeparts/shutdown"
)

// A Host configures the interaction of a Kubelet with the machine. The zero value leaves
// settings of the machine and of the process unchanged.
type Host struct {
	// Manage permits what affects the whole machine or process, as the kubelet
	// does: the OOM score and open files limit of the process, kernel parameters, the
	// inhibitor lock of logind, and links to logs in /var/log/containers. False leaves them
	// unchanged, as a kubelet that is one of several in a process should.
	Manage bool

	// IgnoreForeignPods permits that pods of another node run in the runtime or below the
	// cgroup root. They are never changed or removed, but both nodes set the limits of the
	// QoS classes, and assign the same resources. False: kubelet.Open returns an error.
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

	// LogLevel is set by PUT /debug/flags/v (see kubelet.LogLevel). If nil, that route does not
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
