package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"
	tracingapi "k8s.io/component-base/tracing/api/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Validate returns an error with one line for each rule of a kubelet that cfg violates, in the
// kubelet's words; fields with their zero value have their defaults. It does not depend on the
// machine. package kubelet calls it before it constructs anything.
//
// Ports may be -1, and containerRuntimeEndpoint has its default if it is empty.
func Validate(cfg *kubeletconfig.KubeletConfiguration) error {
	if errs := checkGates(cfg.FeatureGates); len(errs) > 0 {
		return errors.Join(errs...) // the other rules depend on the gates
	}
	effective := cfg.DeepCopy()
	Default(effective)
	v := validation{k: Configz(effective), set: cfg}
	var errs []error
	for _, rules := range [][]rule{
		v.nodeRules(), v.serverRules(), v.imageRules(), v.containerRules(), v.resourceRules(), v.shutdownRules(),
	} {
		for _, r := range rules {
			if r.violated {
				errs = append(errs, errors.New("invalid configuration: "+r.text))
			}
		}
	}
	errs = append(errs, v.taints()...)
	errs = append(errs, v.enforcements()...)
	errs = append(errs, v.reservedMemory()...)
	errs = append(errs, v.defaultSysctls()...)
	errs = append(errs, v.logging()...)
	if version := v.k.ShowHiddenMetricsForVersion; version != "" && version != previousMinor {
		errs = append(errs, fmt.Errorf("invalid showHiddenMetricsForVersion: %w", fieldpath.Invalid(fieldpath.NewPath("showHiddenMetricsForVersion"), version,
			fmt.Sprintf("must be omitted or have the value '%s'; only the previous minor version is allowed", previousMinor))))
	}
	for _, err := range tracingapi.ValidateTracingConfiguration(v.k.Tracing, nil, fieldpath.NewPath("tracing")) {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// A validation checks one configuration.
type validation struct {
	k   *kubeletconfig.KubeletConfiguration // with defaults
	set *kubeletconfig.KubeletConfiguration // as it was set
}

// gate reports whether a feature gate is enabled in a kubelet.
func (v validation) gate(name string) bool { return enabled(v.k.FeatureGates, name) }

// A rule is one line of the table: the configuration is invalid if it is violated.
type rule struct {
	violated bool
	text     string // without the prefix "invalid configuration: "
}

// when returns a rule.
func when(violated bool, format string, args ...any) rule {
	if !violated {
		return rule{}
	}
	return rule{true, fmt.Sprintf(format, args...)}
}

// atLeast0 returns the rule that a number is not negative.
func atLeast0[T int32 | int64](n T, name, flag string) rule {
	return when(n < 0, "%s (--%s) %v must not be a negative number", name, flag, n)
}

// within returns the rule that a number is in a range.
func within(n int32, least, most int32, name, flag string) rule {
	return when(n < least || n > most, "%s (--%s) %v must be between %d and %d, inclusive", name, flag, n, least, most)
}

// port returns the rule that a number is a port, 0 or -1: any.
func port(n int32, least int32, name string) rule {
	return when(n < -1 || n > 65535, "%s (--%s) %v must be between %d and 65535, inclusive", name, portFlags[name], n, least)
}

var portFlags = map[string]string{"port": "port", "readOnlyPort": "read-only-port", "healthzPort": "healthz-port"}

func (v validation) nodeRules() []rule {
	k := v.k
	return []rule{
		when(k.NodeLeaseDurationSeconds <= 0, "nodeLeaseDurationSeconds must be greater than 0"),
		atLeast0(k.EventBurst, "eventBurst", "event-burst"),
		atLeast0(*k.EventRecordQPS, "eventRecordQPS", "event-qps"),
		atLeast0(k.KubeAPIBurst, "kubeAPIBurst", "kube-api-burst"),
		atLeast0(*k.KubeAPIQPS, "kubeAPIQPS", "kube-api-qps"),
		when(*k.NodeStatusMaxImages < -1, "nodeStatusMaxImages (--node-status-max-images) %v must be -1 or greater", *k.NodeStatusMaxImages),
		atLeast0(k.MaxPods, "maxPods", "max-pods"),
		atLeast0(k.PodsPerCore, "podsPerCore", "pods-per-core"),
		within(*k.OOMScoreAdj, -1000, 1000, "oomScoreAdj", "oom-score-adj"),
		atLeast0(k.MaxOpenFiles, "maxOpenFiles", "max-open-files"),
		within(*k.IPTablesDropBit, 0, 31, "iptablesDropBit", "iptables-drop-bit"),
		within(*k.IPTablesMasqueradeBit, 0, 31, "iptablesMasqueradeBit", "iptables-masquerade-bit"),
		when(k.RunOnce, "runOnce (--runOnce) %v, Runonce mode has been deprecated and should not be set", k.RunOnce),
	}
}

// previousMinor is the only value of showHiddenMetricsForVersion.
var previousMinor = "1." + strconv.Itoa(runtime.KubernetesMinor-1)

// keyAlgorithms are the values of clientCertificateKeyAlgorithm and serverCertificateKeyAlgorithm.
var keyAlgorithms = []string{"ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096", "ML-DSA-44", "ML-DSA-65", "ML-DSA-87"}

// unsupported returns the rule that a key algorithm is one of these. Empty: the default.
func unsupported(algorithm, name string) rule {
	return when(algorithm != "" && !slices.Contains(keyAlgorithms, algorithm), "%s %q is not a supported algorithm", name, algorithm)
}

// beforeTLS13 are the values of tlsMinVersion that permit a version without ML-DSA.
var beforeTLS13 = []string{"", "VersionTLS10", "VersionTLS11", "VersionTLS12"}

func (v validation) serverRules() []rule {
	k := v.k
	logHandler := *k.EnableSystemLogHandler
	client, server := KeyAlgorithms(k)
	logQuery := k.EnableSystemLogQuery != nil && *k.EnableSystemLogQuery
	rules := []rule{
		port(k.Port, 1, "port"),
		port(k.ReadOnlyPort, 0, "readOnlyPort"),
		when(k.ServerTLSBootstrap && !v.gate("RotateKubeletServerCertificate"), "serverTLSBootstrap %v requires feature gate RotateKubeletServerCertificate", k.ServerTLSBootstrap),
		unsupported(client, "clientCertificateKeyAlgorithm"),
		unsupported(server, "serverCertificateKeyAlgorithm"),
		when(strings.HasPrefix(server, "ML-DSA-") && slices.Contains(beforeTLS13, k.TLSMinVersion),
			"tlsMinVersion %q is incompatible with serverCertificateKeyAlgorithm %q, ML-DSA requires VersionTLS13", k.TLSMinVersion, server),
		when(logQuery && !v.gate("NodeLogQuery"), "NodeLogQuery feature gate is required for enableSystemLogQuery"),
		when(logQuery && !logHandler, "enableSystemLogHandler is required for enableSystemLogQuery"),
	}
	if k.HealthzPort != nil {
		rules = append(rules, port(*k.HealthzPort, 1, "healthzPort"))
	}
	return rules
}

func (v validation) containerRules() []rule {
	k := v.k
	dir := k.PodLogsDir
	longest := v.set.CrashLoopBackOff.MaxContainerRestartPeriod
	rules := []rule{
		when(!slices.Contains([]string{"none", "hairpin-veth", "promiscuous-bridge"}, k.HairpinMode),
			`option %q specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"`, k.HairpinMode),
		when(*k.ContainerLogMaxWorkers < 1, "containerLogMaxWorkers must be greater than or equal to 1"),
		when(k.ContainerLogMonitorInterval.Duration < 3*time.Second, "containerLogMonitorInterval must be a positive time duration greater than or equal to 3s"),
		when(*k.ContainerLogMaxFiles <= 1, "containerLogMaxFiles must be greater than 1"),
		when(dir != "" && !filepath.IsAbs(dir), "pod logs path %q must be absolute path", dir),
		when(dir != "" && filepath.Clean(dir) != dir, "pod logs path %q must be normalized", dir),
		when(!isASCII(dir), "pod logs path %q mut contains ASCII characters only", dir),
		when(longest != nil && !v.gate("KubeletCrashLoopBackOffMax"), "FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set"),
	}
	if longest != nil && v.gate("KubeletCrashLoopBackOffMax") {
		milliseconds := longest.Milliseconds()
		rules = append(rules, when(milliseconds < 1000 || milliseconds > 300_000,
			"CrashLoopBackOff.MaxContainerRestartPeriod (got: %v seconds) must be set between 1s and 300s", longest.Seconds()))
	}
	return rules
}

func isASCII(text string) bool {
	for _, r := range text {
		if r > unicode.MaxASCII {
			return false
		}
	}
	return true
}

func (v validation) shutdownRules() []rule {
	k := v.k
	all, critical, byPriority := k.ShutdownGracePeriod, k.ShutdownGracePeriodCriticalPods, len(k.ShutdownGracePeriodByPodPriority) > 0
	graceful, prioritized := v.gate("GracefulNodeShutdown"), v.gate("GracefulNodeShutdownBasedOnPodPriority")
	tooShort := func(d time.Duration) bool { return d < 0 || d > 0 && d < time.Second }
	some := all.Duration > 0 || critical.Duration > 0
	return []rule{
		when(graceful && critical.Duration > all.Duration, "shutdownGracePeriodCriticalPods %v must be <= shutdownGracePeriod %v", critical, all),
		when(graceful && tooShort(all.Duration), "shutdownGracePeriod %v must be either zero or otherwise >= 1 sec", all),
		when(graceful && tooShort(critical.Duration), "shutdownGracePeriodCriticalPods %v must be either zero or otherwise >= 1 sec", critical),
		when(some && !graceful, "specifying shutdownGracePeriod or shutdownGracePeriodCriticalPods requires feature gate GracefulNodeShutdown"),
		when(prioritized && byPriority && some, "Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time"),
		when(!prioritized && byPriority, "Specifying shutdownGracePeriodByPodPriority requires feature gate GracefulNodeShutdownBasedOnPodPriority"),
	}
}
