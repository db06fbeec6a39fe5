package stores

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/server"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// Validate returns the errors of a Configuration with defaults that do not depend on the
// machine, in the words of the kubelet, before anything is constructed.
func Validate(k *kubeletconfig.KubeletConfiguration) error {
	if err := config.Validate(k); err != nil {
		return err
	}
	var errs []error
	for _, check := range []func(*kubeletconfig.KubeletConfiguration) error{
		checkTLS, checkReserved, checkEviction, checkQOSReserved, checkTopology, checkCPU, checkMemory, checkSync, checkDetection, checkLogs, checkSysctls,
	} {
		errs = append(errs, check(k))
	}
	return errors.Join(errs...)
}

// CheckCgroupV1 returns an error if the Configuration requires cgroup v2.
func CheckCgroupV1(k *kubeletconfig.KubeletConfiguration) error {
	switch {
	case k.SingleProcessOOMKill != nil && !*k.SingleProcessOOMKill:
		return errors.New("invalid configuration: singleProcessOOMKill must not be explicitly set to false when using cgroup v1")
	case k.MemorySwap.SwapBehavior == "LimitedSwap":
		return errors.New("swap feature is enabled and LimitedSwap but it is only supported with cgroupv2")
	}
	return nil
}

func checkTLS(k *kubeletconfig.KubeletConfiguration) error {
	for _, name := range k.TLSCipherSuites {
		if _, err := server.CipherSuites([]string{name}); err != nil {
			//lint:ignore ST1005 as the kubelet
			return fmt.Errorf("Cipher suite %s not supported or doesn't exist", name)
		}
	}
	if _, err := server.TLSVersion(k.TLSMinVersion); err != nil {
		return fmt.Errorf("unknown tls version %q", k.TLSMinVersion)
	}
	for i, id := range k.TLSCurvePreferences {
		switch {
		case id <= 0 || id > math.MaxUint16:
			return fmt.Errorf("curve preference %d is out of range (must be 1-%d)", id, math.MaxUint16)
		case slices.Contains(k.TLSCurvePreferences[:i], id):
			return fmt.Errorf("duplicate curve preference %d", id)
		case strings.HasPrefix(tls.CurveID(id).String(), "CurveID("):
			return fmt.Errorf("curve preference %d is not supported by the current Go version", id)
		}
	}
	return nil
}

func checkEviction(k *kubeletconfig.KubeletConfiguration) error {
	_, _, err := EvictionPolicy(k)
	return err
}

func checkReserved(k *kubeletconfig.KubeletConfiguration) error {
	if _, err := Amounts("--kube-reserved", k.KubeReserved); err != nil {
		return err
	}
	_, err := Amounts("--system-reserved", k.SystemReserved)
	return err
}

// Amounts parses kubeReserved or systemReserved; flag is the flag of the field.
func Amounts(flag string, in map[string]string) (v1.ResourceList, error) {
	out := v1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		switch v1.ResourceName(name) {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, cm.ResourcePID:
		default:
			return nil, fmt.Errorf("%s value failed to parse: cannot reserve %q resource", flag, name)
		}
		q, err := resource.ParseQuantity(in[name])
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s value failed to parse: failed to parse quantity %q for %q resource: %w", flag, in[name], name, err)
		case q.Sign() < 0:
			return nil, fmt.Errorf("%s value failed to parse: resource quantity for %q cannot be negative: %v", flag, name, in[name])
		}
		if v1.ResourceName(name) == v1.ResourceCPU { // in thousandths, rounded
			q.SetMilli((q.ScaledValue(resource.Micro) + 500) / 1000)
		}
		out[v1.ResourceName(name)] = q
	}
	return out, nil
}

func checkQOSReserved(k *kubeletconfig.KubeletConfiguration) error {
	_, err := QosReserved(k.QOSReserved)
	return err
}

// QosReserved parses the field of this name.
func QosReserved(amounts map[string]string) (map[v1.ResourceName]int64, error) {
	const failed = "--qos-reserved value failed to parse: "
	var parsed map[v1.ResourceName]int64
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if v1.ResourceName(name) != v1.ResourceMemory {
			return nil, fmt.Errorf(failed+"cannot reserve %q resource", name)
		}
		text := amounts[name]
		number, ok := strings.CutSuffix(text, "%")
		percent, err := strconv.ParseInt(number, 10, 64)
		cause := ""
		switch {
		case !ok:
			cause = fmt.Sprintf("percentage expected, got '%s'", text)
		case err != nil:
			cause = fmt.Sprintf("invalid number in percentage '%s'", text)
		case percent < 0 || percent > 100:
			cause = "percentage must be between 0 and 100"
		}
		if cause != "" {
			return nil, fmt.Errorf(failed+"failed to parse percentage %q for %q resource: %s", text, name, cause)
		}
		if parsed == nil {
			parsed = map[v1.ResourceName]int64{}
		}
		parsed[v1.ResourceName(name)] = percent
	}
	return parsed, nil
}

// checkTopology checks the options, which are not read without a policy.
func checkTopology(k *kubeletconfig.KubeletConfiguration) error {
	if p := topology.Policy(k.TopologyManagerPolicy); p == "" || p == topology.None {
		return nil
	}
	_, err := topology.ParseOptions(k.TopologyManagerPolicyOptions)
	return err
}

// cpuOptionStages are the options of cpuManagerPolicy that require the feature gate of
// their stage.
var cpuOptionStages = map[string]string{"align-by-socket": "Alpha", "distribute-cpus-across-cores": "Alpha", "distribute-cpus-across-numa": "Beta"}

func checkCPU(k *kubeletconfig.KubeletConfiguration) error {
	options := k.CPUManagerPolicyOptions
	switch cpu.Policy(k.CPUManagerPolicy) {
	case cpu.None:
		if len(options) > 0 {
			return fmt.Errorf("new none policy error: None policy: received unsupported options=%v", options)
		}
	case cpu.Static:
		for _, name := range slices.Sorted(maps.Keys(options)) {
			if stage := cpuOptionStages[name]; stage != "" && !config.Enabled(k, "CPUManagerPolicy"+stage+"Options") {
				return fmt.Errorf("new static policy error: CPU Manager Policy %s-level Options not enabled, but option %q provided", stage, name)
			}
		}
		if _, err := cpu.ParseOptions(options); err != nil {
			return fmt.Errorf("new static policy error: %w", err)
		}
	default:
		return fmt.Errorf("unknown policy: %q", k.CPUManagerPolicy)
	}
	return nil
}

func checkMemory(k *kubeletconfig.KubeletConfiguration) error {
	if p := memory.Policy(k.MemoryManagerPolicy); p != memory.None && p != memory.Static {
		return fmt.Errorf("unknown policy: %q", k.MemoryManagerPolicy)
	}
	return nil
}

func checkSync(k *kubeletconfig.KubeletConfiguration) error {
	if k.SyncFrequency.Duration < 0 {
		return fmt.Errorf("invalid sync frequency %d", k.SyncFrequency.Duration)
	}
	return nil
}

func checkDetection(k *kubeletconfig.KubeletConfiguration) error {
	if _, err := client.ParseStrategy(string(k.ConfigMapAndSecretChangeDetectionStrategy)); err != nil {
		return fmt.Errorf("unknown configmap and secret manager mode: %v", k.ConfigMapAndSecretChangeDetectionStrategy)
	}
	return nil
}

func checkLogs(k *kubeletconfig.KubeletConfiguration) error {
	if _, err := resource.ParseQuantity(k.ContainerLogMaxSize); err != nil {
		return fmt.Errorf("failed to initialize container log manager: failed to parse container log max size %q: %w", k.ContainerLogMaxSize, err)
	}
	return nil
}

func checkSysctls(k *kubeletconfig.KubeletConfiguration) error {
	_, err := podconfig.NewSysctls("", k.AllowedUnsafeSysctls)
	return err
}
